import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import type { Service } from '../../../api/network/service.ts'
import type { BuiltInName } from '../../../api/resources.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { crashingStore } from '../../testing/crashing-store.ts'
import { endpointsText, type ServiceWorld, serviceWorld, slicesText } from '../../testing/service-world.ts'
import type { AdmittedCreation } from '../workloads/admitted-creation.ts'
import { endpointsController } from './endpoints-controller.ts'

type Test = Parameters<typeof serviceWorld>[0]
const web = { app: 'web' }

/** A fleet of one node with the controller running. */
const started = async (t: Test) => {
  const world = await serviceWorld(t)
  await world.node('pi-01', 'attic')
  world.start()
  return world
}
const shown = async (world: ServiceWorld, name = 'web') => {
  await world.settle()
  return { slices: slicesText(await world.slices(name)), endpoints: endpointsText(await world.endpoints(name)) }
}
const edit = (world: ServiceWorld, spec: Partial<Service['spec']>) =>
  world.edit('services', 'web', (service) => ({ ...service, spec: { ...service.spec, ...spec } }))

test('a Service has the addresses of its ready pods, and shows those that are not ready', async (t) => {
  const world = await started(t)
  await world.service('web')
  t.same(await shown(world), { slices: [], endpoints: '' })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'], ready: false })
  await world.pod('c', { labels: { app: 'other' }, ips: ['10.0.0.3'] })
  await world.pod('d', { labels: web, ips: [] })
  await world.pod('e', { labels: web, ips: ['10.0.0.5'], phase: 'Failed', ready: false })
  t.same(await shown(world), {
    slices: ['10.0.0.1:80', '10.0.0.2:80 not ready not serving'],
    endpoints: '10.0.0.1:80 (10.0.0.2:80)',
  })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'] })
  t.same(await shown(world), { slices: ['10.0.0.1:80', '10.0.0.2:80'], endpoints: '10.0.0.1:80 10.0.0.2:80' })
  await world.store.delete('pods', { namespace: 'default', name: 'a' })
  await world.pod('b', { labels: { app: 'other' }, ips: ['10.0.0.2'] })
  t.same(await shown(world), { slices: [], endpoints: '' })
})

test('an endpoint names its pod, its node and its zone', async (t) => {
  const world = await started(t)
  await world.service('web', undefined, { team: 'a' })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  const pod = await world.store.get('pods', { namespace: 'default', name: 'a' })
  const service = await world.store.get('services', { namespace: 'default', name: 'web' })
  const targetRef = { kind: 'Pod', namespace: 'default', name: 'a', uid: pod?.metadata.uid }
  const [slice] = await world.slices('web')
  t.match(slice?.metadata.name, /^web-[a-z0-9]{5}$/)
  t.same(slice?.metadata.labels, {
    team: 'a',
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    'kubernetes.io/service-name': 'web',
  })
  t.same(slice?.metadata.ownerReferences, [
    {
      apiVersion: 'v1',
      kind: 'Service',
      name: 'web',
      uid: service?.metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ])
  t.same(slice?.endpoints, [
    {
      addresses: ['10.0.0.1'],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef,
      nodeName: 'pi-01',
      zone: 'attic',
    },
  ])
  const endpoints = await world.endpoints('web')
  t.same(endpoints?.metadata.labels, { team: 'a' })
  t.same(endpoints?.subsets, [
    { addresses: [{ ip: '10.0.0.1', nodeName: 'pi-01', targetRef }], ports: [{ port: 80, protocol: 'TCP' }] },
  ])
})

test('a pod that is being deleted still serves, and is no longer ready', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  await world.leave('a')
  t.same(await shown(world), { slices: ['10.0.0.1:80 not ready terminating'], endpoints: '' })
})

test('a Service that publishes addresses that are not ready has all of them', async (t) => {
  const world = await started(t)
  await world.service('web', { selector: web, ports: [{ port: 80 }], publishNotReadyAddresses: true })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'], ready: false })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'], node: 'unknown' })
  await world.leave('b')
  t.same(await shown(world), {
    slices: ['10.0.0.1:80 not serving', '10.0.0.2:80 terminating'],
    endpoints: '10.0.0.1:80 10.0.0.2:80',
  })
})

