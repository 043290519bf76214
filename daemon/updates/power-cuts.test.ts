/**
 * The power is cut after each single operation of two updates, one good and one bad, whose archives are made of deltas and of what is
 * installed; what was not synced survives or not.
 */
import { createHash } from 'node:crypto'
import { test } from 'tap'
import { codeOf } from '../errors.ts'
import {
  isPowerCut,
  type PowerCutDisk,
  type PowerCutOptions,
  powerCutDisk,
  type Survives,
} from '../testing/power-cut-disk.ts'
import { seededRandom } from '../testing/seeded-random.ts'
import { applyDelta } from './deltas/apply-delta.ts'
import { installedArchive } from './deltas/installed-archive.ts'
import { makeDelta } from './deltas/make-delta.ts'
import { readReleaseArchive, releaseArchive } from './release-archive.ts'
import { commitTrial, prepareStart } from './start-version.ts'
import { replaceOn, type UpdateDisk } from './update-disk.ts'
import {
  beginTrial,
  loadUpdateState,
  saveVerdict,
  type UpdateFolder,
  type VersionFile,
  versionPath,
} from './update-folder.ts'
import type { Release } from './update-state.ts'

const base = { version: '1', sequence: 1 }
const filesOf = ({ version }: Pick<Release, 'version'>): readonly VersionFile[] =>
  ['program.mjs', 'node_modules/native/build/native.node'].map((path) => ({
    path,
    content: Buffer.from(`${path} of ${version}`),
    isProgram: path.endsWith('.mjs'),
  }))
const archives = [0, 1, 2, 3].map((sequence) => releaseArchive(filesOf({ version: `${sequence}` })))
const archiveOf = (sequence: number) => archives[sequence] ?? Buffer.of()
const release = (sequence: number): Release => ({
  version: `${sequence}`,
  sequence,
  digest: createHash('sha256').update(archiveOf(sequence)).digest('hex'),
})
const [good, bad] = [release(2), release(3)]
/** From the package to the good version, and from that to the bad one. */
const deltas = new Map(
  [good, bad].map(({ version, sequence }) => [version, makeDelta(archiveOf(sequence - 1), archiveOf(sequence))]),
)
const seen = { wasConnected: true, containers: ['a'], epoch: '' }
/** Its `desired.json` has the format of the version that wrote it; a version reads its own format and earlier ones. */
async function runProgram(updates: UpdateFolder, run: Release | undefined): Promise<void> {
  const format = run?.sequence ?? base.sequence
  const found = await readFormat(updates.disk)
  if (found !== undefined && found > format) throw new Error(`Version ${format} cannot read format ${found}`)
  await replaceOn(updates.disk, '/data', 'desired.json', `${format}\n`)
  await replaceOn(updates.disk, '/data/desired.json.contents', `${format}`, 'content')
  if (format === bad.sequence) await replaceOn(updates.disk, '/data', 'extra.json', `${format}\n`)
}

async function readFormat(disk: UpdateDisk): Promise<number | undefined> {
  const content = await disk.read('/data/desired.json')
  if (content === undefined) return undefined
  if (!/^\d+\n$/.test(Buffer.from(content).toString())) throw new Error('desired.json is half')
  return Number(Buffer.from(content).toString())
}

const log = { error() {}, warn() {}, info() {}, debug() {}, with: () => log }
const updatesOn = (disk: UpdateDisk): UpdateFolder => ({
  disk,
  log,
  folder: '/updates',
  dataFolder: '/data',
  names: ['desired.json', 'desired.json.contents', 'extra.json'],
})

/** What systemd does at each start. Throws where a version is broken. */
async function start(disk: PowerCutDisk): Promise<number> {
  const updates = updatesOn(disk)
  const run = await prepareStart(updates, base)
  if (run !== undefined) {
    for (const { path, content } of filesOf(run)) {
      const found = await disk.read(`${versionPath(updates, run)}/${path}`)
      if (found === undefined || !Buffer.from(found).equals(content))
        throw new Error(`${path} of ${run.version} is broken`)
    }
    const { committed, trial } = await loadUpdateState(updates)
    if (committed?.digest !== run.digest && (trial?.digest !== run.digest || trial.attemptsLeft > 2))
      throw new Error('An attempt is not counted')
  }
  await runProgram(updates, run)
  return run?.sequence ?? base.sequence
}

/** From the package to version 2, which is committed, and to version 3, which never becomes healthy. Takes up where a power cut left it. */
async function twoUpdates(disk: PowerCutDisk): Promise<void> {
  const updates = updatesOn(disk)
  for (let step = 0; step < 12; step++) {
    const running = await start(disk)
    const { committed, trial, rejected, highestSequence } = await loadUpdateState(updates)
    if (rejected.length > 0 && trial === undefined) return updates.disk.remove(downloads)
    if (trial?.digest === good.digest && running === good.sequence) {
      await saveVerdict(updates, { digest: good.digest, outcome: 'commit', reason: 'healthy' })
      await commitTrial(updates, base)
    } else if (trial === undefined && highestSequence < good.sequence) await update(updates, good, '/package')
    else if (trial === undefined && committed !== undefined) await update(updates, bad, versionPath(updates, committed))
    else await updates.disk.remove(downloads)
  }
}

