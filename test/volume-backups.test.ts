/**
 * Backups of a volume to a folder of another machine, and a volume that is made from them: by the controller, with what carries the data. Each part
 * ends at any step, and starts again.
 */
import {
  appendFile,
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { copyResult } from '../agent/adapters/disk/volumes/copy-digest.ts'
import { archiveFile, manifestFile } from '../api/backups/backup-manifest.ts'
import {
  backupKeepAnnotation,
  backupModeAnnotation,
  backupNowAnnotation,
  backupOf,
  backupScheduleAnnotation,
  backupToAnnotation,
  lastBackupOf,
  restoreAnnotation,
  restoreOf,
} from '../api/backups/volume-backup.ts'
import { hasDataAnnotation } from '../api/storage/pools.ts'
import { backupKeys } from '../broker-controller/own-certificates/backup-keys.ts'
import { freshBackupKeys } from '../broker-controller/testing/fresh-backup-keys.ts'
import { newAgeIdentity } from '../daemon/age/age-keys.ts'
import { isRoot, skipWithout } from './support/missing-parts.ts'
import { type VolumeMachines, volumeMachines } from './support/volume-machines.ts'

const skip = skipWithout('root', isRoot())
const mostTurns = 500
const signal = new AbortController().signal
const digestOf = (folder: string) => copyResult(folder, 1, { hashes: new Map(), beforeMs: 0 }, signal)

async function aFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'bvb-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** With data on pi-1, and a folder for backups on pi-2. */
async function aFleet(t: Test, keys = freshBackupKeys()) {
  const fleet = await volumeMachines(t, keys)
  const target = await aFolder(t)
  const folderOf = async () => {
    const { metadata, spec } = await fleet.volume()
    const { uid } = metadata
    const path = spec?.local?.path ?? ''
    const machine = fleet.machines.get('pi-1')
    if (machine === undefined) throw new Error('there is no machine')
    return machine.pool.folder({ pool: machine.id, uid, path, claim: 'default/data', hasGroup: false })
  }
  const folder = await folderOf()
  for (const node of fleet.machines.keys()) await fleet.turn(node)
  const wish = (mode = 'usual') =>
    fleet.annotate({ [backupToAnnotation]: `pi-2:${target}`, [backupNowAnnotation]: mode })
  return { ...fleet, target, folder, wish }
}

async function fill(folder: string): Promise<void> {
  await mkdir(join(folder, 'sub'))
  await writeFile(join(folder, 'sub', 'file'), Buffer.alloc(300_000, 'abc'))
  await chown(join(folder, 'sub', 'file'), 999, 998)
  await chmod(join(folder, 'sub', 'file'), 0o4750)
  await link(join(folder, 'sub', 'file'), join(folder, 'hard'))
  await writeFile(join(folder, 'sparse'), '')
  await truncate(join(folder, 'sparse'), 30 * 2 ** 20)
}

type Fleet = Awaited<ReturnType<typeof aFleet>>

/** Until this holds. `kill` is called once, when `when` holds. */
async function until(
  fleet: Pick<VolumeMachines, 'machines' | 'streams' | 'turn' | 'settle' | 'volume'>,
  isOver: () => Promise<boolean>,
  {
    when = async () => false,
    kill = async () => undefined,
  }: { when?: () => Promise<boolean>; kill?: () => Promise<unknown> } = {},
): Promise<void> {
  let isKilled = false
  for (let idle = 0; idle <= mostTurns; ) {
    if (await isOver()) return
    for (const node of fleet.machines.keys()) await fleet.turn(node)
    // Programs take time of this machine: meanwhile that of the fleet stands nearly still.
    const isBusy = fleet.streams.size > 0
    if (!isBusy) idle += 1
    await fleet.settle(isBusy ? 1 : 1_000)
    for (let count = 0; count < 20; count++) await setImmediate()
    if (isKilled || !(await when())) continue
    isKilled = true
    await kill()
  }
  throw new Error(`it does not end: ${JSON.stringify((await fleet.volume()).metadata.annotations)}`)
}

const isIdle = (fleet: Pick<Fleet, 'volume'>) => async () => {
  const volume = await fleet.volume()
  return backupOf(volume) === undefined && volume.metadata.annotations?.[backupNowAnnotation] === undefined
}

async function backedUp(fleet: Fleet, mode?: string): Promise<string> {
  await fleet.wish(mode)
  await until(fleet, isIdle(fleet))
  return lastBackupOf(await fleet.volume())?.name ?? ''
}

/** Another volume, on pi-2, whose data comes from the backup. */
async function restored(fleet: Fleet, name: string, kills: Parameters<typeof until>[2] = {}) {
  const machine = fleet.machines.get('pi-2')
  if (machine === undefined) throw new Error('there is no machine')
  const { metadata, spec, ...rest } = await fleet.volume()
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, ...own } = metadata
  const annotations = {
    ...Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !key.includes('backup'))),
    ...{ 'bramble.dev/pool': machine.id, [hasDataAnnotation]: 'true' },
    [restoreAnnotation]: JSON.stringify({ id: '0123abcd', from: `pi-2:${fleet.target}`, name }),
  }
  const path = join(machine.path, 'default_again_restored')
  await fleet.store.create('persistentvolumes', {
    ...rest,
    metadata: { ...own, name: 'restored', annotations },
    spec: { ...spec, local: { path }, claimRef: { namespace: 'default', name: 'again' } },
  })
  const present = async () => {
    const found = await fleet.volumeNamed('restored')
    if (found === undefined) throw new Error('the volume is gone')
    return found
  }
  await until({ ...fleet, volume: present }, async () => restoreOf(await present()) === undefined, kills)
  return path
}

