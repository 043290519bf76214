import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type Test, t, test } from 'tap'
import type { Secret } from '../../../api/secret.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { storeContract } from '../../testing/store-contract.ts'
import { formatSecretKeys, newSecretKey, parseSecretKeys } from '../encryption/secret-keys.ts'
import { openSqliteStore } from './sqlite-store.ts'

const log = openLog({ level: 'error', format: 'json', write: () => undefined })
const plain = 'aHVudGVyMiBhbmQgbW9yZQ=='

const contractFolder = mkdtempSync(join(tmpdir(), 'protected-secrets-'))
t.teardown(() => rmSync(contractFolder, { recursive: true }))
let files = 0

storeContract(async ({ historyLength }) => {
  const path = join(contractFolder, `${++files}.db`)
  const needs = { path, clock, log, historyLength, statusDelayMs: 20, secretsKeyFile: `${path}.key` }
  return (await openSqliteStore(needs)).store
})

test('Secrets are not readable in any file of the store, and are there after opening it again', async (t) => {
  const place = aPlace(t)
  const { store } = await opened(t, place)
  const made = await store.create('secrets', aSecret('db'))
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: named('map'), data: { a: plain } })
  t.equal(rowsOf(place).filter(({ body }) => body.includes(plain)).length, 1, 'only the ConfigMap')
  t.match(rowsOf(place).find(({ resource }) => resource === 'secrets')?.body, /^enc:aesgcm:v1:/)
  await store.close()
  t.equal(statSync(place.secretsKeyFile).mode & 0o777, 0o600)
  const second = await opened(t, place)
  t.same(await second.store.get('secrets', { namespace: 'default', name: 'db' }), made)
})

test('a store with plain Secrets is migrated, and nothing of them remains in its files', async (t) => {
  const place = aPlace(t)
  const before = await opened(t, { path: place.path })
  const secrets = await Promise.all(['a', 'b', 'c'].map((name) => before.store.create('secrets', aSecret(name))))
  await before.store.create('secrets', aSecret('gone'))
  await before.store.delete('secrets', { namespace: 'default', name: 'gone' })
  await before.store.close()
  asFormat(place, 2)
  t.ok(textOf(place).includes(plain))
  const { store } = await opened(t, place)
  t.same((await store.list('secrets')).items, secrets)
  t.notOk(textOf(place).includes(plain))
  await store.close()
  t.notOk(textOf(place).includes(plain))
})

test('a migration that ends at any point goes on at the next start', async (t) => {
  const place = aPlace(t)
  const before = await opened(t, { path: place.path })
  const secrets = await Promise.all(['a', 'b'].map((name) => before.store.create('secrets', aSecret(name))))
  await before.store.close()
  // The key is written first; then some of the bodies are encrypted.
  const key = newSecretKey()
  writeFileSync(place.secretsKeyFile, formatSecretKeys([key]), { mode: 0o600 })
  const half = await opened(t, place)
  await half.store.close()
  const database = new Database(place.path)
  database
    .prepare("UPDATE objects SET body = ? WHERE name = 'b' AND resource = 'secrets'")
    .run(JSON.stringify(secrets[1]))
  database.exec("INSERT OR REPLACE INTO counters VALUES ('plainSecretPages', 1)")
  database.close()
  const { store } = await opened(t, place)
  t.same((await store.list('secrets')).items, secrets)
  t.same(parseSecretKeys(readFileSync(place.secretsKeyFile, 'utf8')), [key])
  t.notOk(textOf(place).includes(plain))
})

test('a rotation encrypts all Secrets with another key and removes the one before', async (t) => {
  const place = aPlace(t)
  const { store, rotateSecretsKey } = await opened(t, place)
  const many = Array.from({ length: 450 }, (_, at) => store.create('secrets', aSecret(`s-${at}`)))
  const large = store.create('secrets', { ...aSecret('large'), data: { a: 'QUFB'.repeat(300_000) } })
  const made = await Promise.all([...many, large])
  const [before] = keysIn(place)
  const rotating = rotateSecretsKey?.()
  await t.rejects(Promise.resolve(rotateSecretsKey?.()), { message: /in progress/ })
  const meanwhile = await store.create('secrets', aSecret('meanwhile'))
  const id = await rotating
  t.not(id, before?.id)
  t.same(
    keysIn(place).map((key) => key.id),
    [id],
  )
  const bodies = rowsOf(place).filter(({ resource }) => resource === 'secrets')
  t.ok(bodies.every(({ body }) => body.startsWith(`enc:aesgcm:v1:${id}:`)))
  t.equal(bodies.length, 452)
  await store.close()
  const second = await opened(t, place)
  t.equal((await second.store.list('secrets')).items.length, 452)
  for (const one of [made[0], made.at(-1), meanwhile]) {
    const { namespace = '', name = '' } = one?.metadata ?? {}
    t.same(await second.store.get('secrets', { namespace, name }), one)
  }
})