test('a named port has the number that each pod gives it', async (t) => {
  const world = await started(t)
  const container = (containerPort: number) => ({
    containers: [{ name: 'main', image: 'web:1', ports: [{ name: 'http', containerPort }] }],
  })
  await world.service('web', { selector: web, ports: [{ port: 80, targetPort: 'http' }] })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'], spec: container(8080) })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'], spec: container(9090) })
  await world.pod('c', { labels: web, ips: ['10.0.0.3'] })
  t.same(await shown(world), {
    slices: ['10.0.0.1:8080', '10.0.0.2:9090', '10.0.0.3'],
    endpoints: '10.0.0.1:8080 10.0.0.2:9090',
  })
  t.equal((await world.slices('web')).length, 3, 'a slice for each number')
})

test('a headless Service has its pods by their host names, also without ports', async (t) => {
  const world = await started(t)
  await world.service('web', { selector: web, clusterIP: 'None' })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'], spec: { hostname: 'a', subdomain: 'web' } })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'], spec: { hostname: 'b', subdomain: 'other' } })
  t.same(await shown(world), { slices: ['10.0.0.1', '10.0.0.2'], endpoints: '10.0.0.1 10.0.0.2' })
  const slices = await world.slices('web')
  t.same(
    slices.flatMap(({ endpoints }) => (endpoints ?? []).map(({ hostname }) => hostname)),
    ['a', undefined],
  )
  t.equal(slices[0]?.metadata.labels?.['service.kubernetes.io/headless'], '')
  t.same((await world.endpoints('web'))?.metadata.labels, { 'service.kubernetes.io/headless': '' })
})

test('a change of the selector, the ports or the labels of a Service changes its endpoints', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.pod('b', { labels: { app: 'other' }, ips: ['10.0.0.2'] })
  await world.settle()
  const [before] = await world.slices('web')
  await edit(world, { selector: { app: 'other' }, ports: [{ port: 80, targetPort: 81, protocol: 'TCP' }] })
  t.same(await shown(world), { slices: ['10.0.0.2:81'], endpoints: '10.0.0.2:81' })
  const [after] = await world.slices('web')
  t.equal(after?.metadata.uid, before?.metadata.uid, 'the slice is written again, not replaced')
  await world.edit('services', 'web', (one) => ({ ...one, metadata: { ...one.metadata, labels: { team: 'b' } } }))
  await world.settle()
  t.equal((await world.slices('web'))[0]?.metadata.labels?.['team'], 'b')
  t.same((await world.endpoints('web'))?.metadata.labels, { team: 'b' })
})

test('an empty slice shows that a Service has no endpoints', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.settle()
  t.match(await world.slices('web'), [{ endpoints: [], ports: [], addressType: 'IPv4' }])
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  t.equal((await world.slices('web')).length, 1)
  await world.store.delete('pods', { namespace: 'default', name: 'a' })
  await world.settle()
  t.match(await world.slices('web'), [{ endpoints: [], ports: [] }])
})

test('a Service of two families has slices of both, and Endpoints of the first', async (t) => {
  const world = await started(t)
  await world.service('web')
  await edit(world, { ipFamilies: ['IPv6', 'IPv4'] })
  await world.pod('a', { labels: web, ips: ['10.0.0.1', 'fd00::1'] })
  await world.pod('b', { labels: web, ips: ['10.0.0.2'] })
  t.same(await shown(world), { slices: ['10.0.0.1:80', '10.0.0.2:80', 'fd00::1:80'], endpoints: 'fd00::1:80' })
  await edit(world, { ipFamilies: ['IPv4'] })
  t.same(await shown(world), { slices: ['10.0.0.1:80', '10.0.0.2:80'], endpoints: '10.0.0.1:80 10.0.0.2:80' })
})

test('a Service that prefers what is close has hints of zones', async (t) => {
  const world = await started(t)
  await world.service('web', { selector: web, ports: [{ port: 80 }], trafficDistribution: 'PreferClose' })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  t.match(await world.slices('web'), [{ endpoints: [{ zone: 'attic', hints: { forZones: [{ name: 'attic' }] } }] }])
})

test('a pod on a node that is not registered is not an endpoint until the node is there', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'], node: 'pi-02' })
  t.same((await shown(world)).slices, [])
  await world.node('pi-02')
  await world.settle(10_000)
  t.same((await shown(world)).slices, ['10.0.0.1:80'])
})

