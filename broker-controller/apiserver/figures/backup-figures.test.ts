import { test } from 'tap'
import {
  backupFailureAnnotation,
  backupScheduleAnnotation,
  backupToAnnotation,
  lastBackupAnnotation,
} from '../../../api/backups/volume-backup.ts'
import { timeZone, utc } from '../../../api/batch/time-zone.ts'
import { localProvisioner, poolAnnotation } from '../../../api/storage/pools.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { metricsText } from '../../../daemon/prometheus-text.ts'
import { readMetrics } from '../../../daemon/testing/prometheus-parser.ts'
import { aStorageClass, aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { type BackupObjects, backupFamilies } from './backup-figures.ts'

const second = (text: string) => Date.parse(text) / 1000
const last = {
  ...{ name: 'default_db_20261128T030000Z_1a2b3c4d', to: 'pi-2:/mnt', mark: 'm', time: '2026-11-28T03:00:00Z' },
  ...{ bytes: 700, mode: 'live', full: { id: 'a', name: 'f', time: '2026-11-28T03:00:00Z', bytes: 700 } },
}
const daily = { [backupScheduleAnnotation]: '0 3 * * *' }
const to = { [backupToAnnotation]: 'pi-2:/mnt' }

function volumeOf(claim: string, annotations: Readonly<Record<string, string>>, phase = 'Bound') {
  const own = { [volumeAnnotations.provisionedBy]: localProvisioner, [poolAnnotation]: 'pool-1' }
  return aStoredVolume(`pv-${claim}`, {
    metadata: {
      annotations: { ...own, ...annotations },
      creationTimestamp: '2026-11-20T10:00:00Z',
      uid: `uid-${claim}`,
    },
    spec: { local: { path: `/p/${claim}` }, claimRef: claimRefTo(claim), storageClassName: 'local-path' },
    status: { phase },
  })
}

function samplesOf(objects: Partial<BackupObjects>) {
  const none: BackupObjects = {
    ...{ nodes: [], volumes: [], claims: [], classes: [], reportOf: () => undefined },
    ...{ nowMs: Date.parse('2026-11-29T12:00:00Z'), zone: utc },
  }
  const families = readMetrics([...metricsText(backupFamilies({ ...none, ...objects }))].join(''))
  return (name: string) =>
    (families.get(name)?.samples ?? []).map(({ labels, value }) => [labels['persistentvolumeclaim'], value])
}

test('a volume has when its last backup was made, when the next one is due, and how many failed since', async (t) => {
  const failure = JSON.stringify({ time: '2026-11-29T03:01:00Z', why: 'x', count: 4 })
  const samples = samplesOf({
    volumes: [
      volumeOf('db', {
        ...daily,
        ...to,
        [lastBackupAnnotation]: JSON.stringify(last),
        [backupFailureAnnotation]: failure,
      }),
      volumeOf('by-hand', { [lastBackupAnnotation]: JSON.stringify({ ...last, bytes: 9 }) }),
      volumeOf('none', {}),
    ],
  })
  t.same(samples('bramble_volume_last_backup_timestamp_seconds'), [
    ['db', second('2026-11-28T03:00:00Z')],
    ['by-hand', second('2026-11-28T03:00:00Z')],
  ])
  t.same(samples('bramble_volume_last_backup_bytes'), [
    ['db', 700],
    ['by-hand', 9],
  ])
  t.same(samples('bramble_volume_backup_due_timestamp_seconds'), [['db', second('2026-11-29T03:00:00Z')]])
  t.same(samples('bramble_volume_backup_failures'), [['db', 4]])
  t.same(samples('bramble_volume_backup_schedule_valid'), [['db', 1]])
})

test('a volume that was never backed up is due since its first time, by the claim or its class', async (t) => {
  const storageClass = aStorageClass('local-path', {
    metadata: { name: 'local-path', annotations: { ...daily, ...to } },
  })
  const claim = aStoredClaim('own', { metadata: { annotations: { [backupScheduleAnnotation]: '0 4 * * *' } } })
  const samples = samplesOf({
    volumes: [volumeOf('db', {}), volumeOf('own', {})],
    claims: [claim],
    classes: [storageClass],
  })
  t.same(samples('bramble_volume_backup_due_timestamp_seconds'), [
    ['db', second('2026-11-21T03:00:00Z')],
    ['own', second('2026-11-21T04:00:00Z')],
  ])
  t.same(samples('bramble_volume_backup_failures'), [
    ['db', 0],
    ['own', 0],
  ])
})

test('volumes with the same schedule have each their own next time, whatever their order', async (t) => {
  const made = (claim: string, day: number, schedule: string) =>
    volumeOf(claim, {
      ...{ ...to, [backupScheduleAnnotation]: schedule },
      [lastBackupAnnotation]: JSON.stringify({ ...last, time: `2026-11-${day}T03:00:00Z` }),
    })
  const daily = [28, 26, 28, 27].map((day, at) => made(`db-${at}`, day, '0 3 * * *'))
  const hourly = [28, 27].map((day, at) => made(`web-${at}`, day, '@every 30m'))
  t.same(
    samplesOf({ volumes: [...daily, ...hourly] })('bramble_volume_backup_due_timestamp_seconds').map(([, at]) => at),
    ['29T03:00', '27T03:00', '29T03:00', '28T03:00', '28T03:30', '27T03:30'].map((at) => second(`2026-11-${at}:00Z`)),
  )
})

test('annotations that cannot be followed are shown, and have no time', async (t) => {
  const samples = samplesOf({
    volumes: [volumeOf('nowhere', daily), volumeOf('when', { ...to, [backupScheduleAnnotation]: 'at night' })],
  })
  t.same(samples('bramble_volume_backup_schedule_valid'), [
    ['nowhere', 0],
    ['when', 0],
  ])
  t.same(samples('bramble_volume_backup_due_timestamp_seconds'), [])
})

test('no backup is due of a volume without a claim, outside of pools, or that no pod has used', async (t) => {
  const outside = volumeOf('outside', { ...daily, ...to, [poolAnnotation]: '', [volumeAnnotations.provisionedBy]: 'x' })
  const report = {
    pools: [{ id: 'pool-1', capacityBytes: 1, availableBytes: 1 }],
    volumes: [{ uid: 'uid-used', usedBytes: 1 }],
  }
  const samples = samplesOf({
    nodes: [aNode({ name: 'pi-1' })],
    volumes: [
      volumeOf('used', { ...daily, ...to }),
      volumeOf('unused', { ...daily, ...to }),
      volumeOf('unused-now', { ...daily, ...to, [lastBackupAnnotation]: JSON.stringify(last) }),
      volumeOf('released', { ...daily, ...to }, 'Released'),
      outside,
    ],
    reportOf: () => report,
  })
  t.same(
    samples('bramble_volume_backup_due_timestamp_seconds').map(([claim]) => claim),
    ['used', 'unused-now'],
  )
})

test('a claim has the size that it requests', async (t) => {
  t.same(samplesOf({ claims: [aStoredClaim('db')] })('kube_persistentvolumeclaim_resource_requests_storage_bytes'), [
    ['db', 2 ** 30],
  ])
})

test('metrics of 10,000 volumes with schedules give others a turn often', async (t) => {
  const volumes = Array.from({ length: 10_000 }, (_, at) => volumeOf(`db-${at}`, { ...daily, ...to }))
  const zone = timeZone('Europe/Berlin') ?? utc
  const objects = { nodes: [], claims: [], classes: [], volumes, reportOf: () => undefined, nowMs: Date.now(), zone }
  let pieces = 0
  for (const _ of metricsText(backupFamilies(objects))) pieces += 1
  t.ok(pieces > 10_000 / 64, `${pieces} pieces`)
})