const downloads = '/updates/download'

/** Makes the archive of a delta that is downloaded, unless a power cut came after it was made, and puts it on trial. */
async function update(updates: UpdateFolder, { version, sequence, digest }: Release, folder: string): Promise<void> {
  const { disk } = updates
  const [delta, to] = [`${downloads}/delta`, `${downloads}/${version}.tar`]
  await disk.makeFolder(downloads)
  if ((await disk.kindOf(to)) === undefined) {
    await disk.write(delta, deltas.get(version) ?? new Uint8Array(), 0o600)
    await disk.sync(delta)
    const base = await installedArchive(disk, { folder, leftOut: ['start'] })
    await applyDelta({ disk, base, delta, to, size: archiveOf(sequence).length, digest })
  }
  const archive = await disk.read(to)
  await beginTrial(updates, { version, sequence, digest }, readReleaseArchive(archive ?? new Uint8Array()), seen)
}

const nothing: Survives = () => false
const everything: Survives = () => true
const namesWithoutContent: Survives = (kind) => kind !== 'write'
const contentWithoutNames: Survives = (kind) => kind === 'write'
const someOf = (seed: number): Survives => {
  const random = seededRandom(seed)
  const drawn = new Map<string, boolean>()
  return (kind, index) => {
    const key = `${kind} ${index}`
    const is = drawn.get(key) ?? random() < 0.5
    drawn.set(key, is)
    return is
  }
}

async function newDisk(options: PowerCutOptions = {}): Promise<PowerCutDisk> {
  const made = powerCutDisk()
  const folders = ['', '/node_modules', '/node_modules/native', '/node_modules/native/build'].map(
    (one) => `/package${one}`,
  )
  for (const path of ['/', '/updates', '/data', '/data/desired.json.contents', ...folders]) await made.makeFolder(path)
  for (const { path, content, isProgram } of [
    ...filesOf(base),
    { path: 'start', content: Buffer.of(), isProgram: true },
  ])
    await made.write(`/package/${path}`, content, isProgram ? 0o755 : 0o644)
  return made.afterCut(everything, options)
}

/** What is wrong after the next start, on a disk after a power cut; undefined: nothing. */
async function faultAfter(after: PowerCutDisk): Promise<string | undefined> {
  try {
    await twoUpdates(after)
    const updates = updatesOn(after)
    const { committed, trial, rejected } = await loadUpdateState(updates)
    if (committed?.digest !== good.digest || trial !== undefined) return 'the good version is not committed'
    if (rejected.map(({ digest }) => digest).join() !== bad.digest) return 'the bad version is not rejected'
    if ((await readFormat(after)) !== good.sequence) return 'the state is not that of the good version'
    if ((await after.kindOf('/data/extra.json')) !== undefined) return 'a file of the bad version is left'
    const left = [...(await after.list('/updates')), ...(await after.list('/updates/versions'))]
    return left.some((name) => /part$|before|restoring|download/.test(name))
      ? `left behind: ${left.join(' ')}`
      : undefined
  } catch (error) {
    return String(error)
  }
}

async function allCuts(syncs: boolean, step = 1): Promise<readonly string[]> {
  const whole = await newDisk({ syncs })
  await twoUpdates(whole)
  const wrong: string[] = []
  for (let at = 0; at < whole.operations; at += step) {
    const disk = await newDisk({ cutAt: at, syncs })
    await twoUpdates(disk).catch((error: unknown) => {
      if (!isPowerCut(error)) throw error
    })
    const policies = {
      nothing,
      everything,
      namesWithoutContent,
      contentWithoutNames,
      some: someOf(at),
      others: someOf(at + 5000),
    }
    for (const [name, survives] of Object.entries(policies)) {
      const found = await faultAfter(disk.afterCut(survives))
      if (found !== undefined) wrong.push(`cut at ${at}, ${name} of what was not synced survives: ${found}`)
    }
  }
  return wrong
}

test('no power cut leaves a broken version, a state that the version cannot read, or an update that does not end', async (t) => {
  const disk = await newDisk()
  await twoUpdates(disk)
  t.ok(disk.operations > 150, `${disk.operations} operations, six cuts at each`)
  t.same(await allCuts(true), [])
})

test('without syncs power cuts break versions: the test sees it', async (t) => {
  t.ok((await allCuts(false, 7)).length > 50)
})

test('on a disk that becomes full at any moment the earlier version runs with its state', async (t) => {
  const whole = await newDisk()
  await twoUpdates(whole)
  t.ok(whole.operations > 150)
  for (let fullFrom = 1; fullFrom < whole.operations; fullFrom++) {
    const disk = await newDisk({ fullFrom })
    // What stops is a write of the program, or the update; neither leaves anything broken.
    await twoUpdates(disk).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOSPC') throw error
    })
    const run = await prepareStart(updatesOn(disk), base)
    const format = await readFormat(disk)
    if (format !== undefined && format > (run?.sequence ?? base.sequence))
      t.fail(`full from ${fullFrom}: it cannot read its state`)
    const again = disk.afterCut(everything)
    await twoUpdates(again)
    const { committed } = await loadUpdateState(updatesOn(again))
    if (committed?.digest !== good.digest) t.fail(`full from ${fullFrom}: the update does not end`)
  }
})
