import { test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { standardChecks } from '../apiserver/standard-checks.ts'
import { memoryStore } from '../store/memory-store.ts'
import { storeLimits } from '../store/room/store-limits.ts'
import {
  bootstrapObjects,
  ensureClusterInfo,
  ensureFlowControl,
  ensureLocalClass,
  ensureNamespaces,
  ensurePriorityClasses,
} from './bootstrap-objects.ts'

test('a fleet has its namespaces from the first start on, and keeps what was done to them', async (t) => {
  const store = memoryStore({ clock })
  await ensureNamespaces(store)
  const { items } = await store.list('namespaces')
  t.same(
    items.map(({ metadata }) => metadata.name),
    ['default', 'kube-node-lease', 'kube-public', 'kube-system'],
  )
  const version = await store.version()
  await ensureNamespaces(store)
  t.equal(await store.version(), version)
})

test('a fleet whose store is full starts, and gets what a new version adds once there is room', async (t) => {
  const fake = fakeClock()
  const store = memoryStore({ clock, limits: storeLimits(40_000) })
  const log = quietLog(t, 'The store has no room')
  await ensureNamespaces(store)
  const metadata = { namespace: 'default', name: 'large' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: 'x'.repeat(39_900) } })
  const objects = bootstrapObjects({ store, clock: fake, log })
  t.equal(objects.lacksRoom(), false)
  await objects.ensure()
  t.equal(objects.lacksRoom(), true)
  const checks = standardChecks({ store, clock: fake, isEtcd: false, isLeftForLater: objects.lacksRoom })
  for (const { name, check } of checks) await t.resolves(check(), `${name}: those who free space need the API`)
  const stop = new AbortController()
  const running = objects.run(stop.signal)
  const hasRoles = async () => (await store.list('clusterroles')).items.length > 0
  await fake.advance(180_000)
  t.equal(await hasRoles(), false)
  t.equal(log.messages('warn').length, 1)
  await store.delete('configmaps', metadata)
  await fake.advance(60_000)
  t.equal(await hasRoles(), true)
  stop.abort()
  await running
})

test('a new fleet does not start on a full store', async (t) => {
  const store = memoryStore({ clock, limits: storeLimits(100) })
  await t.rejects(bootstrapObjects({ store, clock, log: quietLog(t) }).ensure(), { code: 507 })
})

test('a fleet has the two classes of the system', async (t) => {
  const store = memoryStore({ clock })
  await ensurePriorityClasses(store)
  const { items } = await store.list('priorityclasses')
  t.same(
    items.map(({ metadata, value }) => [metadata.name, value]),
    [
      ['system-cluster-critical', 2_000_000_000],
      ['system-node-critical', 2_000_001_000],
    ],
  )
  const version = await store.version()
  await ensurePriorityClasses(store)
  t.equal(await store.version(), version)
})

test('the class local-path is made once, and is the default unless there is one', async (t) => {
  const isDefault = 'storageclass.kubernetes.io/is-default-class'
  const store = memoryStore({ clock })
  const key = { namespace: '', name: 'local-path' }
  await ensureLocalClass(store, clock)
  t.equal(await store.get('storageclasses', key), undefined, 'not before the namespaces')
  await ensureNamespaces(store)
  await ensureLocalClass(store, clock)
  t.match(await store.get('storageclasses', key), {
    metadata: { annotations: { [isDefault]: 'true' } },
    provisioner: 'bramble.dev/local-path',
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  await store.delete('storageclasses', key)
  await ensureLocalClass(store, clock)
  t.equal(await store.get('storageclasses', key), undefined, 'its owner deleted it')

  const other = memoryStore({ clock })
  await ensureNamespaces(other)
  const metadata = { name: 'mine', annotations: { [isDefault]: 'true' } }
  await other.create('storageclasses', {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata },
    provisioner: 'example.com/disk',
  })
  await ensureLocalClass(other, clock)
  t.equal((await other.get('storageclasses', key))?.metadata.annotations, undefined)
})

test('the standard levels and schemas of flow control are created once', async (t) => {
  const store = memoryStore({ clock })
  await ensureFlowControl(store)
  t.equal((await store.list('prioritylevelconfigurations')).items.length, 8)
  t.equal((await store.list('flowschemas')).items.length, 11)
  const version = await store.version()
  await ensureFlowControl(store)
  t.equal(await store.version(), version)
})

test('cluster-info follows the ports, and keeps what others wrote into it', async (t) => {
  const store = memoryStore({ clock })
  const info = { server: 'https://10.0.0.1:6443', mqttPort: 8883, trusted: 'PEM', caHash: 'sha256:00' }
  const key = { namespace: 'kube-public', name: 'cluster-info' }
  await ensureClusterInfo({ store, clock }, info)
  const first = await store.get('configmaps', key)
  t.match(first?.data, { mqttPort: '8883', caHash: 'sha256:00', kubeconfig: /server: "https:\/\/10.0.0.1:6443"/ })
  await store.update('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: key,
    data: { ...first?.data, ours: '1' },
  })
  await ensureClusterInfo({ store, clock }, { ...info, mqttPort: 1234 })
  t.match((await store.get('configmaps', key))?.data, { mqttPort: '1234', ours: '1' })
})

test('cluster-info has the ranges of the network of the fleet while it has one', async (t) => {
  const store = memoryStore({ clock })
  const info = { server: 'https://10.0.0.1:6443', mqttPort: 8883, trusted: 'PEM', caHash: 'sha256:00' }
  const key = { namespace: 'kube-public', name: 'cluster-info' }
  const ranges = { clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12' }
  const servers = { apiServers: ['https://10.0.0.1:6443'], mqttServers: ['mqtts://10.0.0.1:8883'] }
  await ensureClusterInfo({ store, clock }, { ...info, servers, ranges: { ...ranges, ...{ clusterDomain: 'c' } } })
  const data = (await store.get('configmaps', key))?.data ?? {}
  t.match(data, { ...ranges, mqttServers: 'mqtts://10.0.0.1:8883' })
  t.notOk('clusterDomain' in data)
  const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  await ensureClusterInfo({ store, clock }, { ...info, ranges: { ...ranges, ipv6 } })
  t.match((await store.get('configmaps', key))?.data, {
    ...ranges,
    ipv6ClusterCIDR: 'fd00:10:244::/56',
    ipv6ServiceCIDR: 'fd00:10:96::/112',
  })
  await ensureClusterInfo({ store, clock }, info)
  t.same(Object.keys((await store.get('configmaps', key))?.data ?? {}).sort(), [
    'authorities',
    'caHash',
    'kubeconfig',
    'mqttPort',
  ])
})