test('data comes back from a backup on another machine as it was', { skip }, async (t) => {
  const fleet = await aFleet(t)
  await fill(fleet.folder)
  const name = await backedUp(fleet)
  t.same((await readdir(join(fleet.target, name))).sort(), [manifestFile, archiveFile].sort())
  t.notOk((await readFile(join(fleet.target, name, archiveFile))).includes('abcabcabc'), 'it is encrypted')
  const path = await restored(fleet, name)
  const [one, other] = [await digestOf(fleet.folder), await digestOf(path)]
  t.same(other, one)
  t.equal((await lstat(join(path, 'hard'))).ino, (await lstat(join(path, 'sub/file'))).ino)
  t.ok((await lstat(join(path, 'sparse'))).blocks < 100)
  t.match(await fleet.events(fleet.name), [/^VolumeBackedUp default_data_.*_[0-9a-f]{8} in pi-2:/])
})

const kills = (fleet: Fleet) => ({
  agents: fleet.restartAgents,
  async controller() {
    await fleet.end()
    for (const stream of fleet.streams) stream.destroy()
    fleet.end = fleet.start()
  },
})

for (const mode of ['live', 'stopped'] as const) {
  for (const phase of ['begin', 'write', 'end']) {
    test(`a backup (${mode}) is whole although agents and controller end in the phase ${phase}`, {
      skip,
    }, async (t) => {
      const fleet = await aFleet(t)
      await fill(fleet.folder)
      for (const [who, kill] of Object.entries(kills(fleet))) {
        await fleet.wish(mode)
        const before = lastBackupOf(await fleet.volume())?.name
        await until(fleet, isIdle(fleet), { when: async () => backupOf(await fleet.volume())?.phase === phase, kill })
        const last = lastBackupOf(await fleet.volume())
        t.ok(last !== undefined && last.name !== before, `${who}: ${(await fleet.events(fleet.name)).at(-1)}`)
        t.match(last, { mode })
        const left = (await readdir(fleet.target)).filter((name) => name.startsWith('.'))
        t.same(left, [], `nothing half is left after the end of the ${who}`)
      }
      const path = await restored(fleet, lastBackupOf(await fleet.volume())?.name ?? '')
      t.same(await digestOf(path), await digestOf(fleet.folder))
      const moves = fleet.machines.get('pi-1')?.moves
      t.same(await moves?.follow([]), [])
      t.same(
        await readdir(join(fleet.machines.get('pi-1')?.path ?? '', '.bramble', 'moves')).catch(() => []),
        [],
        'pods may have it',
      )
    })
  }
}

test('a volume is restored although agents and controller end meanwhile', { skip }, async (t) => {
  for (const who of ['agents', 'controller'] as const) {
    const fleet = await aFleet(t)
    await fill(fleet.folder)
    const name = await backedUp(fleet)
    let isKilled = false
    const when = async () => {
      const is = !isKilled
      isKilled = true
      return is
    }
    const path = await restored(fleet, name, { when, kill: kills(fleet)[who] })
    t.same(await digestOf(path), await digestOf(fleet.folder), who)
  }
})

test('the second backup has what has changed, and brings all back with the first', { skip }, async (t) => {
  const fleet = await aFleet(t)
  await fill(fleet.folder)
  await writeFile(
    join(fleet.folder, 'large'),
    Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * i * 7919) >> 3)),
  )
  await backedUp(fleet)
  await rm(join(fleet.folder, 'hard'))
  await appendFile(join(fleet.folder, 'new'), 'new')
  const name = await backedUp(fleet)
  const last = lastBackupOf(await fleet.volume())
  t.ok((last?.bytes ?? 0) < (last?.full.bytes ?? 0) / 2, JSON.stringify(last))
  t.match(JSON.parse(await readFile(join(fleet.target, name, manifestFile), 'utf8')), { base: last?.full.name })
  t.same(await digestOf(await restored(fleet, name)), await digestOf(fleet.folder))
  // Without the first one, the next has everything.
  await rm(join(fleet.target, last?.full.name ?? ''), { recursive: true })
  const whole = await backedUp(fleet)
  t.equal(lastBackupOf(await fleet.volume())?.full.name, whole)
})

