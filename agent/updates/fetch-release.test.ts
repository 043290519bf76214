import { createHash, generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { readSignatureKey, signatureKeyText, signFile } from '../../daemon/updates/minisign.ts'
import type { ReleaseManifest } from '../../daemon/updates/release-manifest.ts'
import type { Allowance } from './download-allowance.ts'
import { fetchRelease, type ReleaseFetch } from './fetch-release.ts'

const { privateKey } = generateKeyPairSync('ed25519')
const publicKey = signatureKeyText(privateKey)
const signatureName = `release.json.${readSignatureKey(publicKey)?.id}.minisig`
const archiveName = 'bramble-agent_1.5.0_arm64.tar'
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

/** A controller with a release of 600 kB, and a machine that downloads it. */
function world(
  t: Test,
  given: { readonly signs?: typeof privateKey; readonly manifest?: Partial<ReleaseManifest> } = {},
) {
  const archive = Buffer.from(Uint8Array.from({ length: 600_000 }, (_, at) => (at * 31) % 251))
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ format: 1, program: 'bramble-agent', version: '1.5.0', sequence: 15, floor: 1, runtime: '22' },
      archives: { arm64: { size: archive.length, sha256: sha256(archive) } },
      ...given.manifest,
    }),
  )
  const files = new Map<string, Buffer>([
    ['release.json', manifest],
    [signatureName, Buffer.from(signFile(manifest, given.signs ?? privateKey, 'bramble-agent 1.5.0'))],
    [archiveName, archive],
  ])
  const folder = t.testdir()
  const asked: string[] = []
  const now = { bytes: Number.MAX_SAFE_INTEGER, spent: 0, failAfter: Number.MAX_SAFE_INTEGER }
  const fetch: ReleaseFetch = {
    source: {
      async read(file, from, most) {
        if (asked.length >= now.failAfter) throw new Error('connection reset')
        const whole = files.get(file)
        asked.push(`${file} ${from}`)
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
    allowance: async (): Promise<Allowance> =>
      now.bytes > now.spent
        ? { may: 'download', bytes: now.bytes - now.spent }
        : { may: 'wait', reason: 'the bytes of this day are used up' },
    async spend(bytes) {
      now.spent += bytes
    },
    installed: async () => [],
    log: quietLog(t),
  }
  const place = join(folder, fetch.wanted.digest)
  return { fetch, files, asked, now, folder, place, archive }
}

test('a release is downloaded in ranges, with its signatures', async (t) => {
  const { fetch, asked, place, archive } = world(t)
  t.same(await fetchRelease(fetch), { outcome: 'fetched', from: place })
  t.same(asked, [
    'release.json 0',
    `${signatureName} 0`,
    `${archiveName} 0`,
    `${archiveName} 262144`,
    `${archiveName} 524288`,
  ])
  t.ok(readFileSync(join(place, archiveName)).equals(archive))
  t.same(readdirSync(place).sort(), [archiveName, 'release.json', signatureName].sort())
  t.same(await fetchRelease(fetch), { outcome: 'fetched', from: place })
  t.equal(asked.length, 5, 'what is there is not downloaded again')
})

test('a download that was interrupted continues where it ended', async (t) => {
  const { fetch, asked, now, place, archive } = world(t)
  now.failAfter = 4
  await t.rejects(fetchRelease(fetch), { message: 'connection reset' })
  now.failAfter = Number.MAX_SAFE_INTEGER
  asked.length = 0
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same(asked, [`${archiveName} 524288`])
  t.ok(readFileSync(join(place, archiveName)).equals(archive))
})

test('a download that a power cut has shortened continues there', async (t) => {
  const { fetch, asked, now, place } = world(t)
  now.failAfter = 4
  await t.rejects(fetchRelease(fetch))
  truncateSync(join(place, `${archiveName}.part`), 300_000)
  now.failAfter = Number.MAX_SAFE_INTEGER
  asked.length = 0
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
  t.same(asked, [`${archiveName} 300000`, `${archiveName} 562144`])
})

test('a budget ends the download, and another day continues it', async (t) => {
  const { fetch, now, asked } = world(t)
  now.bytes = 100_000
  t.same(await fetchRelease(fetch), { outcome: 'waiting', reason: 'the bytes of this day are used up' })
  t.equal(now.spent, 100_000, 'not one byte more')
  const before = asked.length
  t.match(await fetchRelease(fetch), { outcome: 'waiting' })
  t.equal(asked.length, before, 'nothing is asked for meanwhile')
  now.bytes = 10_000_000
  t.match(await fetchRelease(fetch), { outcome: 'fetched' })
})

test('an archive that was damaged is downloaded once more, and no further', async (t) => {
  const { fetch, files, asked, archive } = world(t)
  files.set(archiveName, Buffer.concat([archive.subarray(0, -1), Buffer.from([archive.at(-1) === 0 ? 1 : 0])]))
  t.match(await fetchRelease(fetch), { outcome: 'waiting', reason: /downloaded again/ })
  t.match(await fetchRelease(fetch), { outcome: 'blocked', reason: /not the one that the publisher signed/ })
  const before = asked.length
  t.match(await fetchRelease(fetch), { outcome: 'blocked' })
  t.equal(asked.length, before, 'no byte is spent on it any longer')
})

test('nothing of an archive is downloaded of a release that is not signed, or that the machine cannot install', async (t) => {
  const other = world(t, { signs: generateKeyPairSync('ed25519').privateKey })
  t.match(await fetchRelease(other.fetch), { outcome: 'blocked', reason: /signed by 0 of the keys/ })
  const unsigned = world(t)
  unsigned.files.delete(signatureName)
  t.match(await fetchRelease(unsigned.fetch), { outcome: 'blocked', reason: /signed by 0 of the keys/ })
  const full = world(t)
  const admit = async () => ({ ok: false, why: 'The disk has 1 MiB free' }) as const
  t.same(await fetchRelease({ ...full.fetch, admit }), { outcome: 'blocked', reason: 'The disk has 1 MiB free' })
  for (const { asked } of [other, unsigned, full])
    t.notOk(
      asked.some((one) => one.startsWith(archiveName)),
      asked.join(),
    )
})

test('a release.json that the controller did not name is refused', async (t) => {
  const { fetch } = world(t)
  const wanted = { ...fetch.wanted, digest: 'f'.repeat(64) }
  t.match(await fetchRelease({ ...fetch, wanted }), { outcome: 'blocked', reason: /not the one that the controller/ })
  const renamed = { ...fetch.wanted, version: '1.6.0' }
  t.match(await fetchRelease({ ...fetch, wanted: renamed }), { outcome: 'blocked', reason: /calls it 1\.6\.0/ })
})

test('files that are missing, too long, or of another size block', async (t) => {
  const missing = world(t)
  missing.files.delete('release.json')
  t.match(await fetchRelease(missing.fetch), { outcome: 'blocked', reason: /does not have release 1\.5\.0/ })
  const without = world(t)
  without.files.delete(archiveName)
  t.match(await fetchRelease(without.fetch), { outcome: 'blocked', reason: /does not have bramble-agent_1\.5\.0/ })
  const long = world(t)
  long.files.set(signatureName, Buffer.alloc(70_000))
  t.match(await fetchRelease(long.fetch), { outcome: 'blocked', reason: /larger than 65536 bytes/ })
  const larger = world(t)
  larger.files.set(archiveName, Buffer.alloc(700_000))
  t.match(await fetchRelease(larger.fetch), { outcome: 'blocked', reason: /700000 bytes at the controller/ })
})

test('downloads of other releases are removed', async (t) => {
  const { fetch, folder } = world(t)
  writeFileSync(join(folder, 'rest'), 'x')
  await fetchRelease(fetch)
  t.same(readdirSync(folder), [fetch.wanted.digest])
})