test('a rotation that was interrupted is finished at the next start', async (t) => {
  const place = aPlace(t)
  const first = await opened(t, place)
  const made = await first.store.create('secrets', aSecret('db'))
  await first.store.close()
  const wanted = newSecretKey()
  const [old] = keysIn(place)
  writeFileSync(place.secretsKeyFile, `${formatSecretKeys([wanted])}${old?.key.toString('base64')}\n`)
  const { store } = await opened(t, place)
  t.same(await store.get('secrets', { namespace: 'default', name: 'db' }), made)
  t.same(keysIn(place), [wanted])
})

test('a row that was moved to another name is refused with a remedy', async (t) => {
  const place = aPlace(t)
  const first = await opened(t, place)
  await first.store.create('secrets', aSecret('db'))
  await first.store.close()
  const database = new Database(place.path)
  database.exec("UPDATE objects SET name = 'other' WHERE resource = 'secrets'")
  database.close()
  await t.rejects(opened(t, place), {
    name: 'SecretsKeyError',
    message: /Cannot decrypt Secret default\/other in .*was changed outside of the controller.*Restore a backup/,
  })
})

test('no key is made for a store that needs another one', async (t) => {
  const place = aPlace(t)
  const first = await opened(t, place)
  await first.store.create('secrets', aSecret('db'))
  await first.store.close()
  const copy = `${place.secretsKeyFile}.copy`
  copyFileSync(place.secretsKeyFile, copy)
  rmSync(place.secretsKeyFile)
  await t.rejects(opened(t, place), { name: 'SecretsKeyError', message: /secrets\.key does not exist/ })
  t.notOk(existsSync(place.secretsKeyFile))
  copyFileSync(copy, place.secretsKeyFile)
  t.equal((await (await opened(t, place)).store.list('secrets')).items.length, 1)
})

type Place = { readonly path: string; readonly secretsKeyFile?: string }

async function opened(t: Test, place: Place) {
  const store = await openSqliteStore({ ...place, clock, log: quietLog(t) })
  t.teardown(() => store.store.close())
  return store
}

function aFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'protected-secrets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

function aPlace(t: Test) {
  const folder = aFolder(t)
  return { path: join(folder, 'store.db'), secretsKeyFile: join(folder, 'secrets.key') }
}

function aSecret(name: string): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: named(name), data: { password: plain } }
}

function named(name: string) {
  return { name, namespace: 'default' }
}

function keysIn({ secretsKeyFile }: { readonly secretsKeyFile: string }) {
  return parseSecretKeys(readFileSync(secretsKeyFile, 'utf8')) ?? []
}

/** Rows of a store that may be open: a copy is read. */
function rowsOf({ path }: Place): readonly { readonly resource: string; readonly body: string }[] {
  for (const end of ['', '-wal']) if (existsSync(path + end)) copyFileSync(path + end, `${path}.copy${end}`)
  const database = new Database(`${path}.copy`)
  try {
    return database.prepare<[], { resource: string; body: string }>('SELECT resource, body FROM objects').all()
  } finally {
    database.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${path}.copy${end}`, { force: true })
  }
}

function textOf({ path }: Place): string {
  return ['', '-wal']
    .filter((end) => existsSync(path + end))
    .map((end) => readFileSync(path + end, 'latin1'))
    .join('')
}

/** As the version before encryption left it. */
function asFormat({ path }: Place, format: number): void {
  const database = new Database(path)
  database.exec("DELETE FROM counters WHERE name = 'plainSecretPages'")
  database.pragma(`user_version = ${format}`)
  database.close()
}
