import { test } from 'tap'
import type { Service } from '../../../api/network/service.ts'
import type { IPFamily } from '../../../api/text/ip-address.ts'
import { aService } from '../../testing/ingress-objects.ts'
import { addressFamily, balancedService, isBalanced, isForeign, olderFirst, portKey } from './balanced-services.ts'

const stored = (spec: Partial<Service['spec']> = {}, more: Partial<Service['metadata']> = {}, status: object = {}) => {
  const service = aService('web', '10.96.0.7', { type: 'LoadBalancer', ...spec })
  const metadata = { ...service.metadata, namespace: 'shop', name: 'web', uid: 'u', resourceVersion: '1', ...more }
  return { ...service, metadata: { creationTimestamp: '2026-01-01T00:00:00Z', ...metadata }, status }
}
const endpoints = (family: IPFamily): ReadonlySet<string> => new Set([`with ${family}`])
const balanced = (...given: Parameters<typeof stored>) => balancedService('shop/web', stored(...given), endpoints, true)

test('Services of the type LoadBalancer without a class are balanced until they are deleted', async (t) => {
  t.ok(isBalanced(stored()))
  t.notOk(isBalanced(stored({ type: 'NodePort' })))
  t.notOk(isBalanced(stored({ loadBalancerClass: 'example.com/other' })))
  t.ok(isBalanced(stored({ loadBalancerClass: '' })))
  t.notOk(isBalanced(stored({}, { deletionTimestamp: '2026-01-02T00:00:00Z' })))
})

test('what a Service asks for is read of its spec and its annotations', async (t) => {
  t.same(balanced({ ports: [{ port: 80 }, { port: 53, protocol: 'UDP' }] }), {
    ...{ key: 'shop/web', createdAt: '2026-01-01T00:00:00Z', policy: 'Cluster', ports: ['TCP/80', 'UDP/53'] },
    ...{ families: ['IPv4'], ips: [], endpointNodes: new Set(['with IPv4']) },
  })
  const address = 'bramble.dev/load-balancer-ip'
  const asked = (text: string) => balanced({}, { annotations: { [address]: text } }).requestedIPs
  t.same(balanced({ loadBalancerIP: '192.0.2.9' }).requestedIPs, ['192.0.2.9'])
  const both = { metadata: { annotations: { [address]: '192.0.2.8' } } }
  t.same(balanced({ loadBalancerIP: '192.0.2.9' }, both.metadata).requestedIPs, ['192.0.2.8'], 'the annotation counts')
  t.same(asked('192.0.2.8, 2001:DB8:0::1'), ['192.0.2.8', '2001:db8::1'])
  t.same(asked('192.0.2.1,192.0.2.2,192.0.2.3'), ['192.0.2.1', '192.0.2.2'], 'one of each family, no matter how many')
  t.equal(asked('x'.repeat(1_000_000))?.[0]?.length, 46, 'what is longer is not an address, and not kept')
  t.equal(asked(''), undefined)
})

test('families are those of the spec; an old Service has IPv4', async (t) => {
  const of = (ipFamilies: readonly string[] | undefined, ipFamilyPolicy?: string) =>
    balanced({ ...(ipFamilies && { ipFamilies }), ...(ipFamilyPolicy && { ipFamilyPolicy }) } as Service['spec'])
  t.same(of(undefined).families, ['IPv4'])
  t.same(of(['IPv6', 'IPv4']).families, ['IPv6', 'IPv4'])
  t.same(of(['IPv6']).endpointNodes, new Set(['with IPv6']))
  t.same(of(['IPv6', 'IPv4']).endpointNodes, new Set(['with IPv4']))
  t.equal(of(['IPv4', 'IPv6'], 'RequireDualStack').needsAll, true)
  t.equal(of(['IPv4', 'IPv6'], 'PreferDualStack').needsAll, undefined)
  const single = balancedService('shop/web', stored({ ipFamilyPolicy: 'RequireDualStack' }), endpoints, false)
  t.equal(single.needsAll, undefined, 'pods have addresses of one family only')
})

test('addresses of the status count where they are of its families', async (t) => {
  const ingress = [{ ip: '192.0.2.1' }, { ip: '2001:DB8::0:1' }, { hostname: 'a.example' }, { ip: 'none' }]
  const of = (ipFamilies: readonly IPFamily[]) => balanced({ ipFamilies }, {}, { loadBalancer: { ingress } }).ips
  t.same(of(['IPv4']), ['192.0.2.1'])
  t.same(of(['IPv6', 'IPv4']), ['192.0.2.1', '2001:db8::1'])
})

test('Services share an address by a key of their namespace, and with the policy Local by their endpoints', async (t) => {
  const sharing = (spec: Partial<Service['spec']>, text = 'house') =>
    balanced(spec, { annotations: { 'metallb.io/allow-shared-ip': text } }).sharing
  t.same(sharing({}), { key: 'shop/house', backend: '' })
  t.same(sharing({ externalTrafficPolicy: 'Local', selector: { b: '2', a: '1' } }), {
    key: 'shop/house',
    backend: '[["a","1"],["b","2"]]',
  })
  t.equal(sharing({ externalTrafficPolicy: 'Local' }), undefined, 'no selector chooses its endpoints')
  t.equal(sharing({}, ''), undefined)
  t.equal(sharing({}, 'x'.repeat(254)), undefined)
})

test('the older of two Services has the right to an address; then the name decides', async (t) => {
  const one = balanced()
  const later = { ...one, key: 'a/a', createdAt: '2026-01-02T00:00:00Z' }
  const other = { ...one, key: 'shop/x' }
  t.same([later, other, one].sort(olderFirst), [one, other, later])
  t.equal(portKey(undefined, 80), portKey('TCP', 80))
  t.same(['192.0.2.1', '2001:db8::1', 'x'].map(addressFamily), ['IPv4', 'IPv6', undefined])
})

test('a status of another program is left alone', async (t) => {
  const one = balanced()
  const ours = (ip: string) => ip.startsWith('192.0.2.')
  t.notOk(isForeign(one, ours), 'it has no address')
  t.ok(isForeign({ ...one, ips: ['198.51.100.1'] }, ours))
  t.notOk(isForeign({ ...one, ips: ['192.0.2.1'] }, ours), 'a client has removed our annotation')
  t.ok(isForeign({ ...one, ips: ['192.0.2.1', '198.51.100.1'] }, ours))
  t.notOk(isForeign({ ...one, ips: ['198.51.100.1'], node: 'pi-1' }, ours), 'we have written it')
})
