import { test } from 'tap'
import { jumpPoints } from '../base-rules.ts'
import { ruleChanges } from '../rule-changes.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { rulesOfServices } from './rules-of-services.ts'

const node = {
  nodeName: 'pi-01',
  family: ipv4Rules,
  zone: '',
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  addresses: ['192.168.1.11'],
}
const web = aService({ addresses: [endpointOn('pi-01', '10.244.1.2')] })
const shop = (...services: (typeof web)[]) => new Map(services.map((one) => [`${one.namespace}/${one.name}`, one]))

test('without Services the chains of all of them stand, and refuse or drop what goes to the range of Services', async (t) => {
  const { chains, sets } = rulesOfServices(node)(new Map())
  t.same(
    [...chains.keys()].filter((name) => jumpPoints.has(name)),
    ['services-prerouting', 'services-output', 'services-forward', 'services-postrouting'],
  )
  t.same(chains.get('service-refusal')?.rules.slice(-2), ['ip daddr @cluster-ips reject', 'ip daddr 10.96.0.0/12 drop'])
  for (const [name, { elements }] of sets) t.equal(elements?.size, 0, name)
})

test('a change of one Service changes the rules of that one only', async (t) => {
  const table = rulesOfServices(node)
  const addresses = [endpointOn('pi-01', '10.244.1.3')]
  const other = aService({ name: 'other', clusterIPs: ['10.96.0.8'], addresses })
  const before = table(shop(web, other))
  const after = table(shop({ ...web, endpoints: [] }, other))
  t.equal(after.chains.get('cluster-shop/other/tcp/80'), before.chains.get('cluster-shop/other/tcp/80'))
  t.same(ruleChanges([{ before, after }], ipv4Rules).commands.split('\n').slice(0, -1), [
    'flush chain ip bramble cluster-shop/web/tcp/80',
    'delete element ip bramble service-ips { 10.96.0.7 . tcp . 80 : goto cluster-shop/web/tcp/80 }',
    'delete element ip bramble hairpin-ips { 10.244.1.2 . 10.244.1.2 }',
    'add element ip bramble no-endpoint-services { 10.96.0.7 . tcp . 80 : goto service-reject }',
  ])
})

test('a change that no set has keeps the sets as they are', async (t) => {
  const table = rulesOfServices(node)
  const leadingTo = (ip: string, affinitySeconds?: number) =>
    aService({ addresses: [endpointOn('pi-2', ip)], ...(affinitySeconds !== undefined && { affinitySeconds }) })
  const { sets } = table(shop(leadingTo('10.244.2.1')))
  const { sets: kept, chains } = table(shop(leadingTo('10.244.2.2')))
  t.equal(kept, sets)
  t.match(chains.get('cluster-shop/web/tcp/80')?.rules, [/10\.244\.2\.2/])
  t.not(table(shop(leadingTo('10.244.2.2', 60))).sets, sets, 'with affinity each endpoint has a set')
  t.not(table(shop()).sets, sets)
})

test('an endpoint of two Services leaves the set of this node’s endpoints with the last of them', async (t) => {
  const table = rulesOfServices(node)
  const other = { ...web, name: 'other', clusterIPs: ['10.96.0.8'] }
  const hairpins = (...services: (typeof web)[]) => table(shop(...services)).sets.get('hairpin-ips')?.elements?.size
  t.equal(hairpins(web, other), 1)
  t.equal(hairpins(other), 1)
  t.equal(hairpins(), 0)
})

test('an address and port that two Services claim belong to the first by name, in whichever order they are received', async (t) => {
  const external = { ...web, externalIPs: ['192.0.2.1'] }
  const later = { ...external, name: 'zoo', clusterIPs: ['10.96.0.8'] }
  for (const states of [shop(external, later), shop(later, external)]) {
    const { sets } = rulesOfServices(node)(states)
    t.equal(sets.get('service-ips')?.elements?.get('192.0.2.1 . tcp . 80'), 'goto external-shop/web/tcp/80')
  }
})

test('no Service takes over the ClusterIP of another one by its external addresses', async (t) => {
  const addresses = [endpointOn('pi-02', '10.244.2.9')]
  const given = { type: 'LoadBalancer', clusterIPs: ['10.96.0.8'], sourceRanges: ['192.0.2.0/24'], addresses } as const
  for (const claim of [{ externalIPs: ['10.96.0.7'] }, { loadBalancerIPs: ['10.96.0.7'] }]) {
    const greedy = aService({ ...given, ...claim, namespace: 'a', name: 'greedy' })
    const { sets } = rulesOfServices(node)(shop(greedy, web))
    t.equal(sets.get('service-ips')?.elements?.get('10.96.0.7 . tcp . 80'), 'goto cluster-shop/web/tcp/80')
    t.equal(sets.get('firewall-ips')?.elements?.size, 0)
    const lone = rulesOfServices(node)(shop(greedy, { ...web, endpoints: [] })).sets
    t.equal(lone.get('service-ips')?.elements?.has('10.96.0.7 . tcp . 80'), false, 'nor one without endpoints')
  }
})

test('the chains and sets of IPv6 are those of IPv4 with its addresses', async (t) => {
  const { chains, sets } = rulesOfServices({
    ...{ nodeName: 'pi-01', zone: '', addresses: [], family: ipv6Rules },
    ...{ clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  })(new Map())
  t.same(chains.get('service-dispatch')?.rules, [
    'ip6 daddr @cluster-ips ip6 saddr != fd00:10:244::/56 meta mark set meta mark or 0x4000',
    'ip6 daddr . meta l4proto . th dport vmap @service-ips',
    'fib daddr type local ip6 daddr != ::1 meta l4proto . th dport vmap @service-nodeports',
  ])
  t.same([...sets].map(([name, { type }]) => `${name} ${type}`).sort(), [
    'cluster-ips ipv6_addr',
    'firewall-ips ipv6_addr . inet_proto . inet_service : verdict',
    'hairpin-ips ipv6_addr . ipv6_addr',
    'no-endpoint-nodeports inet_proto . inet_service : verdict',
    'no-endpoint-services ipv6_addr . inet_proto . inet_service : verdict',
    'service-ips ipv6_addr . inet_proto . inet_service : verdict',
    'service-nodeports inet_proto . inet_service : verdict',
  ])
  const ofIPv4 = [...rulesOfServices(node)(new Map()).chains].flatMap(([, { rules }]) => rules)
  const texts = [...chains].flatMap(([, { rules }]) => rules)
  t.equal(texts.length, ofIPv4.length)
  for (const rule of texts) t.notMatch(rule, /\bip (s|d)addr|\d+\.\d+\.\d+\.\d+/)
})
