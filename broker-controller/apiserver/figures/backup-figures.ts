/** Metrics of claims, and of the backups of their volumes: the latter under our own names. Pure. */

import { backupRules, nextBackupMs } from '../../../api/backups/backup-due.ts'
import { backupFailureOf, type LastBackup, lastBackupOf } from '../../../api/backups/volume-backup.ts'
import { parseSchedule } from '../../../api/batch/cron-schedule.ts'
import type { TimeZone } from '../../../api/batch/time-zone.ts'
import type { Node } from '../../../api/node.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import type { PersistentVolumeClaim } from '../../../api/storage/persistent-volume-claim.ts'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { poolOfVolume } from '../../../api/storage/volume-place.ts'
import { gauge, type MetricFamily, type MetricSample } from '../../../daemon/prometheus-text.ts'
import { keyText } from '../../store/informer.ts'
import type { StorageReport } from '../../usage/storage-board.ts'
import { amountReader, flat, instantOf, type MetricLabels, singleFigure } from './figures.ts'

export type BackupObjects = {
  readonly nodes: readonly Node[]
  readonly volumes: readonly PersistentVolume[]
  readonly claims: readonly PersistentVolumeClaim[]
  readonly classes: readonly StorageClass[]
  /** What the node reported since the controller started. */
  readonly reportOf: (node: string) => Pick<StorageReport, 'pools' | 'volumes'> | undefined
  readonly nowMs: number
  /** That of schedules without one. */
  readonly zone: TimeZone
}

/** The next time of a schedule takes up to 0.2 ms. */
const volumesInTurn = 32

export function* backupFamilies(objects: BackupObjects): Iterable<MetricFamily> {
  const { volumes, claims } = objects
  yield* claimFamilies(claims)
  const last = (
    volume: PersistentVolume,
    labels: MetricLabels,
    value: (last: LastBackup) => readonly MetricSample[],
  ) => {
    const found = labels['persistentvolumeclaim'] === undefined ? undefined : lastBackupOf(volume)
    return found === undefined ? [] : value(found)
  }
  const each = (samplesOf: (volume: PersistentVolume, labels: MetricLabels) => Iterable<MetricSample>) =>
    flat(volumes, (volume) => samplesOf(volume, labelsOf(volume)), volumesInTurn)
  yield gauge(
    'bramble_volume_last_backup_timestamp_seconds',
    'When the last backup of the volume was begun, Unix timestamp.',
    each((volume, labels) => last(volume, labels, ({ time }) => instantOf(time, labels))),
  )
  yield gauge(
    'bramble_volume_last_backup_bytes',
    'Size of the last backup of the volume.',
    each((volume, labels) => last(volume, labels, ({ bytes }) => [singleFigure(bytes, labels)])),
  )
  const scheduled = scheduledBackups(objects)
  const eachScheduled = (samplesOf: (plan: ScheduledBackup, labels: MetricLabels) => Iterable<MetricSample>) =>
    each((volume, labels) => {
      const plan = scheduled(volume)
      return plan === undefined ? [] : samplesOf(plan, labels)
    })
  yield gauge(
    'bramble_volume_backup_due_timestamp_seconds',
    'When the next backup of the volume is due by its schedule, or was, Unix timestamp.',
    eachScheduled(({ dueMs }, labels) => (dueMs === undefined ? [] : [singleFigure(dueMs / 1000, labels)])),
  )
  yield gauge(
    'bramble_volume_backup_schedule_valid',
    '1 if the annotations for backups of the volume can be followed.',
    eachScheduled(({ isValid }, labels) => [singleFigure(isValid ? 1 : 0, labels)]),
  )
  yield gauge(
    'bramble_volume_backup_failures',
    'Backups of the volume that failed since the last one that was made.',
    each((volume, labels) => {
      const failed = backupFailureOf(volume)?.count
      const count = failed ?? (scheduled(volume) === undefined ? undefined : 0)
      return count === undefined || labels['persistentvolumeclaim'] === undefined ? [] : [singleFigure(count, labels)]
    }),
  )
}

