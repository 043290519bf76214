import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { manifestOf, signedManifest } from '../../api/backups/backup-manifest.ts'
import { identityFile, newAgeIdentity } from '../../daemon/age/age-keys.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { type BackupKeys, backupKeyName, openBackupKeys } from './backup-keys.ts'

async function aDataFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'keys-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return { folder, file: join(folder, authorityFolderName, backupKeyName) }
}

const created = '2026-11-29T03:00:00Z'
const facts = {
  ...{ name: 'default_db_20261129T030000Z_1a2b3c4d', claim: 'default/db', volume: 'pv', accessModes: [] },
  ...{ time: created, consistency: 'live' as const, bytes: 1, contentBytes: 1, sha256: '00' },
}
const signedBy = (keys: BackupKeys) => {
  const all = { ...facts, recipient: keys.recipient }
  return manifestOf(all, keys.sign(signedManifest(all)))
}

test('the key is made once, for root alone, and is the same after a restart', async (t) => {
  const { folder, file } = await aDataFolder(t)
  const [one, other] = await Promise.all([openBackupKeys(folder, created), openBackupKeys(folder, created)])
  t.equal(one.recipient, other.recipient)
  t.equal((await openBackupKeys(folder, created)).recipient, one.recipient)
  t.equal((await stat(file)).mode & 0o777, 0o600)
  t.match(await readFile(file, 'utf8'), /# public key: age1/)
})

test('keys of other fleets that are added read, and the first one goes on to encrypt', async (t) => {
  const { folder, file } = await aDataFolder(t)
  const own = await openBackupKeys(folder, created)
  const elsewhere = await aDataFolder(t)
  const other = await openBackupKeys(elsewhere.folder, created)
  t.match(own.problemOf(signedBy(other)), /made with another key \(age1.*add that key to backup\.key/)
  await appendFile(file, await readFile(elsewhere.file, 'utf8'))
  const both = await openBackupKeys(folder, created)
  t.equal(both.recipient, own.recipient)
  t.equal(both.identities.length, 2)
  t.equal(both.problemOf(signedBy(other)), undefined)
})

test('a manifest that was changed, or signed by somebody who has the public key only, is not believed', async (t) => {
  const { folder } = await aDataFolder(t)
  const keys = await openBackupKeys(folder, created)
  const good = signedBy(keys)
  t.equal(keys.problemOf(good), undefined)
  for (const changed of [
    { ...good, sha256: '11' },
    { ...good, claim: 'default/other' },
    { ...good, base: good.name },
    { ...good, mac: '' },
    { ...good, mac: good.mac.slice(2) },
  ])
    t.match(keys.problemOf(changed), /was changed after the backup/)
})

test('a file without a key is not replaced', async (t) => {
  const { folder, file } = await aDataFolder(t)
  await openBackupKeys(folder, created)
  for (const text of ['', 'AGE-SECRET-KEY-1X\n', `${identityFile(newAgeIdentity(), created).slice(0, -20)}\n`]) {
    await writeFile(file, text)
    await t.rejects(openBackupKeys(folder, created), { message: /backup\.key: .*Restore it from a backup/ })
    t.equal(await readFile(file, 'utf8'), text)
  }
})
