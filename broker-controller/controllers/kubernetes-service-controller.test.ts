import { type Test, test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { kubernetesService, kubernetesServiceController } from './kubernetes-service-controller.ts'

const key = { namespace: 'default', name: 'kubernetes' }

/** One pass of the controller over this store. */
async function once(
  t: Test,
  store: Store,
  address: string,
  port = 6443,
  others: readonly string[] = [],
): Promise<void> {
  const stop = new AbortController()
  const needs = { store, clock: systemClock, log: quietLog(t) }
  const running = kubernetesServiceController(needs, {
    serviceCIDR: '10.96.0.0/12',
    address,
    port,
    others: async () => others,
  }).run(stop.signal)
  stop.abort()
  await running
}

test('the Service of the API has the first address of the range, and names where the API is reached', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const at = (address: string, port: number) => once(t, store, address, port)
  await at('192.168.1.10', 6443)
  t.match(await store.get('services', key), {
    metadata: { labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
  })
  t.match(await store.get('endpoints', key), {
    subsets: [{ addresses: [{ ip: '192.168.1.10' }], ports: [{ port: 6443 }] }],
  })
  t.match(await store.get('endpointslices', key), {
    metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.168.1.10'], conditions: { ready: true } }],
  })
  const before = await store.version()
  await at('192.168.1.10', 6443)
  t.equal(await store.version(), before, 'nothing is written while it is right')

  await store.delete('endpointslices', key)
  await at('192.168.1.11', 7443)
  t.match(await store.get('services', key), { spec: { clusterIP: '10.96.0.1', ports: [{ targetPort: 7443 }] } })
  t.match(await store.get('endpoints', key), { subsets: [{ addresses: [{ ip: '192.168.1.11' }] }] })
  t.match(await store.get('endpointslices', key), { endpoints: [{ addresses: ['192.168.1.11'] }] })
})

test('after a change of the range the Service has the first address of the other one', async (t) => {
  const store = memoryStore({ clock: systemClock })
  const earlier = kubernetesService({ serviceCIDR: '10.43.0.0/16', address: '192.168.1.10', port: 6443 })
  const { metadata } = await store.create('services', earlier)
  await once(t, store, '192.168.1.10')
  const present = await store.get('services', key)
  t.match(present?.spec, { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1'] })
  t.not(present?.metadata.uid, metadata.uid, 'an address cannot be changed: it is another Service')
})

test('the Endpoints have all controllers that run, in one order, and no names', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, '192.168.1.11', 6443, ['192.168.1.10', 'controller.example.com', 'fd00::1', '192.168.1.11'])
  const ips = [{ ip: '192.168.1.10' }, { ip: '192.168.1.11' }]
  t.match(await store.get('endpoints', key), { subsets: [{ addresses: ips }] })
  t.match(await store.get('endpointslices', key), {
    endpoints: [{ addresses: ['192.168.1.10'] }, { addresses: ['192.168.1.11'] }],
  })
  const before = await store.version()
  await once(t, store, '192.168.1.10', 6443, ['192.168.1.11'])
  t.equal(await store.version(), before, 'another leader writes the same')
})

test('a name is not an endpoint', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, 'controller.example.com')
  t.match(await store.get('services', key), { spec: { clusterIP: '10.96.0.1' } })
  t.equal(await store.get('endpoints', key), undefined)
})

// As kube-apiserver 1.32 writes them.
test('the objects are those of Kubernetes', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, '192.168.1.10')
  const [service, endpoints, slice] = await Promise.all([
    store.get('services', key),
    store.get('endpoints', key),
    store.get('endpointslices', key),
  ])
  t.same(service?.spec, {
    type: 'ClusterIP',
    clusterIP: '10.96.0.1',
    clusterIPs: ['10.96.0.1'],
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    internalTrafficPolicy: 'Cluster',
    sessionAffinity: 'None',
    ports: [{ name: 'https', protocol: 'TCP', port: 443, targetPort: 6443 }],
  })
  t.same(service?.status, { loadBalancer: {} })
  const ports = [{ name: 'https', port: 6443, protocol: 'TCP' }]
  t.same(endpoints?.subsets, [{ addresses: [{ ip: '192.168.1.10' }], ports }])
  t.same(endpoints?.metadata.labels, { 'endpointslice.kubernetes.io/skip-mirror': 'true' })
  t.same(slice?.endpoints, [{ addresses: ['192.168.1.10'], conditions: { ready: true } }])
  t.same(slice?.ports, ports)
})

test('each object is put right where somebody changed it, and the rest of it stays', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, '192.168.1.10')
  const [service, endpoints, slice] = await Promise.all([
    store.get('services', key),
    store.get('endpoints', key),
    store.get('endpointslices', key),
  ])
  if (service === undefined || endpoints === undefined || slice === undefined) return t.fail('not written')
  const { ports: _ports, ...spec } = service.spec ?? {}
  await store.update('services', { ...service, spec: { ...spec, sessionAffinity: 'ClientIP' } })
  const { subsets: _subsets, ...bare } = endpoints
  await store.update('endpoints', bare)
  const { ports: _, ...portless } = slice
  await store.update('endpointslices', portless)
  await once(t, store, '192.168.1.10')
  t.same((await store.get('services', key))?.spec, { ...service.spec, sessionAffinity: 'ClientIP' })
  t.same((await store.get('endpoints', key))?.subsets, endpoints.subsets)
  t.same((await store.get('endpointslices', key))?.ports, slice.ports)
  const version = await store.version()
  await once(t, store, '192.168.1.10')
  t.equal(await store.version(), version)
})

test('an IPv6 address is one of that type', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, '2001:db8::1')
  t.match(await store.get('endpointslices', key), { addressType: 'IPv6', endpoints: [{ addresses: ['2001:db8::1'] }] })
})

test('an object that another controller creates at the same time is taken over', async (t) => {
  const store = memoryStore({ clock: systemClock })
  await once(t, store, '192.168.1.10')
  let reads = 0
  const late: Store = { ...store, get: async (...args) => (reads++ === 0 ? undefined : store.get(...args)) }
  await once(t, late, '192.168.1.10', 7443)
  t.match(await store.get('services', key), { spec: { ports: [{ targetPort: 7443 }] } })
})

test('an error is logged, and the next attempt is ten seconds later', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  let attempts = 0
  const broken: Store = {
    ...store,
    create: (...args) => (attempts++ === 0 ? Promise.reject(new Error('the disk is full')) : store.create(...args)),
  }
  const log = quietLog(t)
  const stop = new AbortController()
  const location = { serviceCIDR: '10.96.0.0/12', address: '192.168.1.10', port: 6443 }
  const running = kubernetesServiceController({ store: broken, clock, log }, location).run(stop.signal)
  await clock.settle()
  t.match(log.lines, [
    { level: 'warn', message: 'Service default/kubernetes not written', facts: { error: /the disk is full/ } },
  ])
  await clock.advance(9_999)
  t.equal(await store.get('services', key), undefined)
  await clock.advance(1)
  t.ok(await store.get('services', key))
  stop.abort()
  await running
})

test('an invalid range is an error of the configuration', async (t) => {
  t.throws(() => kubernetesService({ serviceCIDR: 'many', address: '192.168.1.10', port: 6443 }), {
    message: 'many is not a CIDR',
  })
})
