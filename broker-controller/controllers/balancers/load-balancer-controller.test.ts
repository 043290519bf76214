import { test } from 'tap'
import type { Service } from '../../../api/network/service.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { parseAddressRange } from './address-pool.ts'
import { type LoadBalancerSettings, loadBalancerController } from './load-balancer-controller.ts'

type Test = Parameters<typeof workloadWorld>[0]

const range = parseAddressRange('192.168.1.240-192.168.1.241')
const pool: LoadBalancerSettings = { mode: 'pool', pool: range === undefined ? [] : [range] }
const nodes: LoadBalancerSettings = { mode: 'nodes', keptPorts: new Set(['TCP/22']) }
const nodeOf = 'bramble.dev/load-balancer-node'

async function opened(t: Test) {
  const world = await workloadWorld(t)
  const { store, needs } = world
  const stored = async (name: string) => {
    const service = await store.get('services', { namespace: 'default', name })
    if (service === undefined) throw new Error(`no Service ${name}`)
    return service
  }
  return {
    ...world,
    run: (settings: LoadBalancerSettings, ipv6 = false) => world.start([loadBalancerController(needs, settings, ipv6)]),
    async node(name: string, ready: 'True' | 'False' | 'Unknown' = 'True') {
      const { metadata, ...node } = aNode({ name, ready, address: `192.168.1.${name.slice(3)}` })
      const before = await store.get('nodes', { namespace: '', name })
      if (before === undefined) await store.create('nodes', { ...node, metadata: { name: metadata.name } })
      else await store.update('nodes', { ...before, status: node.status })
    },
    service: (name: string, spec: Partial<Service['spec']> = {}, annotations: Record<string, string> = {}) =>
      needs.creation.create(
        'services',
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: { namespace: 'default', name, annotations },
          spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
        },
        'test',
      ),
    async change(name: string, spec: Partial<Service['spec']>) {
      const service = await stored(name)
      await store.update('services', { ...service, spec: { ...service.spec, ...spec } })
    },
    /** `192.168.1.240 pi-1`: its addresses and its annotation. */
    async shown(name: string) {
      await world.settle()
      const { metadata, status } = await stored(name)
      const ips = (status?.loadBalancer?.ingress ?? []).map(
        ({ ip = '', ipMode = '' }) => `${ip}${ipMode === 'VIP' ? '' : '?'}`,
      )
      return [...ips, metadata.annotations?.[nodeOf] ?? '-'].join(' ')
    },
    async messages() {
      return (await store.list('events')).items.map(({ reason, message }) => `${reason}: ${message}`)
    },
  }
}

test('a Service gets an address of the pool and a node, and another node when that one is lost', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  world.run(pool)
  await world.service('web')
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
  await world.node('pi-2')
  t.equal(await world.shown('web'), '192.168.1.240 pi-1', 'no needless move')
  await world.node('pi-1', 'Unknown')
  t.equal(await world.shown('web'), '192.168.1.240 pi-2')
  await world.node('pi-1')
  t.equal(await world.shown('web'), '192.168.1.240 pi-2')
  t.same((await world.messages()).sort(), [
    'EnsuredLoadBalancer: Assigned: 192.168.1.240; node pi-1 answers for it',
    'UpdatedLoadBalancer: Node pi-2 answers for 192.168.1.240 in place of pi-1',
  ])
})

test('a Service that waits for an address has one Event, and gets that of a Service that is deleted', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  world.run(pool)
  for (const name of ['a', 'b', 'c']) {
    await world.service(name)
    await world.settle(1_000)
  }
  t.equal(await world.shown('c'), '-')
  await world.node('pi-2')
  await world.settle()
  t.equal((await world.events()).filter((reason) => reason === 'SyncLoadBalancerFailed').length, 1)
  await world.store.delete('services', { namespace: 'default', name: 'a' })
  t.match(await world.shown('c'), /^192.168.1.240 pi-/)
})

