import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { updateFiles } from './update-files.ts'

const rules = { isMetered: true, bytesPerDay: 5, window: { fromMinute: 1, toMinute: 2 } }
const release = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64) }

function opened(t: Test) {
  const place = t.testdir()
  const folder = join(place, 'updates', 'agent')
  const ofPackage = join(place, 'package')
  mkdirSync(ofPackage)
  return { folder, ofPackage, files: updateFiles({ folder, package: ofPackage, dataDir: place, log: quietLog(t) }) }
}

test('the release that is wanted is kept until it is withdrawn', async (t) => {
  const { folder, files } = opened(t)
  t.equal(await files.wanted(), undefined)
  await files.saveWanted({ release, rules })
  t.same(await files.wanted(), { release, rules })
  t.same(readdirSync(folder), ['wanted.json'], 'and no other file')
  await files.saveWanted(undefined)
  t.equal(await files.wanted(), undefined)
})

test('a file that is damaged counts as none', async (t) => {
  const { folder, files } = opened(t)
  await files.saveWanted({ release, rules })
  for (const written of ['', '{"version":', '{"version":"1.5.0"}', '[]']) {
    writeFileSync(join(folder, 'wanted.json'), written)
    t.equal(await files.wanted(), undefined, written)
  }
})

test('without a package there is no version of it', async (t) => {
  const { ofPackage, files } = opened(t)
  t.equal(await files.base(), undefined)
  writeFileSync(join(ofPackage, 'release.json'), '{"version":"1.4.0","sequence":14}')
  t.same(await files.base(), { version: '1.4.0', sequence: 14 })
})

test('why a release is not installed is kept for the report', async (t) => {
  const { files } = opened(t)
  const note = { sequence: 15, outcome: 'blocked', reason: 'the disk is full' } as const
  await files.saveNote(note)
  t.same(await files.note(), note)
  await files.saveNote(undefined)
  t.equal(await files.note(), undefined)
  t.equal((await files.state()).highestSequence, 0)
  await files.saveSpent({ day: 3, bytes: 4 })
  t.same(await files.spent(), { day: 3, bytes: 4 })
})

test('how much of a release is downloaded is reported in steps of ten', async (t) => {
  const { folder, files } = opened(t)
  const own = join(folder, 'download', release.digest)
  t.equal(await files.downloadedPercent(release.digest), undefined)
  mkdirSync(own, { recursive: true })
  const archive = join(own, 'bramble-agent_1.5.0_arm64.tar.part')
  writeFileSync(archive, Buffer.alloc(470))
  t.equal(await files.downloadedPercent(release.digest), undefined, 'its size is not known')
  writeFileSync(join(own, 'release.json'), JSON.stringify({ archives: { arm64: { size: 1000 } } }))
  t.equal(await files.downloadedPercent(release.digest), 40)
  writeFileSync(archive, Buffer.alloc(2000))
  t.equal(await files.downloadedPercent(release.digest), 100)
  t.equal(await files.downloadedPercent('b'.repeat(64)), undefined)
  rmSync(archive)
  const base = 'c'.repeat(64)
  writeFileSync(
    join(own, 'release.json'),
    JSON.stringify({ archives: { arm64: { size: 1000, deltas: [{ base, size: 100 }] } } }),
  )
  writeFileSync(join(own, `bramble-agent_1.5.0_arm64.from-${base.slice(0, 16)}.delta.part`), Buffer.alloc(59))
  t.equal(await files.downloadedPercent(release.digest), 50, 'of a delta')
})
