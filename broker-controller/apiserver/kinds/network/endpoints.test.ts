import { test } from 'tap'
import type { Endpoint, EndpointSlice } from '../../../../api/network/endpoint-slice.ts'
import type { EndpointSubset } from '../../../../api/network/endpoints.ts'
import { causes, create, update } from '../../../testing/admitting.ts'

const metadata = { name: 'web', namespace: 'default' }
const endpoints = (subset: EndpointSubset) => ({
  apiVersion: 'v1' as const,
  kind: 'Endpoints' as const,
  metadata,
  subsets: [subset],
})
const slice = (endpoint: Partial<Endpoint>, more: Partial<EndpointSlice> = {}): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata,
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'], ...endpoint }],
  ...more,
})

test('Endpoints have addresses that other machines reach, and ports', async (t) => {
  const addresses = [{ ip: '10.0.0.1' }]
  t.match(create('endpoints', endpoints({ addresses, ports: [{ port: 80 }] })), {
    subsets: [{ ports: [{ port: 80, protocol: 'TCP' }] }],
  })
  const wrong = (subset: EndpointSubset) => causes(() => create('endpoints', endpoints(subset)))
  t.same(wrong({}), ['subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`'])
  t.same(wrong({ addresses: [{ ip: '169.254.0.1' }] }), [
    'subsets[0].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  ])
  t.same(wrong({ notReadyAddresses: [{ ip: 'web' }] }), [
    'subsets[0].notReadyAddresses[0].ip: Invalid value: "web": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ])
  t.same(wrong({ addresses, ports: [{ port: 80 }, { name: 'b', port: 0 }] }), [
    'subsets[0].ports[0].name: Required value',
    'subsets[0].ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive',
  ])
})

test('the addresses of an EndpointSlice are of its type, which stays', async (t) => {
  const made = create('endpointslices', slice({}, { ports: [{ port: 80 }] }))
  t.match(made, { ports: [{ name: '', port: 80, protocol: 'TCP' }] })
  const wrong = (...args: Parameters<typeof slice>) => causes(() => create('endpointslices', slice(...args)))
  t.same(wrong({ addresses: [] }), ['endpoints[0].addresses: Required value: must contain at least 1 address'])
  t.same(wrong({ addresses: ['2001:db8::1'] }), [
    'endpoints[0].addresses[0]: Invalid value: "2001:db8::1": must be an IPv4 address',
  ])
  t.same(wrong({}, { addressType: 'MAC' }).slice(0, 1), [
    'addressType: Unsupported value: "MAC": supported values: "FQDN", "IPv4", "IPv6"',
  ])
  t.same(wrong({}, { ports: [{ name: 'a' }, { name: 'a' }] }), ['ports[1].name: Duplicate value: "a"'])
  const many = Array.from({ length: 1001 }, () => ({ addresses: ['10.0.0.1'] }))
  t.same(wrong({}, { endpoints: many }), ['endpoints: Too many: 1001: must have at most 1000 items'])
  t.same(
    causes(() => update('endpointslices', made, slice({ addresses: ['a.example.com'] }, { addressType: 'FQDN' }))),
    ['addressType: Invalid value: "FQDN": field is immutable'],
  )
})
