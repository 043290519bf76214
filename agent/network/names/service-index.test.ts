import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { serviceIndex } from './service-index.ts'

const indexOf = (...services: readonly ServiceState[]) =>
  serviceIndex(new Map(services.map((service) => [`${service.namespace}/${service.name}`, service])))
const ofIPv6 = (...addresses: readonly ReturnType<typeof endpointOn>[]) => ({
  ...{ clusterIPs: ['2001:db8:96::7'], endpoints: [{ ports: [], addresses: [...addresses] }] },
})

test('an address of a Service has its name, in both families', async (t) => {
  const index = indexOf(aService({ ipv6: ofIPv6() }), aService({ name: 'db', clusterIPs: [] }))
  t.same(index.namesOf('10.96.0.7'), ['web.shop'])
  t.same(index.namesOf('2001:db8:96::7'), ['web.shop'])
  t.same(index.namesOf('10.96.0.8'), [])
})

test('an address of a ready endpoint with a host name has a name in each of its Services', async (t) => {
  const db = [
    endpointOn('pi-1', '10.244.1.7', { hostname: 'db-0' }),
    endpointOn('pi-1', '10.244.1.8'),
    endpointOn('pi-1', '10.244.1.9', { hostname: 'db-2', ready: false }),
  ]
  const headless = aService({ name: 'db', clusterIPs: [], addresses: db })
  const both = { ...headless, name: 'all', ipv6: ofIPv6(endpointOn('pi-1', '2001:db8:244::7', { hostname: 'db-0' })) }
  const index = indexOf(headless, both)
  t.same(index.namesOf('10.244.1.7'), ['db-0.db.shop', 'db-0.all.shop'])
  t.same(index.namesOf('2001:db8:244::7'), ['db-0.all.shop'])
  t.same([index.namesOf('10.244.1.8'), index.namesOf('10.244.1.9')], [[], []])
  const twice = { ...headless, endpoints: [...headless.endpoints, ...headless.endpoints] }
  t.same(indexOf(twice).namesOf('10.244.1.7'), ['db-0.db.shop'], 'once, though two ports have it')
  const named = aService({ name: 'front', clusterIPs: ['10.244.1.7'] })
  t.same(indexOf(headless, named).namesOf('10.244.1.7'), ['front.shop'], 'the Service comes first')
})

test('a namespace is there with any Service, also with an alias, whose addresses are elsewhere', async (t) => {
  const alias = aService({ namespace: 'far', type: 'ExternalName', externalName: 'db.example.com' })
  const index = indexOf(alias, aService({}))
  t.same(['far', 'shop', 'other'].map(index.hasNamespace), [true, true, false])
  t.same(indexOf(alias).namesOf('10.96.0.7'), [])
})
