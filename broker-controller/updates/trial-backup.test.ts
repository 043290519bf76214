import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import type { ReleaseManifest } from '../../daemon/updates/release-manifest.ts'
import { backUpBeforeTrial, formatRefusal, trialBackupName } from './trial-backup.ts'

const manifest: ReleaseManifest = {
  ...{ format: 1, program: 'bramble-controller', version: '1.5.0', sequence: 5, floor: 1, runtime: '22' },
  ...{ archives: {}, storeFormats: [3, 4] },
}

/** The first bytes of a database of SQLite with this user version. */
function sqliteHeader(userVersion: number): Buffer {
  const header = Buffer.alloc(100)
  header.write('SQLite format 3\0')
  header.writeUInt32BE(userVersion, 60)
  return header
}

async function placesOf(t: Test) {
  const [dataDir, folder] = [join(testFolder(t), 'controller'), join(testFolder(t), 'updates')]
  for (const one of [dataDir, folder]) await mkdir(one, { recursive: true })
  return { dataDir, folder, backUp: (path: string) => writeFile(path, sqliteHeader(3)) }
}

test('a version is refused on a store whose format it does not use', async (t) => {
  t.equal(formatRefusal(manifest, 3), undefined)
  t.equal(formatRefusal(manifest, 4), undefined)
  t.match(formatRefusal(manifest, 2), /has format 2, and version 1\.5\.0 uses 3 and 4/)
  const { storeFormats: _, ...without } = manifest
  t.match(formatRefusal(without, 3), /names none/)
})

test('the backup is kept, and one of another format is not', async (t) => {
  const places = await placesOf(t)
  await writeFile(join(places.dataDir, 'store.db'), 'objects')
  const freeBytes = async () => 2 ** 30
  await backUpBeforeTrial(manifest, { ...places, freeBytes })
  t.same(await readFile(join(places.folder, trialBackupName)), sqliteHeader(3))
  const backUp = (path: string) => writeFile(path, sqliteHeader(2))
  await t.rejects(backUpBeforeTrial(manifest, { ...places, backUp, freeBytes }), { message: /has format 2/ })
  t.same(await readdir(places.folder), [trialBackupName])
  t.same(await readFile(join(places.folder, trialBackupName)), sqliteHeader(3))
})

test('the format in the header is the one that SQLite writes', async (t) => {
  const places = await placesOf(t)
  const path = join(places.dataDir, 'store.db')
  const database = new Database(path)
  database.pragma('user_version = 4')
  database.close()
  const backUp = (target: string) => copyFile(path, target)
  await backUpBeforeTrial({ ...manifest, storeFormats: [4] }, { ...places, backUp, freeBytes: async () => 2 ** 30 })
  t.same(await readdir(places.folder), [trialBackupName])
})

test('nothing is backed up of a controller with its store in etcd', async (t) => {
  const places = await placesOf(t)
  await backUpBeforeTrial(manifest, places)
  t.same(await readdir(places.folder), [])
})

test('without room for the backup no trial begins', async (t) => {
  const places = await placesOf(t)
  await writeFile(join(places.dataDir, 'store.db'), Buffer.alloc(3 * 2 ** 20))
  for (const full of [places.dataDir, places.folder]) {
    const freeBytes = async (path: string) => (path === full ? 2 ** 20 : 2 ** 30)
    await t.rejects(backUpBeforeTrial(manifest, { ...places, freeBytes }), {
      message: /needs 6 MiB, and .* has 1 free/,
    })
  }
})

test('a backup that fails leaves that of the trial before, and no trial begins', async (t) => {
  const places = await placesOf(t)
  await writeFile(join(places.dataDir, 'store.db'), 'objects')
  await writeFile(join(places.folder, trialBackupName), 'the last one')
  const freeBytes = async () => 2 ** 30
  const backUp = async (path: string) => {
    await writeFile(path, 'half of it')
    throw new Error('It was interrupted')
  }
  await t.rejects(backUpBeforeTrial(manifest, { ...places, backUp, freeBytes }), { message: 'It was interrupted' })
  t.same(await readdir(places.folder), [trialBackupName])
  t.equal(await readFile(join(places.folder, trialBackupName), 'utf8'), 'the last one')
})
