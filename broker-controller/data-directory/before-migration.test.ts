import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type Test, test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { readBackup } from '../store/sqlite/sqlite-backup.ts'
import { storedFormat, storeFormat } from '../store/sqlite/sqlite-file.ts'
import { restore } from './backup.ts'
import { backUpBeforeMigration } from './before-migration.ts'
import { migrationBackupName, storeFileName } from './data-directory.ts'
import { openStore } from './open-store.ts'

test('a store of an earlier format is backed up before it is migrated, and the backup can be restored', async (t) => {
  const { dataDir, path, open } = await earlierStore(t)
  const { store } = await open()
  t.match((await store.list('configmaps')).items, [{ metadata: { name: 'kept' } }])
  await store.close()
  t.equal(storedFormat(path), storeFormat)
  const backup = join(dataDir, migrationBackupName)
  t.same([...readBackup(backup).authority.keys()], ['ca.key'])
  t.equal(storedFormat(backup), storeFormat - 1)
  const elsewhere = join(dataDir, '..', 'elsewhere')
  await restore(backup, elsewhere, false, '2026-03-01T12:00:00Z')
  t.equal(storedFormat(join(elsewhere, storeFileName)), storeFormat - 1)
})

test('a store of the present format is opened without a backup', async (t) => {
  const { dataDir, open } = await earlierStore(t)
  await (await open()).store.close()
  const before = readBackup(join(dataDir, migrationBackupName)).made
  await (await open()).store.close()
  t.equal(readBackup(join(dataDir, migrationBackupName)).made, before)
})

test('a version on trial leaves a store of an earlier format as it is', async (t) => {
  const { dataDir, path, open } = await earlierStore(t)
  await t.rejects(open({ mayMigrate: false }), { name: 'EarlierStoreError', message: /version on trial/ })
  t.equal(storedFormat(path), storeFormat - 1)
  t.notOk((await readdir(dataDir)).includes(migrationBackupName))
})

test('without room for a backup nothing is migrated', async (t) => {
  const { dataDir, path } = await earlierStore(t)
  const needs = { dataDir, clock, log: quietLog(t), freeBytes: async () => 4096 }
  await t.rejects(backUpBeforeMigration(needs), { name: 'EarlierStoreError', message: /are free\. Free space/ })
  t.equal(storedFormat(path), storeFormat - 1)
  t.notOk((await readdir(dataDir)).includes(migrationBackupName))
})

test('a migration that fails names the backup, and leaves the store as it was', async (t) => {
  const { dataDir, path, open } = await earlierStore(t)
  const database = new Database(path)
  // The last migration writes a counter.
  database.exec("CREATE TRIGGER no BEFORE INSERT ON counters BEGIN SELECT RAISE(ABORT, 'not now'); END")
  database.close()
  const backup = join(dataDir, migrationBackupName)
  await t.rejects(open(), { name: 'EarlierStoreError', message: new RegExp(`restore ${backup} --replace`) })
  t.equal(storedFormat(path), storeFormat - 1)
  t.match(readBackup(backup), { version: /./ })
})

/** A data directory with a store of the format before that of this version: the tables are the same, but for a counter. */
async function earlierStore(t: Test) {
  const dataDir = join(testFolder(t), 'controller')
  await mkdir(join(dataDir, 'authority'), { recursive: true })
  await writeFile(join(dataDir, 'authority', 'ca.key'), 'a key')
  const path = join(dataDir, storeFileName)
  const log = quietLog(t)
  const open = (more: { readonly mayMigrate?: boolean } = {}) => openStore({ dataDir, clock, log, ...more })
  const { store } = await open()
  await store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name: 'kept' },
  })
  await store.close()
  const database = new Database(path)
  database.exec("DELETE FROM counters WHERE name = 'plainSecretPages'")
  database.pragma(`user_version = ${storeFormat - 1}`)
  database.close()
  return { dataDir, path, open }
}
