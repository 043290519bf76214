import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { eventually } from '../../../test/support/wait.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { LeadershipLostError } from '../election/election.ts'
import { type OpenedStore, SecretsKeyError } from '../store.ts'
import { etcdKeys } from './etcd-keys.ts'
import { methods } from './etcd-messages.ts'
import { type EtcdStoreNeeds, openSharedEtcdStore } from './etcd-store.ts'

const { place, url } = await etcdUnderTest()
const aMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'a' } } as const
const aLease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { namespace: 'kube-node-lease', name: 'pi-1' },
} as const
const mapKey = { namespace: 'default', name: 'a' }

async function opened(t: Test, needs: EtcdStoreNeeds, server: string) {
  const shared: OpenedStore = await openSharedEtcdStore(needs)
  t.teardown(() => shared.store.close())
  const { election, freshness, controllers } = shared
  if (election === undefined || freshness === undefined || controllers === undefined) throw new Error('Not shared')
  const lead = (signal = new AbortController().signal) => election.campaign(server, signal)
  return { ...shared, election, freshness, controllers, lead }
}

/** As if its etcd lease had ended. */
async function endOwner(prefix: string) {
  const client = await rawClient(url)
  const { owner } = etcdKeys(prefix)
  await client.call(methods.txn, { compare: [], success: [{ deleteRange: { key: owner } }] })
  client.close()
}

test('one of two controllers leads, and the other one reads what it writes', { skip }, async (t) => {
  const needs = place()
  const first = await opened(t, needs, 'https://10.0.0.1:6443')
  const second = await opened(t, needs, 'https://10.0.0.2:6443')
  t.equal(first.origin.id, second.origin.id)
  t.match(await first.lead(), { transitions: 0 })
  t.equal(first.election.isLeading(), true)

  const stop = new AbortController()
  const waiting = second.lead(stop.signal)
  await eventually('the standby finds the leader', async () => second.election.leader() !== undefined)
  t.match(second.election.leader(), { pid: process.pid, server: 'https://10.0.0.1:6443' })
  t.equal(second.election.isLeading(), false)

  await first.store.create('configmaps', aMap)
  t.equal(await second.freshness.latest(), true)
  t.ok(await second.store.get('configmaps', mapKey), 'a read that waited for the latest sees the write')
  const refused = await second.store.delete('configmaps', mapKey).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'ServiceUnavailable'), String(refused))
  const lease = await second.store.create('leases', aLease).catch((error: unknown) => error)
  t.ok(isApiError(lease, 'ServiceUnavailable'), String(lease))
  stop.abort()
  t.equal(await waiting, undefined)
})

test('a leader that resigns is followed by a standby, which has all that was written', { skip }, async (t) => {
  const needs = place()
  const first = await opened(t, needs, 'https://10.0.0.1:6443')
  const second = await opened(t, needs, 'https://10.0.0.2:6443')
  await first.lead()
  const waiting = second.lead()
  const { metadata } = await first.store.create('leases', aLease)
  await first.store.create('configmaps', aMap)
  await first.election.resign()
  t.match(await waiting, { transitions: 1 })
  t.ok(await second.store.get('configmaps', mapKey))
  t.equal(await second.store.get('leases', { namespace: 'kube-node-lease', name: 'pi-1' }), undefined)
  t.throws(() => second.store.changes('leases', metadata.resourceVersion).next(), /too old/)
  const later = await second.store.create('leases', aLease)
  t.ok(Number(later.metadata.resourceVersion) > Number(metadata.resourceVersion), 'versions of leases rise')
})

test('the Lease of a client follows the controllers that lead', { skip }, async (t) => {
  const needs = place()
  const first = await opened(t, needs, 'https://10.0.0.1:6443')
  const second = await opened(t, needs, 'https://10.0.0.2:6443')
  await first.lead()
  const key = { namespace: 'kube-system', name: 'elected' }
  const made = await first.store.create('leases', { ...aLease, metadata: key, spec: { holderIdentity: 'one' } })
  const renewed = await first.store.update('leases', { ...made, spec: { holderIdentity: 'two' } })
  await first.election.resign()
  await second.lead()
  const found = await second.store.get('leases', key)
  t.match(found, { metadata: { uid: made.metadata.uid }, spec: { holderIdentity: 'two' } })
  const stale = await second.store.update('leases', renewed).catch((error: unknown) => error)
  t.ok(isApiError(stale, 'Conflict'), String(stale))
  const taken = await second.store.update('leases', { ...renewed, metadata: found?.metadata ?? {}, spec: {} })
  t.ok(Number(taken.metadata.resourceVersion) > Number(renewed.metadata.resourceVersion))
})

test('a leader whose lease has ended writes nothing more, and is asked to end', { skip }, async (t) => {
  const needs = place()
  const first = await opened(t, needs, 'https://10.0.0.1:6443')
  const second = await opened(t, needs, 'https://10.0.0.2:6443')
  await first.lead()
  const lost = t.rejects(first.election.keep(new AbortController().signal), LeadershipLostError)
  await endOwner(needs.prefix)
  await second.lead()
  const refused = await first.store.create('configmaps', aMap).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'ServiceUnavailable'), String(refused))
  await lost
  await second.store.create('configmaps', aMap)
})

test('a leader that cannot renew its lease for ten seconds no longer counts as one', { skip }, async (t) => {
  const needs = place()
  let passedMs = 0
  const clock = { ...needs.clock, monotonicMs: () => needs.clock.monotonicMs() + passedMs }
  const first = await opened(t, { ...needs, clock }, 'https://10.0.0.1:6443')
  await first.lead()
  t.equal(first.election.isLeading(), true)
  passedMs = 11_000
  t.equal(first.election.isLeading(), false)
})

test('a controller with another key for Secrets does not read them, and does not lead', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-election-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const needs = place()
  const withKey = (name: string) => ({ ...needs, secretsKeyFile: join(folder, name) })
  const early = await opened(t, withKey('other.key'), 'https://10.0.0.2:6443')
  const first = await opened(t, withKey('secrets.key'), 'https://10.0.0.1:6443')
  await first.lead()
  await t.rejects(openSharedEtcdStore(withKey('third.key')), SecretsKeyError)
  const refused = t.rejects(early.lead(), SecretsKeyError)
  await first.election.resign()
  await refused
})

test('controllers find the addresses of each other', { skip }, async (t) => {
  const needs = place()
  const first = await opened(t, needs, 'https://10.0.0.1:6443')
  const second = await opened(t, needs, 'https://10.0.0.2:6443')
  const address = (host: string) => ({
    apiServer: `https://${host}:6443`,
    mqttServer: `mqtts://${host}:8883`,
    hosts: [host],
    proxyCertificate: 'aa',
    version: '1',
  })
  let changes = 0
  first.controllers.onChange(() => void changes++)
  await first.controllers.register(address('10.0.0.1'))
  await second.controllers.register(address('10.0.0.2'))
  await first.controllers.refresh()
  t.same(first.controllers.all(), [address('10.0.0.1'), address('10.0.0.2')])
  t.equal(changes, 2)
})
