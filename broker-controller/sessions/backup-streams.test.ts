import { createHash } from 'node:crypto'
import { test } from 'tap'
import { type BackupManifest, type BackupManifestFacts, manifestOf } from '../../api/backups/backup-manifest.ts'
import { sessionChannels } from '../../api/sessions.ts'
import { ageDecrypted, ageEncrypted } from '../../daemon/age/age-file.ts'
import { newAgeIdentity } from '../../daemon/age/age-keys.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { turnsAboveBudget } from '../../daemon/testing/turn-budget.ts'
import { type NodePart, playedNodes, reportFacts, reportStatus, sendingAll } from '../testing/played-nodes.ts'
import { copyBackup, listBackups, restoreBackup } from './backup-streams.ts'

const { input, end, request } = sessionChannels
const identity = newAgeIdentity()
const { signal } = new AbortController()
const name = 'default_db_20261129T030000Z_1a2b3c4d'
const facts = {
  ...{ name, claim: 'default/db', volume: 'pv', accessModes: ['ReadWriteOnce'], time: '2026-11-29T03:00:00Z' },
  ...{ consistency: 'live' as const, recipient: identity.recipient },
}
const place = { uid: 'u', pool: 'p', folder: 'f', id: '1a2b3c4d' }
const rate = { bytesPerSecond: 2 ** 40 }

async function whole(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

async function* once(text: string) {
  yield Buffer.from(text)
}

/** Takes what comes; `taken` has the data, `ends` how often it was whole, `manifest` the text behind it. */
function taking(answer: { readonly made?: string } = {}) {
  const state = { taken: Buffer.alloc(0), ends: 0, manifest: '' }
  const part: NodePart = async (frames) => {
    await reportStatus(frames, { state: 'started' })
    await reportFacts(frames, { mark: 'm-1', ...answer })
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      if (frame.channel === input) state.taken = Buffer.concat([state.taken, frame.payload])
      if (frame.channel === end) state.ends += 1
      if (frame.channel !== request) continue
      state.manifest = frame.payload.toString()
      await reportFacts(frames, { removed: 2 })
      return reportStatus(frames, { state: 'ended' })
    }
    return undefined
  }
  return { state, part }
}

function copy(source: NodePart, target: NodePart) {
  const { sessions, requests } = playedNodes({ 'pi-1': source, 'pi-2': target })
  const passed: number[] = []
  const manifest = (all: BackupManifestFacts) => manifestOf(all, 'mac')
  const done = copyBackup(
    {
      from: { node: 'pi-1', read: place },
      to: { node: 'pi-2', store: { path: '/mnt', uid: 'u', id: place.id, name } },
      ...{ backup: facts, manifest, ...rate, progress: (bytes) => void passed.push(bytes) },
    },
    { sessions, clock: fakeClock() },
    signal,
  )
  return { done, requests, passed }
}

test('the node that keeps a backup gets it encrypted, and a manifest with its size and checksum', async (t) => {
  const { state, part } = taking()
  const { done, passed } = copy(sendingAll(['secret ', 'data'], { contentBytes: 99 }), part)
  const { manifest, mark, removed } = await done
  t.notOk(state.taken.includes('secret'))
  t.equal((await whole(ageDecrypted(ofBytes(state.taken), [identity]))).toString(), 'secret data')
  const sha256 = createHash('sha256').update(state.taken).digest('hex')
  t.match(manifest, { bytes: state.taken.length, contentBytes: 99, sha256, mac: 'mac' })
  t.same(JSON.parse(state.manifest), manifest)
  t.same([mark, removed, state.ends, passed.at(-1)], ['m-1', 2, 1, 11])
})

async function* ofBytes(bytes: Buffer) {
  yield bytes
}

test('a backup that is there already is not read again', async (t) => {
  const made = manifestOf({ ...facts, bytes: 1, contentBytes: 2, sha256: '00' }, 'mac')
  const { done, requests } = copy(sendingAll(['x']), taking({ made: JSON.stringify(made) }).part)
  t.same((await done).manifest, made)
  t.same(
    requests.map(({ node }) => node),
    ['pi-2'],
  )
  await t.rejects(copy(sendingAll(['x']), taking({ made: '{}' }).part).done, {
    message: `/mnt has a backup ${name} already, whose manifest cannot be read`,
  })
})

test('data that is cut gets no end and no manifest', async (t) => {
  const { state, part } = taking()
  const cut: NodePart = async (frames) => {
    await reportStatus(frames, { state: 'started' })
    await frames.send(sessionChannels.output, Buffer.from('half'))
    frames.destroy()
  }
  await t.rejects(copy(cut, part).done)
  t.same([state.ends, state.manifest], [0, ''])
})

