import { test } from 'tap'
import type { FleetBackup } from '../../../api/backups/fleet-backups.ts'
import type { FleetPool, FleetVolume, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import {
  type BackupWish,
  backUpClaim,
  backupSubject,
  backupsTable,
  chosenBackup,
  watchRestore,
  wishProblem,
} from './backup-command.ts'
import { restoration } from './restored-volume.ts'

const last = { name: 'b-1', to: 'pi-2:/mnt', time: '2026-11-28T03:00:00Z', bytes: 2 ** 20, mode: 'live' }
const row: FleetVolume = {
  ...{ claim: 'default/db', volume: 'pvc-1', state: 'Bound', pool: 'a', node: 'pi-1' },
  ...{ requestedBytes: 2 ** 40, usedBytes: 2 ** 30, pods: ['db-0'], lastBackup: last },
}
const fleet = (over: Partial<FleetVolume> = {}): FleetVolumes => ({
  pools: [],
  volumes: [{ ...row, ...over }],
  trash: [],
})
const wish: BackupWish = {
  ...{ to: undefined, stops: false, schedule: undefined },
  keep: undefined,
  bytesPerSecond: undefined,
}
const backup: FleetBackup = {
  ...{ name: 'default_db_1', at: 'pi-2:/mnt', claim: 'default/db', volume: 'pvc-1', accessModes: ['ReadWriteOnce'] },
  ...{
    storageClass: 'local-path',
    capacity: '5Gi',
    time: last.time,
    consistency: 'live',
    bytes: 10,
    contentBytes: 2 ** 30,
  },
}

/** The fleet as it is at each look; `stopAfter`: the person presses Ctrl-C. */
function watching(states: readonly FleetVolumes[], stopAfter = Number.POSITIVE_INFINITY) {
  const [printed, written, stop] = [[] as string[], [] as unknown[], new AbortController()]
  let looks = 0
  return {
    ...{ printed, written },
    fleet: async () => states[Math.min(looks++, states.length - 1)] ?? fleet(),
    annotate: async (volume: string, annotations: object) => void written.push({ volume, ...annotations }),
    print: (text: string) => void printed.push(text),
    clock: {
      async sleep() {
        if (looks >= stopAfter) stop.abort()
      },
    },
    signal: stop.signal,
  }
}

test('the backup is asked for on the volume, and followed until it is made', async (t) => {
  const at = (phase: string, more: object = {}) => fleet({ backup: { phase, to: 'pi-2:/mnt', ...more } })
  const made = fleet({ lastBackup: { ...last, name: 'b-2' } })
  const watch = watching([
    fleet(),
    at('waiting'),
    at('write', { bytes: 2 ** 30, copiedBytes: 2 ** 20 }),
    at('end'),
    at('end'),
    made,
  ])
  t.equal(await backUpClaim('db', wish, watch), 'Backed up: b-2 in pi-2:/mnt, 1.0 MiB.\n')
  t.same(watch.written, [{ volume: 'pvc-1', 'bramble.dev/backup-now': 'usual' }])
  const [estimate, ...progress] = watch.printed
  t.match(
    estimate,
    /^Backing up default\/db \(1.0 GiB, at most 32s.*\) to pi-2:\/mnt\. Its pods \(db-0\) run meanwhile\.\n$/,
  )
  t.equal(progress.length, 3, 'once for each change')
  t.match(progress[1], /^writes: 1.0 MiB, compressed, of 1.0 GiB/)
})

test('one that failed has its reason, and a person who stops watching does not stop it', async (t) => {
  const failed = fleet({ backupFailure: { why: 'pi-2:/mnt is full', time: last.time } })
  await t.rejects(backUpClaim('db', wish, watching([fleet(), failed])), { message: 'Not backed up: pi-2:/mnt is full' })
  const going = fleet({ backup: { phase: 'write' } })
  t.match(await backUpClaim('db', wish, watching([fleet(), going], 2)), /^The backup goes on\./)
})

test('folder, mode, schedule and rule are annotations', async (t) => {
  const written = async (over: Partial<BackupWish>) => {
    const watch = watching([fleet(), fleet({ lastBackup: { ...last, name: 'b-2' } })])
    await backUpClaim('db', { ...wish, ...over }, watch)
    return watch.written[0]
  }
  const now = { volume: 'pvc-1', 'bramble.dev/backup-now': 'usual' }
  t.same(await written({ to: 'pi-3:/b' }), {
    ...now,
    'bramble.dev/backup-to': 'pi-3:/b',
    'bramble.dev/last-backup': null,
  })
  t.same(await written({ stops: true }), { ...now, 'bramble.dev/backup-now': 'stopped' })
  t.same(await written({ bytesPerSecond: 10 }), { ...now, 'bramble.dev/move-rate': '10' })
  const scheduled = { volume: 'pvc-1', 'bramble.dev/backup': '@daily', 'bramble.dev/backup-mode': null }
  t.same(await written({ schedule: '@daily', keep: 'last=2' }), { ...scheduled, 'bramble.dev/backup-keep': 'last=2' })
  t.same(await written({ schedule: '' }), { ...scheduled, 'bramble.dev/backup': null })
})

test('what cannot be is refused before anything is written', async (t) => {
  t.match(wishProblem({ ...wish, to: '/mnt' }), /^--to: .* is not NODE:PATH/)
  t.match(wishProblem({ ...wish, schedule: 'daily' }), /^--schedule: expected exactly 5 fields/)
  t.match(wishProblem({ ...wish, keep: '3' }), /^--keep: /)
  t.equal(wishProblem({ to: 'pi-2:/mnt', stops: true, schedule: '', keep: 'last=1', bytesPerSecond: 1 }), undefined)
  const { pool: _, ...outside } = row
  const rejects = async (found: FleetVolume, message: RegExp) => {
    const watch = watching([{ pools: [], volumes: [found], trash: [] }])
    await t.rejects(backUpClaim('db', wish, watch), { message })
    t.same(watch.written, [])
  }
  await rejects(outside, /Only volumes of a pool/)
  await rejects({ ...row, state: 'Released' }, /not bound/)
  await rejects({ ...row, backup: { phase: 'write' } }, /already/)
  await rejects({ ...row, restore: { from: 'x', name: 'y' } }, /is being restored/)
})

test('a backup is found by its name, its place, or the latest of its claim', async (t) => {
  t.same(backupSubject('default/db'), { at: undefined, name: 'default/db' })
  t.same(backupSubject('pi-2:/mnt/backup/default_db_1'), { at: 'pi-2:/mnt/backup', name: 'default_db_1' })
  t.same(backupSubject('pv/nas/default_db_1'), { at: 'pv/nas', name: 'default_db_1' })
  t.same(backupSubject('class/nas/default_db_1'), { at: 'class/nas', name: 'default_db_1' })
  t.same(backupSubject('pv/db'), { at: undefined, name: 'pv/db' }, 'a claim of a namespace')
  const all = { backups: [{ ...backup, name: 'default_db_2' }, backup], problems: ['pi-3:/x: it is away'] }
  t.match(chosenBackup('default_db_1', all), { name: 'default_db_1' })
  t.match(chosenBackup('db', all), { name: 'default_db_2' })
  t.throws(() => chosenBackup('web', all), { message: /There is no backup web: .* lists them\. pi-3:\/x: it is away/ })
  const table = backupsTable({ ...all, backups: [...all.backups, { ...backup, base: 'x', problem: 'other\nkey' }] })
  t.match(table, /default\/db +2026-11-28T03:00:00Z +10 B +live +Whole +pi-2:\/mnt\/default_db_2\n/)
  t.match(table, /Unusable/)
  t.match(table, /Not read: pi-3:\/x: it is away\n$/)
  t.equal(backupsTable({ backups: [], problems: [] }), 'No backups.\n')
})

const pool: FleetPool = {
  id: '11111111-1111-4111-8111-111111111111',
  node: 'pi-2',
  path: '/pool',
  state: 'Ready',
  volumes: 0,
}
const wanted = {
  ...{ namespace: 'default', name: 'db', present: undefined, size: undefined },
  classOf: () => undefined,
}
const at = (over: Partial<FleetPool> = {}, volumes: readonly FleetVolume[] = []) => ({
  ...{ node: 'pi-2', id: '0123abcd' },
  fleet: { pools: [{ ...pool, ...over }], volumes, trash: [] },
})

test('a backup becomes a new volume, in a folder that never was', async (t) => {
  const made = restoration(backup, wanted, at())
  if ('problem' in made) return t.fail(made.problem)
  t.match(made.volume, {
    metadata: {
      name: 'restored-0123abcd',
      annotations: {
        'bramble.dev/has-data': 'true',
        'bramble.dev/restore-from': JSON.stringify({ id: '0123abcd', from: 'pi-2:/mnt', name: 'default_db_1' }),
      },
    },
    spec: {
      capacity: { storage: '5Gi' },
      local: { path: '/pool/default_db_restored-0123abcd' },
      claimRef: { name: 'db' },
    },
  })
  t.match(made.claim, { spec: { volumeName: 'restored-0123abcd', storageClassName: 'local-path' } })
  const problem = (given: FleetBackup, place: ReturnType<typeof at>) => {
    const refused = restoration(given, wanted, place)
    return 'problem' in refused ? refused.problem : undefined
  }
  t.match(problem({ ...backup, problem: 'other key' }, at()), /cannot be restored: other key/)
  t.match(problem(backup, { ...at(), node: 'pi-9' }), /Node pi-9 has no pool: give one that has with --to NODE/)
  t.match(problem(backup, at({ availableBytes: 2 ** 29 })), /has 1.0 GiB, and the pool of pi-2 has 512 MiB free/)
  t.match(problem(backup, at({}, [{ ...row, restore: { from: 'x', name: 'y' } }])), /is being restored already/)
})

test('a restore is followed, and what goes wrong is shown once', async (t) => {
  const going = (more: object = {}) => fleet({ restore: { from: 'pi-2:/mnt', name: 'b', ...more } })
  const wrong = going({ why: 'it is away' })
  const watch = watching([going(), going({ copiedBytes: 2 ** 20 }), wrong, wrong, fleet()])
  t.match(await watchRestore('pvc-1', 'default/db', watch), /^Restored: pods with default\/db start with the data/)
  t.same(watch.printed, [
    'restores\n',
    'restores: 1.0 MiB, compressed\n',
    'It is tried again: it is away. To end it, delete the claim\n',
  ])
  t.match(await watchRestore('pvc-1', 'default/db', watching([going()], 0)), /comes without this command/)
})
