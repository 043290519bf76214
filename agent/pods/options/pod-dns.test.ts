import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { asksForHostResolver, parseResolver, podHostname, podResolver } from './pod-dns.ts'

const host = parseResolver(
  '# made by hand\nnameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch lan .\noptions ndots:1 edns0\n',
)

test('a pod looks up names as its machine does, and adds to it', async (t) => {
  const { spec } = aPod()
  t.equal(podResolver(spec, host), undefined)
  const dnsConfig = {
    nameservers: ['192.0.2.2', '192.0.2.3', '192.0.2.4'],
    searches: ['example.com'],
    options: [{ name: 'ndots', value: '5' }, { name: 'rotate' }],
  }
  t.same(podResolver({ ...spec, dnsConfig }, host), {
    servers: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
    searches: ['lan', 'example.com'],
    options: ['edns0', 'ndots:5', 'rotate'],
  })
  t.same(podResolver({ ...spec, dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.9'] } }, host), {
    servers: ['192.0.2.9'],
    searches: [],
    options: [],
  })
})

test('a pod has a short name, and a full one where it names a subdomain', async (t) => {
  const spec = { hostname: 'web', subdomain: 'shop' }
  t.same(podHostname(aPod({ name: 'a.b' })), { hostname: 'a.b', domain: '' })
  t.same(podHostname(aPod({ spec })), { hostname: 'web', domain: 'shop.default.svc.cluster.local' })
  t.same(podHostname(aPod({ spec: { ...spec, setHostnameAsFQDN: true } })), {
    hostname: 'web.shop.default.svc.cluster.local',
    domain: '',
  })
})

test('the settings of the machine are read only for a pod that adds to them', async (t) => {
  const asks = (dnsPolicy: string | undefined, dnsConfig?: object) =>
    asksForHostResolver({ containers: [], ...(dnsPolicy && { dnsPolicy }), ...(dnsConfig && { dnsConfig }) })
  t.same([asks('Default', {}), asks(undefined, {})], [true, true])
  t.same([asks('Default'), asks('None', {}), asks('None')], [false, false, false])
})
