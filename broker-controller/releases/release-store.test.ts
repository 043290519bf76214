import { createHash, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { deltaFileName } from '../../daemon/updates/deltas/choose-delta.ts'
import { readSignatureKey, signatureKeyText, signFile } from '../../daemon/updates/minisign.ts'
import { releaseFolder } from './release-folder.ts'
import { addRelease, listReleases } from './release-store.ts'

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')

const keys = [1, 2].map(() => generateKeyPairSync('ed25519').privateKey)
const signatureFiles = keys.map((key) => `release.json.${readSignatureKey(signatureKeyText(key))?.id}.minisig`)

type Delta = { readonly base: string; readonly baseVersion?: string; readonly content: string }

/** A folder as scripts/release.ts makes it. */
function published(
  place: string,
  version: string,
  sequence: number,
  program = 'bramble-agent',
  deltas: readonly Delta[] = [],
) {
  const folder = join(place, version)
  mkdirSync(folder, { recursive: true })
  const archive = `archive of ${version}`
  const manifest = JSON.stringify({
    ...{ format: 1, program, version, sequence, floor: 1, runtime: '22' },
    archives: {
      arm64: {
        ...{ size: archive.length, sha256: sha256(archive) },
        ...(deltas.length > 0 && {
          deltas: deltas.map(({ content, ...one }) => ({ ...one, size: content.length, sha256: sha256(content) })),
        }),
      },
    },
  })
  for (const { base, content } of deltas)
    writeFileSync(join(folder, deltaFileName({ program, version }, 'arm64', { base })), content)
  writeFileSync(join(folder, 'release.json'), manifest)
  const names = ['release.json.minisig', 'release.json.second.minisig']
  for (const [at, key] of keys.entries())
    writeFileSync(join(folder, names[at] ?? ''), signFile(Buffer.from(manifest), key, version))
  writeFileSync(join(folder, `${program}_${version}_arm64.tar`), archive)
  writeFileSync(join(folder, 'key.pem'), 'secret')
  return { folder, digest: sha256(manifest) }
}

function opened(t: Test) {
  const place = t.testdir()
  return { place, dataDir: join(place, 'data') }
}

test('a release is added with its archives, signatures by their keys, and nothing else of its folder', async (t) => {
  const { place, dataDir } = opened(t)
  t.same(await listReleases(dataDir), [])
  const old = published(place, '1.4.0', 14)
  const { folder, digest } = published(place, '1.5.0', 15)
  const downloads = [{ arch: 'arm64', size: 'archive of 1.5.0'.length }]
  const added = {
    program: 'bramble-agent',
    version: '1.5.0',
    sequence: 15,
    floor: 1,
    digest,
    archs: ['arm64'],
    downloads,
  }
  t.same(await addRelease(folder, dataDir), added)
  t.same(await addRelease(folder, dataDir), added, 'once more')
  await addRelease(old.folder, dataDir)
  t.same(readdirSync(releaseFolder(dataDir, digest)).sort(), [
    'bramble-agent_1.5.0_arm64.tar',
    'release.json',
    ...signatureFiles.toSorted(),
  ])
  t.same(readdirSync(releaseFolder(dataDir)).sort(), [digest, old.digest].sort())
  t.same(
    (await listReleases(dataDir)).map(({ version }) => version),
    ['1.5.0', '1.4.0'],
  )
})

test('deltas are kept with the archives, and each that is signed must be there', async (t) => {
  const { place, dataDir } = opened(t)
  const [earlier, nothing] = ['1', 'e'].map((digit) => digit.repeat(64))
  if (!earlier || !nothing) throw new Error('No digests')
  const deltas = [
    { base: earlier, baseVersion: '1.4.0', content: 'one' },
    { base: nothing, content: 'packed' },
  ]
  const { folder, digest } = published(place, '1.5.0', 15, 'bramble-agent', deltas)
  const { downloads } = await addRelease(folder, dataDir)
  t.same(downloads, [
    { arch: 'arm64', fromVersion: '1.4.0', size: 3 },
    { arch: 'arm64', size: 6 },
  ])
  const kept = releaseFolder(dataDir, digest)
  const names = [earlier, nothing].map((base) => `bramble-agent_1.5.0_arm64.from-${base.slice(0, 16)}.delta`)
  for (const name of names) t.ok(readdirSync(kept).includes(name), name)
  t.same((await listReleases(dataDir))[0]?.downloads, downloads)
  writeFileSync(join(kept, names[1] ?? ''), 'cut')
  t.same(await listReleases(dataDir), [], 'one of which a file is cut short is not offered')
  rmSync(join(kept, names[1] ?? ''))
  t.same(await listReleases(dataDir), [], 'nor one of which a file is gone')
  writeFileSync(join(folder, names[0] ?? ''), 'two')
  await t.rejects(addRelease(folder, dataDir), { message: /is not the delta that release\.json names/ })
  rmSync(join(folder, names[0] ?? ''))
  await t.rejects(addRelease(folder, dataDir), { code: 'ENOENT' })
})

test('releases of the controller are kept beside those of the agent', async (t) => {
  const { place, dataDir } = opened(t)
  const { folder, digest } = published(place, '1.5.0', 15, 'bramble-controller')
  await addRelease(folder, dataDir)
  await addRelease(published(place, '1.4.0', 14).folder, dataDir)
  t.ok(readdirSync(releaseFolder(dataDir, digest)).includes('bramble-controller_1.5.0_arm64.tar'))
  t.same(
    (await listReleases(dataDir)).map(({ program, version }) => `${program} ${version}`),
    ['bramble-controller 1.5.0', 'bramble-agent 1.4.0'],
  )
})

test('a folder without a whole release is refused, and nothing is served of it', async (t) => {
  const { place, dataDir } = opened(t)
  const damaged = published(place, '1.5.0', 15).folder
  writeFileSync(join(damaged, 'bramble-agent_1.5.0_arm64.tar'), 'archive of 1.5.1')
  await t.rejects(addRelease(damaged, dataDir), { message: /is not the archive that release\.json names/ })
  const unsigned = published(place, '1.7.0', 17).folder
  writeFileSync(join(unsigned, 'release.json.minisig'), 'signature')
  await t.rejects(addRelease(unsigned, dataDir), { message: /is not a signature of minisign/ })
  const other = published(place, '1.6.0', 16).folder
  writeFileSync(join(other, 'release.json'), '{"program":"bramble-certs"}')
  const message = /is not that of a release of bramble-agent or bramble-controller/
  await t.rejects(addRelease(other, dataDir), { message })
  await t.rejects(addRelease(join(place, 'nowhere'), dataDir), { code: 'ENOENT' })
  for (const [version, base] of [
    ['../1.8.0', 'e'],
    ['1.8.0', '../../../'],
  ] as const) {
    const outside = published(place, '1.8.0', 18).folder
    const archives = { arm64: { size: 1, sha256: 'a', deltas: [{ base, size: 1, sha256: 'a' }] } }
    writeFileSync(join(outside, 'bramble-agent_1.8.0_arm64.tar'), 'x')
    archives.arm64.sha256 = sha256('x')
    const program = { program: 'bramble-agent', version, sequence: 18, floor: 1 }
    writeFileSync(join(outside, 'release.json'), JSON.stringify({ ...program, archives }))
    await t.rejects(addRelease(outside, dataDir), { message: /which cannot be served/ }, 'a path out of the folder')
  }
  t.same(await listReleases(dataDir), [])
})