test('a schedule makes backups, and the rule removes the old ones', { skip }, async (t) => {
  const fleet = await aFleet(t)
  await writeFile(join(fleet.folder, 'file'), 'x')
  await fleet.annotate({
    ...{
      [backupToAnnotation]: `pi-2:${fleet.target}`,
      [backupScheduleAnnotation]: '@every 1h',
      [backupKeepAnnotation]: 'last=2',
    },
    [backupModeAnnotation]: 'live',
  })
  const names: string[] = []
  for (let count = 0; count < 4; count++) {
    await fleet.settle(3_700_000)
    await until(fleet, async () => {
      const last = lastBackupOf(await fleet.volume())
      return last !== undefined && !names.includes(last.name)
    })
    names.push(lastBackupOf(await fleet.volume())?.name ?? '')
  }
  const kept = (await readdir(fleet.target)).filter((name) => name.startsWith('default_data'))
  t.ok(
    names.slice(-2).every((name) => kept.includes(name)),
    'the last two stay',
  )
  const bases = await Promise.all(
    kept.map(async (name) => JSON.parse(await readFile(join(fleet.target, name, manifestFile), 'utf8')).base ?? name),
  )
  t.ok(
    bases.every((name) => kept.includes(name)),
    'and what they need',
  )
  t.ok(kept.length < 4, kept.join())
})

test('a backup of another key, a changed one and a damaged one are refused with what to do, until one is right', {
  skip,
}, async (t) => {
  let keys = backupKeys([newAgeIdentity()])
  const fleet = await aFleet(t, async () => keys)
  await writeFile(join(fleet.folder, 'file'), 'x')
  const name = await backedUp(fleet)
  const folder = join(fleet.target, name)
  const own = keys
  const [archive, manifest] = [join(folder, archiveFile), join(folder, manifestFile)]
  const [goodArchive, goodManifest] = [await readFile(archive), await readFile(manifest, 'utf8')]
  keys = backupKeys([newAgeIdentity()])
  const steps: readonly [RegExp, () => Promise<void>][] = [
    [
      /was made with another key \(age1.*add that key to backup.key/,
      async () => {
        keys = backupKeys([newAgeIdentity(), ...own.identities])
        await writeFile(manifest, goodManifest.replace('default/data', 'default/dada'))
      },
    ],
    [
      /its manifest was changed after the backup/,
      async () => {
        await writeFile(manifest, goodManifest)
        await writeFile(archive, Buffer.concat([goodArchive.subarray(0, -1), Buffer.of((goodArchive.at(-1) ?? 0) ^ 1)]))
      },
    ],
    [
      /cannot be restored: the file is damaged, or was cut. Take another one/,
      async () => {
        await writeFile(archive, goodArchive)
        await rename(folder, `${folder}.aside`)
      },
    ],
    [/there is no backup default_data/, async () => rename(`${folder}.aside`, folder)],
  ]
  let next = 0
  const failure = async () =>
    (await fleet.volumeNamed('restored'))?.metadata.annotations?.['bramble.dev/restore-failure'] ?? ''
  const when = async () => {
    const [expected, repair] = steps[next] ?? []
    if (expected === undefined || !expected.test(await failure())) return false
    next += 1
    await repair?.()
    return false
  }
  const path = await restored(fleet, name, { when })
  t.equal(next, steps.length)
  t.equal(await readFile(join(path, 'file'), 'utf8'), 'x')
})

test('what cannot be backed up has its reason, and tried again by the schedule alone', { skip }, async (t) => {
  const fleet = await aFleet(t)
  await writeFile(join(fleet.folder, 'file'), 'x')
  await rm(fleet.target, { recursive: true })
  await backedUp(fleet)
  t.match(await fleet.events(fleet.name), [
    /^VolumeBackupFailed node "pi-2": the folder .* does not exist: mount its disk/,
  ])
  await mkdir(fleet.target)
  t.ok(await backedUp(fleet))
  t.same((await fleet.volume()).metadata.annotations?.['bramble.dev/backup-failure'], undefined)
  // Another disk is mounted there.
  await rm(join(fleet.target, 'bramble-backups.json'))
  const before = await readdir(fleet.target)
  await backedUp(fleet)
  t.match((await fleet.events(fleet.name)).at(-1), /VolumeBackupFailed .* is not the folder of the earlier backups/)
  t.same(await readdir(fleet.target), before)
})