test('slices have at most 100 endpoints, and few of them change', async (t) => {
  const world = await started(t)
  await world.service('web')
  const add = async (from: number, to: number) => {
    for (let i = from; i < to; i++) await world.pod(`p${i}`, { labels: web, ips: [`10.0.${i >> 8}.${i & 255}`] })
    await world.settle()
  }
  const sizes = async () =>
    (await world.slices('web')).map(({ endpoints }) => endpoints?.length).sort((a = 0, b = 0) => b - a)
  await add(0, 250)
  t.same(await sizes(), [100, 100, 50])
  const before = new Map((await world.slices('web')).map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
  await add(250, 260)
  t.same(await sizes(), [100, 100, 60])
  const changed = (await world.slices('web')).filter(
    ({ metadata }) => before.get(metadata.name) !== metadata.resourceVersion,
  )
  t.equal(changed.length, 1)
})

test('Endpoints of more than 1,000 addresses are cut, those that are not ready first', async (t) => {
  const world = await started(t)
  for (let i = 0; i < 1010; i++) {
    await world.pod(`p${i}`, { labels: web, ips: [`10.0.${i >> 8}.${i & 255}`], ready: i >= 20 })
  }
  await world.service('web')
  await world.settle(1000)
  const endpoints = await world.endpoints('web')
  t.equal(endpoints?.metadata.annotations?.['endpoints.kubernetes.io/over-capacity'], 'truncated')
  t.equal(endpoints?.subsets?.[0]?.addresses?.length, 990)
  t.equal(endpoints?.subsets?.[0]?.notReadyAddresses?.length, 10)
  t.equal(slicesText(await world.slices('web')).length, 1010, 'slices have all')
  for (let i = 0; i < 10; i++) await world.store.delete('pods', { namespace: 'default', name: `p${i}` })
  await world.settle()
  t.notOk((await world.endpoints('web'))?.metadata.annotations?.['endpoints.kubernetes.io/over-capacity'])
})

test('the time of the change that is written is on the objects', async (t) => {
  const world = await started(t)
  const { metadata } = await world.service('web')
  const times = async () => {
    await world.settle()
    const name = 'endpoints.kubernetes.io/last-change-trigger-time'
    const objects = [...(await world.slices('web')), await world.endpoints('web')]
    return objects.map((one) => one?.metadata.annotations?.[name])
  }
  t.same(await times(), [metadata.creationTimestamp, metadata.creationTimestamp])
  await world.settle(60_000)
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  const pod = await world.store.get('pods', { namespace: 'default', name: 'a' })
  const ready = pod?.status?.conditions?.[0]?.lastTransitionTime
  t.not(ready, metadata.creationTimestamp)
  t.same(await times(), [ready, ready])
  await world.edit('services', 'web', (one) => ({ ...one, metadata: { ...one.metadata, labels: { a: 'b' } } }))
  t.same(await times(), [undefined, undefined], 'no pod has changed')
})

test("endpoints of a Service without a selector are their author's, and mirrored into slices", async (t) => {
  const world = await started(t)
  const ports = [{ port: 80 }]
  await world.service('web', { ports })
  t.same(await shown(world), { slices: [], endpoints: undefined })
  const labels = { team: 'a' }
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'mine' }
  const subset = {
    addresses: [{ ip: '192.168.0.1', hostname: 'a' }, { ip: 'fd00::1' }],
    notReadyAddresses: [{ ip: '192.168.0.2' }],
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  }
  const metadata = { namespace: 'default', name: 'web', labels, annotations }
  await world.store.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [subset] })
  t.same((await shown(world)).slices, ['192.168.0.1:8080', '192.168.0.2:8080 not ready', 'fd00::1:8080'])
  const slices = await world.slices('web')
  t.match(slices, [
    {
      metadata: {
        labels: {
          team: 'a',
          'kubernetes.io/service-name': 'web',
          'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
        },
        annotations: { note: 'mine' },
        ownerReferences: [{ kind: 'Endpoints', name: 'web' }],
      },
    },
    {},
  ])
  t.notMatch(slices[0]?.metadata.annotations, { 'kubectl.kubernetes.io/last-applied-configuration': '{}' })
  await world.edit('endpoints', 'web', (one) => ({
    ...one,
    subsets: [{ ...subset, addresses: [{ ip: '192.168.0.9' }] }],
  }))
  t.same((await shown(world)).slices, ['192.168.0.2:8080 not ready', '192.168.0.9:8080'])
  await world.edit('endpoints', 'web', (one) => ({
    ...one,
    metadata: { ...one.metadata, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
  }))
  t.same((await shown(world)).slices, [])
})