function* claimFamilies(claims: readonly PersistentVolumeClaim[]): Iterable<MetricFamily> {
  const amounts = amountReader()
  yield gauge(
    'kube_persistentvolumeclaim_resource_requests_storage_bytes',
    'Size that the claim requests.',
    flat(claims, ({ metadata: { namespace, name }, spec }) => {
      const { storage } = spec?.resources?.requests ?? {}
      const [found] = storage === undefined ? [] : amounts({ storage }, {})
      return found === undefined ? [] : [singleFigure(found.value, { namespace, persistentvolumeclaim: name })]
    }),
  )
}

/** Without a claim: only the name of the volume. */
function labelsOf({ metadata, spec }: PersistentVolume): MetricLabels {
  const { namespace, name } = spec?.claimRef ?? {}
  return { namespace, persistentvolumeclaim: name, persistentvolume: metadata.name }
}

type ScheduledBackup = { readonly isValid: boolean; readonly dueMs: number | undefined }

/** The plan of a volume; undefined: it has no schedule, or is not backed up by it because it has no claim, or no pod has used it. */
function scheduledBackups({ volumes: _, nodes, claims, classes, reportOf, nowMs, zone }: BackupObjects) {
  const claimOf = new Map(claims.map((claim) => [keyText(claim.metadata), claim]))
  const classOf = new Map(classes.map((one) => [one.metadata.name ?? '', one]))
  const [pools, used] = [new Set<string>(), new Set<string>()]
  for (const { metadata } of nodes) {
    const report = reportOf(metadata.name ?? '')
    for (const { id } of report?.pools ?? []) pools.add(id)
    for (const { uid } of report?.volumes ?? []) used.add(uid)
  }
  /** Many volumes have the same. */
  const schedules = new Map<string, ReturnType<typeof parseSchedule>>()
  const parsed = (text: string) => {
    const found = schedules.get(text) ?? rememberingLast(parseSchedule(text, zone), text)
    schedules.set(text, found)
    return found
  }
  const isUnused = ({ metadata }: PersistentVolume, pool: string) => pools.has(pool) && !used.has(metadata.uid ?? '')
  const rulesOf = (volume: PersistentVolume, claim: string, className = '') =>
    backupRules({ volume, claim: claimOf.get(claim), storageClass: classOf.get(className) })
  const planOf = (volume: PersistentVolume): ScheduledBackup | undefined => {
    const { metadata, spec, status } = volume
    const pool = poolOfVolume(volume)
    if (pool === undefined || spec?.claimRef === undefined || status?.phase !== 'Bound') return undefined
    const rules = rulesOf(volume, keyText(spec.claimRef), spec.storageClassName)
    if (rules === undefined) return undefined
    if ('problem' in rules) return { isValid: false, dueMs: undefined }
    if (rules.schedule === undefined) return undefined
    const last = lastBackupOf(volume)
    if (last === undefined && isUnused(volume, pool)) return undefined
    const read = parsed(rules.schedule)
    if (!read.ok) return { isValid: false, dueMs: undefined }
    const createdMs = Date.parse(metadata.creationTimestamp ?? '')
    return { isValid: true, dueMs: nextBackupMs(read.schedule, { last, createdMs, nowMs }) }
  }
  /** Several metrics are of it. */
  const plans = new Map<PersistentVolume, ScheduledBackup | undefined>()
  return (volume: PersistentVolume) => {
    if (!plans.has(volume)) plans.set(volume, planOf(volume))
    return plans.get(volume)
  }
}

/** Volumes that were backed up in the same night have the same next time: it is computed once. */
function rememberingLast(parsed: ReturnType<typeof parseSchedule>, text: string): ReturnType<typeof parseSchedule> {
  // Their times depend on when the last one was.
  if (!parsed.ok || text.includes('@every')) return parsed
  const { schedule } = parsed
  let [fromMs, nextMs]: [number, number | undefined] = [0, undefined]
  const next = (afterMs: number) => {
    if (nextMs === undefined || afterMs < fromMs || afterMs >= nextMs)
      [fromMs, nextMs] = [afterMs, schedule.next(afterMs)]
    return nextMs
  }
  return { ok: true, schedule: { ...schedule, next } }
}
