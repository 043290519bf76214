import { test } from 'tap'
import type { Endpoint, EndpointSlice } from '../../../../api/network/endpoint-slice.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { endpointSliceStrategy } from './endpoint-slice.ts'

const metadata = { name: 'web', namespace: 'default' }
const slice = (endpoint: Partial<Endpoint>, more: Partial<EndpointSlice> = {}): EndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata,
  addressType: 'IPv4',
  endpoints: [{ addresses: ['10.0.0.1'], ...endpoint }],
  ...more,
})

test('the addresses of an EndpointSlice are of its type, which stays', async (t) => {
  const made = create('endpointslices', slice({}, { ports: [{ port: 80 }] }))
  t.match(made, { ports: [{ name: '', port: 80, protocol: 'TCP' }] })
  const { endpoints: _, ...none } = slice({})
  t.match(create('endpointslices', none), { endpoints: [] }, 'Go clients send null for none')
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

test('the addresses of a slice may be IPv6 or names, with a warning for its author', async (t) => {
  const wrong = (...args: Parameters<typeof slice>) => causes(() => create('endpointslices', slice(...args)))
  t.same(wrong({ addresses: ['2001:db8::1'] }, { addressType: 'IPv6' }), [])
  t.same(wrong({ addresses: ['db.example.com'] }, { addressType: 'FQDN' }), [])
  const { warningsOnCreate } = endpointSliceStrategy
  t.same(warningsOnCreate?.(slice({}, { addressType: 'FQDN' })), ['spec.addressType: FQDN endpoints are deprecated'])
  for (const addressType of ['IPv4', 'IPv6']) t.same(warningsOnCreate?.(slice({}, { addressType })), [])
})

test('the table shows three ports and three addresses of a slice', async (t) => {
  const cells = (more: Partial<EndpointSlice>) =>
    endpointSliceStrategy.table.cells(
      { ...slice({}), metadata: { ...metadata, creationTimestamp: '1970-01-01T00:00:00Z' }, ...more },
      60_000,
    )
  t.same(cells({}), ['web', 'IPv4', '<unset>', '10.0.0.1', '60s'])
  const ports = [{ name: 'http', port: 80 }, { name: 'https' }, {}]
  t.equal(cells({ ports })[2], '80,https,*')
  t.equal(cells({ ports: [...ports, ports[0] ?? {}, {}] })[2], '80,https,* + 2 more...')
  t.equal(cells({ ports: [{ name: '' }] })[2], '<unset>')
  t.equal(cells({ endpoints: [] })[3], '<unset>')
  const endpoints = [{ addresses: ['192.0.2.1', '192.0.2.2'] }, { addresses: ['192.0.2.3'] }]
  t.equal(cells({ endpoints })[3], '192.0.2.1,192.0.2.2,192.0.2.3')
  t.equal(cells({ endpoints: [...endpoints, ...endpoints] })[3], '192.0.2.1,192.0.2.2,192.0.2.3 + 3 more...')
})