test('mirrored slices leave with the Endpoints, with the Service, and when it gets a selector', async (t) => {
  for (const end of ['endpoints', 'services', 'selector'] as const) {
    const world = await started(t)
    await world.service('web', { ports: [{ port: 80 }] })
    const subsets = [{ addresses: [{ ip: '192.168.0.1' }], ports: [{ port: 80, protocol: 'TCP' }] }]
    const key = { namespace: 'default', name: 'web' }
    await world.store.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...key }, subsets })
    t.same((await shown(world)).slices, ['192.168.0.1:80'])
    if (end === 'selector') await edit(world, { selector: web })
    else await world.store.delete(end, key)
    t.same((await shown(world)).slices, [], end)
  }
})

test('of more than 1,000 addresses in a subset the first 1,000 are mirrored, and an Event reports it', async (t) => {
  const world = await started(t)
  await world.service('web', { ports: [{ port: 80 }] })
  const addresses = Array.from({ length: 1001 }, (_, i) => ({ ip: `10.1.${i >> 8}.${i & 255}` }))
  const subsets = [{ addresses, ports: [{ port: 80, protocol: 'TCP' }] }]
  const metadata = { namespace: 'default', name: 'web' }
  await world.store.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets })
  t.equal((await shown(world)).slices.length, 1000)
  t.match((await world.store.list('events')).items, [
    {
      reason: 'TooManyAddressesToMirror',
      message:
        'A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped',
    },
  ])
})

test('a Service whose slices or Endpoints are refused has an Event with the reason', async (t) => {
  const world = await serviceWorld(t)
  await world.node('pi-01', 'attic')
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  let refused: BuiltInName | undefined = 'endpointslices'
  const creation: AdmittedCreation = {
    async create(resource, object, controller) {
      if (resource === refused) throw new ApiError('Forbidden', `${resource} are counted`)
      return await world.needs.creation.create(resource, object, controller)
    },
  }
  const stop = new AbortController()
  const running = endpointsController({ ...world.needs, creation, log: quietLog(t, 'Reconcile failed') }).run(
    stop.signal,
  )
  t.teardown(async () => {
    stop.abort()
    await world.settle()
    await running
  })
  await world.settle()
  const seen = async () =>
    (await world.store.list('events')).items.map(({ involvedObject, type, reason, message, source }) =>
      [involvedObject.kind, involvedObject.name, type, reason, message, source?.component].join(' '),
    )
  t.same(await seen(), [
    'Service web Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service default/web: ' +
      'endpointslices are counted endpoint-slice-controller',
  ])
  refused = 'endpoints'
  await world.clock.advance(10_000)
  await world.settle()
  t.match((await seen()).at(-1), /^Endpoints web Warning FailedToCreateEndpoint Failed to create endpoint for service /)
})

test("Endpoints leave with their Service; without one they are their author's, until a restart", async (t) => {
  const world = await serviceWorld(t)
  const stop = world.start()
  await world.service('web')
  t.equal((await shown(world)).endpoints, '')
  await world.store.delete('services', { namespace: 'default', name: 'web' })
  t.equal((await shown(world)).endpoints, undefined)
  const alone = (name: string, annotations = {}) =>
    world.store.create('endpoints', {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { namespace: 'default', name, annotations },
    })
  await alone('web')
  await alone('lock', { 'control-plane.alpha.kubernetes.io/leader': '{}' })
  t.equal((await shown(world)).endpoints, '')
  await stop()
  world.start()
  t.equal((await shown(world)).endpoints, undefined, 'as checkLeftoverEndpoints')
  t.equal((await shown(world, 'lock')).endpoints, '')
})

test('an external name has no endpoints', async (t) => {
  const world = await started(t)
  await world.service('web', { type: 'ExternalName', externalName: 'example.com', selector: web })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  t.same(await shown(world), { slices: [], endpoints: undefined })
})

test('a Service that becomes an external name keeps what was written for it, without a copy', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  const before = await shown(world)
  await edit(world, { type: 'ExternalName', externalName: 'example.com' })
  t.same(await shown(world), before)
  const { selector: _, ...spec } =
    (await world.store.get('services', { namespace: 'default', name: 'web' }))?.spec ?? {}
  await world.edit('services', 'web', (service) => ({ ...service, spec }))
  t.same((await shown(world)).slices, ['10.0.0.1:80', '10.0.0.1:80'], 'without a selector its Endpoints are mirrored')
})

