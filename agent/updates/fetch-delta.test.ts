import { createHash, generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { deltaFileName } from '../../daemon/updates/deltas/choose-delta.ts'
import { emptyArchive, type InstalledArchive } from '../../daemon/updates/deltas/installed-archive.ts'
import { makeDelta } from '../../daemon/updates/deltas/make-delta.ts'
import { readSignatureKey, signatureKeyText, signFile } from '../../daemon/updates/minisign.ts'
import { fetchRelease, type ReleaseFetch } from './fetch-release.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const publicKey = signatureKeyText(privateKey)
const signatureName = `release.json.${readSignatureKey(publicKey)?.id}.minisig`
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
const archiveName = 'bramble-agent_1.5.0_arm64.tar'
const ofRelease = { program: 'bramble-agent', version: '1.5.0' }

const texts = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) =>
    createHash('sha256')
      .update(`${from + at}`)
      .digest('base64'),
  ).join('')
const earlier = Buffer.from(texts(0, 15_000))
const archive = Buffer.from(texts(0, 7000) + texts(20_000, 20_200) + texts(7100, 15_000))
const nothing = Buffer.alloc(0)
const ofEarlier = makeDelta(earlier, archive)
const ofNothing = makeDelta(nothing, archive)
const nameOf = (base: Uint8Array) => deltaFileName(ofRelease, 'arm64', { base: sha256(base) })
const [earlierName, nothingName] = [nameOf(earlier), nameOf(nothing)]

const installedFrom = (bytes: Buffer): InstalledArchive => ({
  size: bytes.length,
  read: async (from, most) => bytes.subarray(from, from + most),
})

/** A controller with a release of 660 kB and its deltas, and a machine that runs the earlier version. */
function world(t: Test) {
  const entry = (base: Buffer, delta: Buffer) => ({ base: sha256(base), size: delta.length, sha256: sha256(delta) })
  const deltas = [entry(nothing, ofNothing), entry(earlier, ofEarlier)]
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ format: 1, ...ofRelease, sequence: 15, floor: 1, runtime: '22' },
      archives: { arm64: { size: archive.length, sha256: sha256(archive), deltas } },
    }),
  )
  const files = new Map<string, Buffer>([
    ['release.json', manifest],
    [signatureName, Buffer.from(signFile(manifest, privateKey, ''))],
    [archiveName, archive],
    [earlierName, ofEarlier],
    [nothingName, ofNothing],
  ])
  const folder = t.testdir()
  const asked: string[] = []
  const now = {
    bytes: Number.MAX_SAFE_INTEGER,
    spent: 0,
    failAfter: Number.MAX_SAFE_INTEGER,
    installed: [emptyArchive, installedFrom(earlier)] as readonly InstalledArchive[],
  }
  const fetch: ReleaseFetch = {
    source: {
      async read(file, from, most) {
        if (asked.length >= now.failAfter) throw new Error('connection reset')
        const whole = files.get(file)
        asked.push(file)
        return whole && { size: whole.length, bytes: whole.subarray(from, from + most) }
      },
    },
    folder,
    wanted: { version: '1.5.0', sequence: 15, digest: sha256(manifest) },
    arch: 'arm64',
    keys: { threshold: 1, keys: [publicKey] },
    admit: async () => ({
      ok: true,
      value: { version: '1.5.0', sequence: 15, digest: sha256(archive), size: archive.length },
    }),
    allowance: async () =>
      now.bytes > now.spent
        ? { may: 'download', bytes: now.bytes - now.spent }
        : { may: 'wait', reason: 'the bytes of this day are used up' },
    async spend(bytes) {
      now.spent += bytes
    },
    installed: async () => now.installed,
    log: quietLog(t),
  }
  const place = join(folder, fetch.wanted.digest)
  const got = () => readFileSync(join(place, archiveName))
  return { fetch, files, asked, now, place, got }
}

const small = (asked: readonly string[]) => asked.filter((name) => !/^release\.json/.test(name))

test('a machine with the earlier version downloads the delta from it, and nothing else', async (t) => {
  const { fetch, asked, now, place, got } = world(t)
  t.same(await fetchRelease(fetch), { outcome: 'fetched', from: place })
  t.same(small(asked), [earlierName])
  t.ok(got().equals(archive))
  t.same(readdirSync(place).toSorted(), [archiveName, 'release.json', signatureName])
  t.ok(now.spent < archive.length / 20, `${now.spent} bytes for an archive of ${archive.length}`)
  asked.length = 0
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same(asked, [], 'what is there is not downloaded again')
})