test('a Service of another type or class is left alone, and its address is free', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  world.run(pool)
  await world.service('web')
  await world.service('other', { loadBalancerClass: 'example.com/metal' })
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
  t.equal(await world.shown('other'), '-')
  await world.edit('services', 'web', (service) => ({
    ...service,
    spec: { ...service.spec, type: 'ClusterIP' },
    status: { loadBalancer: {} },
  }))
  t.equal(await world.shown('web'), '-')
  await world.service('next')
  t.equal(await world.shown('next'), '192.168.1.240 pi-1')
})

test("Services with MetalLB's annotations share an address, and one that leaves does not take it from the other", async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  world.run(pool)
  const ports = { tcp: [{ port: 53 }], udp: [{ port: 53, protocol: 'UDP' }] }
  const shared = '192.168.1.241 pi-1'
  const [now, before] = ['metallb.io', 'metallb.universe.tf']
  await world.service(
    'tcp',
    { ports: ports.tcp, loadBalancerIP: '192.168.1.241' },
    { [`${before}/allow-shared-ip`]: 'dns' },
  )
  const annotations = { [`${now}/allow-shared-ip`]: 'dns', [`${now}/loadBalancerIPs`]: '192.168.1.241' }
  await world.service('udp', { ports: ports.udp }, annotations)
  t.same([await world.shown('tcp'), await world.shown('udp')], [shared, shared])
  await world.edit('services', 'tcp', ({ metadata, ...service }) => ({
    ...service,
    metadata: { ...metadata, deletionTimestamp: metadata.creationTimestamp, finalizers: ['example.com/wait'] },
  }))
  t.same([await world.shown('tcp'), await world.shown('udp')], ['-', shared])
  await world.store.delete('services', { namespace: 'default', name: 'tcp' })
  t.equal(await world.shown('udp'), shared)
  t.notOk((await world.events()).includes('SyncLoadBalancerFailed'))
})

test('a Service that waits for its finalizers gives up its address before another one gets it', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  world.run(pool)
  await world.service('web')
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
  await world.edit('services', 'web', ({ metadata, ...service }) => ({
    ...service,
    metadata: {
      ...metadata,
      annotations: {},
      deletionTimestamp: metadata.creationTimestamp,
      finalizers: ['example.com/wait'],
    },
  }))
  await world.service('next')
  t.equal(await world.shown('next'), '192.168.1.241 pi-1')
  t.equal(await world.shown('web'), '-')
  await world.service('last')
  t.equal(await world.shown('last'), '192.168.1.240 pi-1')
})

test('the next controller keeps what the one before assigned, and repairs a conflict', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.node('pi-2')
  const stop = world.run(pool)
  await world.service('a')
  await world.settle(1_000)
  await world.service('b')
  const before = [await world.shown('a'), await world.shown('b')]
  await stop()
  world.run(pool)
  t.same([await world.shown('a'), await world.shown('b')], before)
  const [address = ''] = before[0]?.split(' ') ?? []
  await world.edit('services', 'b', (service) => ({
    ...service,
    status: { loadBalancer: { ingress: [{ ip: address, ipMode: 'VIP' }] } },
  }))
  t.same([await world.shown('a'), await world.shown('b')], before)
})

test('a status that another program wrote is not changed, and its address not given away', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  const ingress = (ip: string) => ({ status: { loadBalancer: { ingress: [{ ip, ipMode: 'VIP' }] } } })
  await world.service('metal')
  await world.edit('services', 'metal', (service) => ({ ...service, ...ingress('10.1.1.1') }))
  world.run(pool)
  t.equal(await world.shown('metal'), '10.1.1.1 -')
  await world.service('web')
  await world.settle()
  for (const name of ['pi-2', 'pi-3', 'pi-4']) await world.node(name)
  await world.edit('services', 'web', ({ metadata: { annotations: _, ...metadata }, ...service }) => ({
    ...service,
    metadata,
  }))
  t.equal(
    await world.shown('web'),
    '192.168.1.240 pi-1',
    'its own status without the annotation is recognized, and its node stays',
  )
})