async function archive(text: string): Promise<{ readonly bytes: Buffer; readonly manifest: BackupManifest }> {
  const bytes = await whole(ageEncrypted(once(text), identity.recipient))
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { bytes, manifest: manifestOf({ ...facts, bytes: bytes.length, contentBytes: 1, sha256 }, 'mac') }
}

function restore(archives: readonly BackupManifest[], source: NodePart, target: NodePart) {
  const { sessions } = playedNodes({ 'pi-1': source, 'pi-2': target })
  return restoreBackup(
    {
      ...{ archives, from: { node: 'pi-1', path: '/mnt' }, identities: [identity], ...rate },
      to: { node: 'pi-2', restore: { ...place, archives: archives.length, contentBytes: 1 } },
      progress: () => undefined,
    },
    { sessions, clock: fakeClock() },
    signal,
  )
}

/** Ends well after this many archives. */
function restoring(archives: number) {
  const state = { taken: '', ends: 0 }
  const part: NodePart = async (frames) => {
    await reportStatus(frames, { state: 'started' })
    while (state.ends < archives) {
      const frame = await frames.next()
      if (frame === undefined) return
      if (frame.channel === input) state.taken += frame.payload.toString()
      if (frame.channel === end) state.ends += 1
    }
    await reportStatus(frames, { state: 'ended' })
  }
  return { state, part }
}

test('archives follow one another decrypted, each with its end', async (t) => {
  const [one, two] = [await archive('whole '), await archive('changes')]
  const all = [one, two]
  const { state, part } = restoring(2)
  await restore(
    [one.manifest, two.manifest],
    (frames, wanted) => sendingAll([all.shift()?.bytes ?? ''])(frames, wanted),
    part,
  )
  t.same(state, { taken: 'whole changes', ends: 2 })
})

test('an archive that is damaged, cut, or another one gets no end', async (t) => {
  const { bytes, manifest } = await archive('data')
  const flipped = Buffer.from(bytes)
  flipped.writeUInt8(flipped.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  const other = await archive('data')
  for (const sent of [flipped, bytes.subarray(0, -1), other.bytes]) {
    const { state, part } = restoring(1)
    await t.rejects(restore([manifest], sendingAll([sent]), part), {
      message: new RegExp(`^${name} in pi-1:/mnt cannot be restored: .*Take another one$`),
    })
    t.equal(state.ends, 0)
  }
})

test('a node that has made the volume before takes nothing, and that is not a failure', async (t) => {
  const { bytes, manifest } = await archive('x'.repeat(500_000))
  await restore([manifest], sendingAll([bytes]), restoring(0).part)
  t.pass()
})

test('manifests in a folder are listed with the latest first; others are left out', async (t) => {
  const at = (day: number) => ({
    ...manifestOf({ ...facts, bytes: 1, contentBytes: 1, sha256: '00' }, 'mac'),
    ...{ name: `default_db_202611${day}T030000Z_1a2b3c4d`, time: `2026-11-${day}T03:00:00Z` },
  })
  const lines = [at(27), at(29), at(28)].map((one) => JSON.stringify(one))
  const text = [...lines, '{}', 'x', 'null', '5', '{"name":7}', ''].join('\n')
  const { sessions, requests } = playedNodes({ 'pi-1': sendingAll([text.slice(0, 300), text.slice(300)]) })
  const found = await listBackups({ node: 'pi-1', path: '/mnt' }, { sessions, clock: fakeClock() }, signal)
  t.same(
    found.map(({ time }) => time.slice(8, 10)),
    ['29', '28', '27'],
  )
  t.same(requests, [{ node: 'pi-1', wanted: { backup: { list: { path: '/mnt' } } } }])
})

test('a folder with many manifests that are as large as may be is read in short turns', async (t) => {
  const large = (at: number) => {
    const name = `default_db_20261129T030000Z_${String(at).padStart(8, '0')}`
    const accessModes = Array.from({ length: 1_700 }, (_, mode) => String(mode % 10))
    return JSON.stringify({
      ...manifestOf({ ...facts, bytes: 1, contentBytes: 1, sha256: '00' }, 'm'),
      name,
      accessModes,
    })
  }
  const text = Buffer.from(Array.from({ length: 300 }, (_, at) => `${large(at)}\n`).join(''))
  const pieces = Array.from({ length: Math.ceil(text.length / 60_000) }, (_, at) =>
    text.subarray(at * 60_000, (at + 1) * 60_000),
  )
  const { sessions } = playedNodes({ 'pi-1': sendingAll(pieces) })
  const act = () => listBackups({ node: 'pi-1', path: '/mnt' }, { sessions, clock: fakeClock() }, signal)
  t.equal((await act()).length, 300, 'also those whose line is in two pieces')
  t.same((await turnsAboveBudget([{ what: 'list', bytes: text.length, act }], 20)).above, [])
})
