import { test } from 'tap'
import { aService, endpointOn } from '../testing/services.ts'
import { inIPv6, ipv6Services } from './ipv6-services.ts'

const ports = [{ port: 8080, protocol: 'TCP' as const }]
const endpoints = [{ ports, addresses: [endpointOn('pi-1', 'fd00:10:244:1::2')] }]
const both = aService({
  ...{ externalIPs: ['192.0.2.1'], loadBalancerIPs: ['192.0.2.2'], sourceRanges: ['192.0.2.0/24'] },
  ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints },
})

test('a Service in IPv6 has the addresses and IPv6 endpoints only', async (t) => {
  t.same(inIPv6(both), {
    ...aService({}),
    ...{ clusterIPs: ['fd00:10:96::7'], externalIPs: [], loadBalancerIPs: [], sourceRanges: [], endpoints },
  })
  const more = { externalIPs: ['fd00::1'], loadBalancerIPs: ['fd00::2'], sourceRanges: ['fd00::/8'] }
  t.match(inIPv6({ ...both, ipv6: { clusterIPs: [], endpoints: [], ...more } }), more)
  t.equal(inIPv6(aService({})), undefined)
})

test('a Service that did not change is the same object in IPv6', async (t) => {
  const viewsOf = ipv6Services()
  const before = viewsOf(new Map([['shop/web', both]]))
  const after = viewsOf(
    new Map([
      ['shop/old', aService({ name: 'old' })],
      ['shop/web', both],
      ['shop/new', { ...both, name: 'new' }],
    ]),
  )
  t.same([...after.keys()], ['shop/web', 'shop/new'])
  t.equal(after.get('shop/web'), before.get('shop/web'))
})
