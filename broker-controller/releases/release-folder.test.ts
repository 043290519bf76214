import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { releaseFolder, storedReleases } from './release-folder.ts'

const digest = 'a'.repeat(64)

function aDataDirectory(t: Test) {
  const dataDir = t.testdir({ 'store.db': 'secret' })
  mkdirSync(releaseFolder(dataDir, digest), { recursive: true })
  writeFileSync(join(releaseFolder(dataDir, digest), 'agent.tar'), '0123456789')
  return dataDir
}

test('a part of a file is read, with the size of the whole', async (t) => {
  const releases = storedReleases(aDataDirectory(t))
  const read = async (from: number, most: number) => {
    const found = await releases.read({ digest, file: 'agent.tar' }, from, most)
    return found && [found.size, found.bytes.toString()]
  }
  t.same(await read(0, 100), [10, '0123456789'])
  t.same(await read(3, 4), [10, '3456'])
  t.same(await read(9, 4), [10, '9'])
  t.same(await read(10, 4), [10, ''])
  t.same(await read(11, 4), [10, ''])
})

test('what is not a file of a release is not there', async (t) => {
  const dataDir = aDataDirectory(t)
  const folder = releaseFolder(dataDir, digest)
  symlinkSync('../../store.db', join(folder, 'link'))
  mkdirSync(join(folder, 'folder'))
  const releases = storedReleases(dataDir)
  for (const file of ['other', 'link', 'folder']) t.equal(await releases.read({ digest, file }, 0, 10), undefined, file)
  t.equal(await releases.read({ digest: 'b'.repeat(64), file: 'agent.tar' }, 0, 10), undefined)
})