test('without a pool a Service has the addresses of the nodes', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.node('pi-2')
  world.run(nodes)
  await world.service('web')
  t.equal(await world.shown('web'), '192.168.1.1 192.168.1.2 *')
  await world.node('pi-1', 'Unknown')
  t.equal(await world.shown('web'), '192.168.1.2 *')
  await world.service('ssh', { ports: [{ port: 22 }] })
  t.equal(await world.shown('ssh'), '-')
  t.match(
    (await world.messages()).find((one) => one.includes('Failed')),
    /Port TCP\/22 .* belongs to the machines/,
  )
})

test('an IPv6-only Service has no address of the pool, and the reason in an Event, until it has both families', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.service('web')
  await world.change('web', { clusterIP: 'fd00::9', clusterIPs: ['fd00::9'], ipFamilies: ['IPv6'] })
  world.run(pool)
  t.equal(await world.shown('web'), '-')
  t.match(await world.messages(), [/^SyncLoadBalancerFailed: The pool has IPv4 addresses, and .* IPv6 only/])
  await world.change('web', { clusterIPs: ['fd00::9', '10.96.0.9'], ipFamilies: ['IPv6', 'IPv4'] })
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
})

test('a Service of both families has two addresses of a pool that has both, and gives one up with its family', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  const node = await world.store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) throw new Error('no node')
  const addresses = ['192.168.1.1', 'fd00:9::1'].map((address) => ({ type: 'InternalIP', address }) as const)
  const podCIDRs = ['10.244.1.0/24', 'fd00:10:244:1::/64']
  await world.store.update('nodes', { ...node, spec: { podCIDRs }, status: { ...node.status, addresses } })
  const ranges = [range, parseAddressRange('fd00:9::240-fd00:9::241')].flatMap((one) => one ?? [])
  await world.service('web')
  await world.change('web', { ipFamilies: ['IPv6', 'IPv4'], ipFamilyPolicy: 'RequireDualStack' })
  world.run({ mode: 'pool', pool: ranges }, true)
  t.equal(await world.shown('web'), 'fd00:9::240 192.168.1.240 pi-1')
  t.same(await world.messages(), [
    'EnsuredLoadBalancer: Assigned: fd00:9::240, 192.168.1.240; node pi-1 answers for them',
  ])
  await world.edit('services', 'web', ({ metadata, ...service }) => ({
    ...service,
    metadata: { ...metadata, annotations: { 'bramble.dev/load-balancer-ip': 'FD00:9::241, 192.168.1.241' } },
  }))
  t.equal(await world.shown('web'), 'fd00:9::241 192.168.1.241 pi-1')
  await world.change('web', { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' })
  t.equal(await world.shown('web'), 'fd00:9::241 pi-1')
})

test('of a request with many addresses two are looked at, and none that is longer than an address', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.service('list', { loadBalancerIP: '10.0.0.1,10.0.0.2,192.168.1.241' })
  await world.service('text', { loadBalancerIP: 'a'.repeat(1_000) })
  world.run(pool)
  t.equal(await world.shown('list'), '-')
  t.equal(await world.shown('text'), '-')
  t.match((await world.messages()).sort(), [
    /: Address 10\.0\.0\.1 is not in the pool/,
    /: Address a{46} is not in the pool/,
  ])
})