test('slices that somebody changes or deletes are written again', async (t) => {
  const world = await started(t)
  await world.service('web')
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  const nameOf = async () => (await world.slices('web'))[0]?.metadata.name ?? ''
  await world.edit('endpointslices', await nameOf(), (slice) => ({ ...slice, endpoints: [] }))
  t.same((await shown(world)).slices, ['10.0.0.1:80'])
  await world.store.delete('endpointslices', { namespace: 'default', name: await nameOf() })
  t.same((await shown(world)).slices, ['10.0.0.1:80'])
  await world.store.delete('endpoints', { namespace: 'default', name: 'web' })
  t.same((await shown(world)).endpoints, '10.0.0.1:80')
})

test('slices of others are left alone', async (t) => {
  const world = await started(t)
  await world.service('web')
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.168.0.1'] }],
    metadata: { namespace: 'default', name: 'mine', labels: { 'kubernetes.io/service-name': 'web' } },
  } as const
  await world.store.create('endpointslices', slice)
  await world.settle()
  await world.store.delete('services', { namespace: 'default', name: 'web' })
  await world.settle()
  t.ok(await world.store.get('endpointslices', { namespace: 'default', name: 'mine' }))
})

test('nothing is written while nothing changes, also after a restart', async (t) => {
  const world = await serviceWorld(t)
  await world.node('pi-01')
  const stop = world.start()
  await world.service('web')
  await world.service('api', { selector: web, clusterIP: 'None' })
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  await world.settle()
  const version = async () => (await world.store.list('endpointslices')).resourceVersion
  const before = await version()
  await world.settle(60_000)
  await stop()
  world.start()
  await world.settle(60_000)
  t.equal(await version(), before)
  await world.pod('a', { labels: web, ips: ['10.0.0.1'] })
  const pod = await version()
  await world.settle()
  t.equal(await version(), pod, 'a pod whose endpoint is the same')
})

test('whatever write a process is killed before, the next one comes to the same end', async (t) => {
  let crashes = 0
  for (let seed = 1; seed <= 12; seed++) {
    const random = seededRandom(seed)
    let crashing: ReturnType<typeof crashingStore> | undefined
    const world = await serviceWorld(t, {
      store(inner) {
        crashing = crashingStore(inner)
        return crashing.store
      },
    })
    if (crashing === undefined) return t.fail('no store')
    await world.node('pi-01')
    await world.service('web')
    await world.service('byhand', { ports: [{ port: 80 }] })
    const metadata = { namespace: 'default', name: 'byhand' }
    const addresses = [{ ip: '192.168.0.1' }]
    await world.store.create('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [{ addresses }] })
    const wanted = new Map<string, string>()
    for (let life = 0; life < 8; life++) {
      for (let i = 0; i < 40; i++) {
        const name = `p${Math.floor(random() * 150)}`
        const number = Number(name.slice(1))
        if (wanted.has(name) && random() < 0.3) {
          wanted.delete(name)
          await world.store.delete('pods', { namespace: 'default', name })
        } else {
          const ip = `10.${Math.floor(random() * 2)}.${number >> 8}.${number & 255}`
          wanted.set(name, ip)
          await world.pod(name, { labels: web, ips: [ip] })
        }
      }
      if (random() < 0.3) await edit(world, { ports: [{ port: 80, targetPort: 80 + life, protocol: 'TCP' }] })
      crashing.allow(Math.floor(random() * 4))
      const end = world.start()
      await world.settle()
      await end()
      if (crashing.crashed()) crashes++
    }
    crashing.allow(Number.POSITIVE_INFINITY)
    world.start()
    await world.settle()
    const slices = await world.slices('web')
    const addressesOf = slices.flatMap(({ endpoints }) => (endpoints ?? []).flatMap((one) => one.addresses))
    t.same(addressesOf.sort(), [...wanted.values()].sort(), `seed ${seed}`)
    t.ok(
      slices.every(({ endpoints }) => (endpoints ?? []).length <= 100),
      `seed ${seed}`,
    )
    t.equal((await world.endpoints('web'))?.subsets?.[0]?.addresses?.length, wanted.size, `seed ${seed}`)
    t.same(slicesText(await world.slices('byhand')), ['192.168.0.1'], `seed ${seed}`)
  }
  t.ok(crashes > 40, `${crashes} crashes`)
})
