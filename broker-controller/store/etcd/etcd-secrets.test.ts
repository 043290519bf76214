import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Secret } from '../../../api/secret.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { unowned } from '../../testing/unowned.ts'
import { SecretsKeyError } from '../store.ts'
import { etcdKeys } from './etcd-keys.ts'
import { readRange } from './etcd-range.ts'
import { openEtcdStore } from './etcd-store.ts'

const { url, place } = await etcdUnderTest()

function opening(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-secrets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return { ...place(), secretsKeyFile: join(folder, 'secrets.key') }
}

async function storedText(prefix: string): Promise<string> {
  const client = await rawClient(url)
  let text = ''
  await readRange(client, etcdKeys(prefix).all, (page) => {
    for (const { value } of page) text += value.toString('latin1')
  })
  client.close()
  return text
}

test('Secrets are encrypted in etcd, and read with the key after opening again', { skip }, async (t) => {
  const needs = opening(t)
  const first = await openEtcdStore(needs)
  const made = await first.store.create('secrets', aSecret('a'))
  const text = await storedText(needs.prefix)
  t.match(text, /enc:aesgcm:v1:[0-9a-f]{16}:/)
  t.notMatch(text, /c2VzYW1l/)
  await first.store.close()
  const second = await openEtcdStore(needs)
  t.same((await second.store.list('secrets')).items, [made])
  await second.store.close()
  rmSync(needs.secretsKeyFile)
  await t.rejects(openEtcdStore(needs), SecretsKeyError)
})

test('Secrets that were stored plain are encrypted at the start', { skip }, async (t) => {
  const needs = opening(t)
  const { secretsKeyFile: _, ...plain } = needs
  const first = await openEtcdStore(plain)
  for (let i = 0; i < 45; i++) await first.store.create('secrets', aSecret(`s-${i}`))
  await first.store.close()
  const second = await openEtcdStore(needs)
  t.teardown(() => second.store.close())
  t.notMatch(await storedText(needs.prefix), /c2VzYW1l/)
  t.equal((await second.store.list('secrets')).items.length, 45)
})

test('rotating the key encrypts all Secrets with another one, and readers see them all the time', {
  skip,
}, async (t) => {
  const needs = opening(t)
  const { store, rotateSecretsKey } = await openEtcdStore(needs)
  for (let i = 0; i < 25; i++) await store.create('secrets', aSecret(`s-${i}`))
  const before = readFileSync(needs.secretsKeyFile, 'utf8')
  const id = await rotateSecretsKey?.()
  const text = await storedText(needs.prefix)
  t.equal(text.split(`enc:aesgcm:v1:${id}:`).length - 1, 25)
  t.equal(text.split('enc:aesgcm:v1:').length - 1, 25)
  await store.update('secrets', aSecret('s-0', 'b3RoZXI='))
  await store.close()
  const again = await openEtcdStore(needs)
  t.equal((await again.store.get('secrets', { namespace: 'default', name: 's-0' }))?.data?.['word'], 'b3RoZXI=')
  await again.store.close()
  writeFileSync(needs.secretsKeyFile, before)
  await t.rejects(openEtcdStore(needs), SecretsKeyError)
})

test('a rotation without the store fails, and keeps the key that Secrets need', { skip }, async (t) => {
  const needs = opening(t)
  let isOwner = true
  const ownership = async () => {
    const { condition, ...owner } = await unowned()
    return { ...owner, condition: () => (isOwner ? condition() : undefined) }
  }
  const { store, rotateSecretsKey } = await openEtcdStore({ ...needs, ownership })
  await store.create('secrets', aSecret('a'))
  const [before] = readFileSync(needs.secretsKeyFile, 'utf8').split('\n')
  isOwner = false
  for (let i = 0; i < 10; i++) await t.rejects(async () => rotateSecretsKey?.(), /lease .* has ended/)
  const kept = readFileSync(needs.secretsKeyFile, 'utf8').trimEnd().split('\n')
  t.equal(kept.length, 2, 'attempts that fail leave one key more')
  t.equal(kept[1], before)
  isOwner = true
  await rotateSecretsKey?.()
  await store.close()
  t.equal(readFileSync(needs.secretsKeyFile, 'utf8').trimEnd().split('\n').length, 1)
  const again = await openEtcdStore(needs)
  t.equal((await again.store.list('secrets')).items.length, 1)
  await again.store.close()
})

function aSecret(name: string, word = 'c2VzYW1l'): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'default', name }, data: { word }, type: 'Opaque' }
}