test('a Service that requires both families waits while the pool has one, with the reason in an Event', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.service('web')
  await world.change('web', { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' })
  world.run(pool, true)
  t.equal(await world.shown('web'), '-')
  t.match(await world.messages(), [
    /^SyncLoadBalancerFailed: The pool has IPv4 addresses, and the Service requires both families: add some of IPv6/,
  ])
  await world.change('web', { ipFamilyPolicy: 'PreferDualStack' })
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
})

test('without a pool a Service of both families has the addresses of the nodes in both', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  const node = await world.store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) throw new Error('no node')
  const internal = (address: string) => ({ type: 'InternalIP', address }) as const
  const addresses = [internal('192.168.1.1'), internal('fe80::1'), internal('FD00:7::1')]
  const withRanges = async (podCIDRs: readonly string[]) => {
    const present = (await world.store.get('nodes', { namespace: '', name: 'pi-1' })) ?? node
    await world.store.update('nodes', { ...present, spec: { podCIDRs }, status: { ...node.status, addresses } })
  }
  await withRanges(['10.244.1.0/24', 'fd00:10:244:1::/64'])
  await world.service('web')
  world.run(nodes, true)
  t.equal(await world.shown('web'), '192.168.1.1 *')
  await world.change('web', { ipFamilies: ['IPv4', 'IPv6'] })
  t.equal(await world.shown('web'), '192.168.1.1 fd00:7::1 *')
  await withRanges(['10.244.1.0/24'])
  t.equal(await world.shown('web'), '192.168.1.1 *', 'without a range the node forwards nothing in IPv6')
  await withRanges(['10.244.1.0/24', 'fd00:10:244:1::/64'])
  await world.change('web', { ipFamilies: ['IPv6'] })
  t.equal(await world.shown('web'), 'fd00:7::1 *')
  await world.store.create('endpointslices', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv6',
    endpoints: [{ addresses: ['fd00::5'], nodeName: 'pi-1' }],
  })
  await world.change('web', { externalTrafficPolicy: 'Local' })
  t.equal(await world.shown('web'), 'fd00:7::1 *', 'endpoints of its family count')
  await world.change('web', { ipFamilies: ['IPv4'] })
  t.equal(await world.shown('web'), '-')
})

test('a fleet that has lost IPv6 gives a Service of both families the IPv4 addresses only', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  const node = await world.store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) throw new Error('no node')
  const addresses = ['192.168.1.1', 'fd00:7::1'].map((address) => ({ type: 'InternalIP', address }) as const)
  const spec = { podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] }
  await world.store.update('nodes', { ...node, spec, status: { ...node.status, addresses } })
  await world.service('web')
  await world.change('web', { ipFamilies: ['IPv4', 'IPv6'] })
  world.run(nodes)
  t.equal(await world.shown('web'), '192.168.1.1 *')
  await world.change('web', { ipFamilies: ['IPv6'] })
  t.equal(await world.shown('web'), '-')
})

test('a pod with the host port keeps its node from the Service until it has ended', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.node('pi-2')
  const container = { name: 'web', image: 'web:1', ports: [{ containerPort: 80, hostPort: 80 }] }
  const pod = await world.store.create('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', name: 'web' },
    spec: { nodeName: 'pi-1', containers: [container] },
  })
  world.run(nodes)
  await world.service('web')
  t.equal(await world.shown('web'), '192.168.1.2 *')
  await world.store.updateStatus('pods', { ...pod, status: { phase: 'Failed' } })
  t.equal(await world.shown('web'), '192.168.1.1 192.168.1.2 *')
})

test('with the policy Local the address follows the ready endpoints', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  await world.node('pi-2')
  const slice = (ready: boolean) =>
    ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'default', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [
        { addresses: ['10.244.1.5'], nodeName: 'pi-1', conditions: { ready } },
        { addresses: ['10.244.2.5'], nodeName: 'pi-2', conditions: { ready: !ready } },
      ],
    }) as const
  const created = await world.store.create('endpointslices', slice(true))
  world.run(pool)
  await world.service('web', { externalTrafficPolicy: 'Local' })
  t.equal(await world.shown('web'), '192.168.1.240 pi-1')
  await world.store.update('endpointslices', { ...created, ...slice(false), metadata: created.metadata })
  t.equal(await world.shown('web'), '192.168.1.240 pi-2')
})

test('what was assigned is withdrawn where load balancers are turned off', async (t) => {
  const world = await opened(t)
  await world.node('pi-1')
  const stop = world.run(pool)
  await world.service('web')
  await world.settle()
  await stop()
  await world.service('metal')
  await world.edit('services', 'metal', (service) => ({
    ...service,
    status: { loadBalancer: { ingress: [{ ip: '10.1.1.1', ipMode: 'VIP' }] } },
  }))
  const again = world.run({ mode: 'none' })
  t.equal(await world.shown('web'), '-')
  t.equal(await world.shown('metal'), '10.1.1.1 -')
  await again()
  world.run(nodes)
  t.equal(await world.shown('web'), '192.168.1.1 *')
})