test('a machine with another version downloads the archive compressed, or whole where there is no such delta', async (t) => {
  const { fetch, asked, now, got } = world(t)
  now.installed = [emptyArchive, installedFrom(archive.subarray(1))]
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.ok(small(asked).every((name) => name === nothingName))
  t.ok(got().equals(archive))
  const other = world(t)
  other.now.installed = []
  t.match(await fetchRelease(other.fetch), { outcome: 'fetched' })
  t.ok(small(other.asked).every((name) => name === archiveName))
})

test('a delta that the controller does not have is left out, and used once it is there', async (t) => {
  const { fetch, files, asked, now, got, place } = world(t)
  files.delete(earlierName)
  files.delete(nothingName)
  now.bytes = 2500
  t.match(await fetchRelease(fetch), { outcome: 'waiting' })
  t.same([...new Set(small(asked))], [earlierName, nothingName, archiveName])
  t.notOk(readdirSync(place).some((name) => name.endsWith('.refused')))
  files.set(earlierName, ofEarlier)
  now.bytes = Number.MAX_SAFE_INTEGER
  asked.length = 0
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same([...new Set(small(asked))], [earlierName])
  t.ok(got().equals(archive))
})

const faults: { readonly [name: string]: (files: Map<string, Buffer>) => void } = {
  'of another size': (files) => files.set(earlierName, Buffer.concat([ofEarlier, nothing, Buffer.from('x')])),
  'with other bytes than the signed ones': (files) =>
    files.set(earlierName, Buffer.from(ofEarlier.map((byte, at) => (at === 99 ? byte ^ 1 : byte)))),
}
for (const [name, spoil] of Object.entries(faults)) {
  test(`a delta ${name} is refused, and another one is downloaded`, async (t) => {
    const { fetch, files, asked, got, place } = world(t)
    spoil(files)
    t.match(await fetchRelease(fetch), { outcome: 'fetched' })
    t.same([...new Set(small(asked))], [earlierName, nothingName])
    t.ok(got().equals(archive))
    t.ok(readFileSync(join(place, `${earlierName}.refused`), 'utf8').includes(earlierName))
  })
}

test('where every delta is refused the whole archive is downloaded, also after an interruption', async (t) => {
  const { fetch, files, asked, now, got } = world(t)
  files.set(nothingName, Buffer.alloc(ofNothing.length))
  const usual = installedFrom(earlier)
  let left = Math.ceil(earlier.length / 65_536)
  // The package is replaced after its digest was read.
  const read = async (from: number, most: number) => {
    const bytes = await usual.read(from, most)
    return left-- > 0 ? bytes : bytes.map((byte) => byte ^ 1)
  }
  now.installed = [emptyArchive, { size: usual.size, read }]
  now.failAfter = 7
  await t.rejects(fetchRelease(fetch), { message: 'connection reset' })
  now.failAfter = Number.MAX_SAFE_INTEGER
  const before = asked.length
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same([...new Set(asked.slice(before))], [archiveName], 'no delta is tried again')
  t.ok(got().equals(archive))
})

test('a delta is downloaded within the budget, and continues where it ended', async (t) => {
  const { fetch, now, asked, got } = world(t)
  now.bytes = 2500
  t.match(await fetchRelease(fetch), { outcome: 'waiting', reason: /bytes of this day/ })
  t.equal(now.spent, 2500, 'not one byte more')
  now.bytes = 1_000_000
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same([...new Set(small(asked))], [earlierName])
  t.ok(got().equals(archive))
})

test('without an answer of the controller nothing is refused', async (t) => {
  const { fetch, now, asked, place } = world(t)
  now.failAfter = 2
  await t.rejects(fetchRelease(fetch), { message: 'connection reset' })
  t.notOk(readdirSync(place).some((name) => name.endsWith('.refused')))
  now.failAfter = Number.MAX_SAFE_INTEGER
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same(small(asked), [earlierName])
})

test('an archive that is nearly downloaded is not begun again as a delta', async (t) => {
  const { fetch, asked, now, place, got } = world(t)
  now.failAfter = 2
  await t.rejects(fetchRelease(fetch))
  writeFileSync(join(place, `${archiveName}.part`), archive.subarray(0, -100))
  now.failAfter = Number.MAX_SAFE_INTEGER
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same(small(asked), [archiveName])
  t.ok(got().equals(archive))
})

test('what an interrupted delta left is written again from its beginning', async (t) => {
  const { fetch, now, place, got } = world(t)
  now.failAfter = 2
  await t.rejects(fetchRelease(fetch))
  writeFileSync(join(place, `${archiveName}.made`), 'half of an archive')
  now.failAfter = Number.MAX_SAFE_INTEGER
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.ok(got().equals(archive))
  t.notOk(readdirSync(place).includes(`${archiveName}.made`))
})
