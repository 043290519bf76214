import { test } from 'tap'
import type { Endpoint } from '../../../api/network/endpoint-slice.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { packEndpoints, portsKey, type StoredSlice } from './slice-packing.ts'

const endpoint = (name: string, ready = true): Endpoint => ({
  addresses: [`10.0.0.${name.length}`],
  conditions: { ready },
  targetRef: { kind: 'Pod', namespace: 'default', name },
})
const slice = (name: string, ...endpoints: readonly Endpoint[]): StoredSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  addressType: 'IPv4',
  endpoints,
})
/** The names of the pods of each slice that is written, after the slice; `new` for those without a name. */
const packed = (present: readonly StoredSlice[], wanted: readonly Endpoint[], most = 3) => {
  const { update, remove, create } = finished(packEndpoints(present, wanted, most))
  const names = (endpoints: readonly Endpoint[]) => endpoints.map(({ targetRef }) => targetRef?.name).join('')
  return [
    ...[...update].map(([name, endpoints]) => `${name} ${names(endpoints)}`),
    ...create.map((endpoints) => `new ${names(endpoints)}`),
    ...remove.map((name) => `removed ${name}`),
  ]
}
const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((name) => endpoint(name)) as [
  ...[Endpoint, Endpoint, Endpoint, Endpoint, Endpoint],
]

test('new endpoints fill new slices', async (t) => {
  t.same(packed([], [a, b, c, d]), ['new abc', 'new d'])
  t.same(packed([], []), [])
})

test('what is as it should be is not written', async (t) => {
  t.same(packed([slice('x', a, b), slice('y', c)], [c, b, a]), [])
})

test('an endpoint stays in its slice when its conditions change', async (t) => {
  t.same(packed([slice('x', a), slice('y', b)], [endpoint('a', false), b]), ['x a'])
})

test('a slice without endpoints is removed', async (t) => {
  t.same(packed([slice('x', a), slice('y', b)], [b]), ['removed x'])
})

test('new endpoints go into slices that are written anyway, the fullest first', async (t) => {
  t.same(packed([slice('x', a, b), slice('y', c, d)], [a, c, d, e]), ['x ae'])
  t.same(packed([slice('x', a, b), slice('y', c, d)], [endpoint('a', false), b, endpoint('c', false), e]), [
    'x abe',
    'y c',
  ])
})

test('else into the one slice that they fill best, also an empty one', async (t) => {
  t.same(packed([slice('x', a), slice('y', b, c)], [a, b, c, d]), ['y bcd'])
  t.same(packed([slice('x', a), slice('y', b, c)], [a, b, c, d, e]), ['x ade'])
  t.same(packed([slice('x')], [a]), ['x a'])
})

test('else into new slices', async (t) => {
  t.same(packed([slice('x', a, b)], [a, b, c, d]), ['new cd'])
})

test('an endpoint that two slices have stays in the first', async (t) => {
  t.same(packed([slice('x', a), slice('y', a, b)], [a, b]), ['y b'])
})

test('another host name or pod is another endpoint', async (t) => {
  t.same(packed([slice('x', a)], [{ ...a, hostname: 'a' }]), ['new a', 'removed x'])
})

test('ports are the same in any order, with their defaults', async (t) => {
  const [http, https] = [{ name: 'http', port: 80, protocol: 'TCP' }, { port: 443 }]
  t.equal(portsKey([http, https]), portsKey([{ ...https, name: '', protocol: 'TCP' }, http]))
  t.not(portsKey([http]), portsKey([{ ...http, protocol: 'UDP' }]))
  t.not(portsKey([http]), portsKey([{ ...http, appProtocol: 'h2c' }]))
  t.equal(portsKey(undefined), portsKey([]))
})
