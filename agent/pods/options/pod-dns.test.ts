import { test } from 'tap'
import type { PodSpec } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { asksForHostResolver, parseResolver, podHostname, podResolver, type Resolver } from './pod-dns.ts'

const host = parseResolver(
  '# made by hand\nnameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch lan .\noptions ndots:1 edns0\n',
)

const resolverOf = (spec: PodSpec, machine: Resolver | undefined, clusterDomain?: string) =>
  podResolver(aPod({ namespace: 'shop', spec }), machine, clusterDomain)

test('a pod looks up names as its machine does, and adds to it', async (t) => {
  const { spec } = aPod()
  t.equal(resolverOf(spec, host), undefined)
  const dnsConfig = {
    nameservers: ['192.0.2.2', '192.0.2.3', '192.0.2.4'],
    searches: ['example.com'],
    options: [{ name: 'ndots', value: '5' }, { name: 'rotate' }],
  }
  t.same(resolverOf({ ...spec, dnsConfig }, host), {
    servers: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
    searches: ['lan', 'example.com'],
    options: ['edns0', 'ndots:5', 'rotate'],
  })
  t.same(resolverOf({ ...spec, dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.9'] } }, host), {
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
    asksForHostResolver({ containers: [], ...(dnsPolicy && { dnsPolicy }), ...(dnsConfig && { dnsConfig }) }, undefined)
  t.same([asks('Default', {}), asks(undefined, {})], [true, true])
  t.same([asks('Default'), asks('None', {}), asks('None')], [false, false, false])
})

test('a resolv.conf is read as the C library reads it', async (t) => {
  const text =
    '  nameserver   192.0.2.1  \nnameserver\nsearch a.lan\nsearch b.lan . c.lan\ndomain d.lan\noptions ndots:2\noptions rotate edns0\n'
  t.same(parseResolver(text), {
    servers: ['192.0.2.1'],
    searches: ['b.lan', 'c.lan'],
    options: ['ndots:2', 'rotate', 'edns0'],
  })
  t.same(parseResolver('domain a.lan\ndomain d.lan\n').searches, ['d.lan'])
  t.same(parseResolver(''), { servers: [], searches: [], options: [] })
})

test('a pod whose machine could not be read has its own settings', async (t) => {
  const { spec } = aPod()
  t.same(resolverOf({ ...spec, dnsConfig: { searches: ['a.lan'] } }, undefined), {
    servers: [],
    searches: ['a.lan'],
    options: [],
  })
  const unnamed = { options: [{ value: '5' }, { name: '', value: '6' }, { name: 'rotate' }] }
  t.same(resolverOf({ ...spec, dnsConfig: unnamed }, undefined)?.options, ['rotate'])
  t.same(resolverOf({ ...spec, dnsPolicy: 'None' }, host), { servers: [], searches: [], options: [] })
})

test('a host name has 63 characters at most, and ends in a letter or digit', async (t) => {
  const hostnameOf = (name: string) => podHostname(aPod({ name })).hostname
  t.equal(hostnameOf('x'.repeat(64)), 'x'.repeat(63))
  t.equal(hostnameOf(`${'x'.repeat(60)}--.y`), 'x'.repeat(60))
  const spec = { setHostnameAsFQDN: true }
  t.same(podHostname(aPod({ name: 'web', spec })), { hostname: 'web', domain: '' }, 'no subdomain, no full name')
  t.equal(podHostname(aPod({ namespace: 'prod', spec: { subdomain: 's' } })).domain, 's.prod.svc.cluster.local')
})

test('of several search lines the last counts', async (t) => {
  t.same(parseResolver('search a.lan\ndomain d.lan\nsearch b.lan c.lan\nsearch z.lan\n').searches, ['z.lan'])
  t.same(parseResolver('domain d.lan\ndomain e.lan\ndomain f.lan\n').searches, ['f.lan'])
})

test('with ClusterFirst a pod asks the name server of its node, and searches its namespace first', async (t) => {
  const cluster = {
    servers: ['169.254.20.10'],
    searches: ['shop.svc.fleet.example', 'svc.fleet.example', 'fleet.example', 'lan'],
    options: ['ndots:5'],
  }
  const { spec } = aPod()
  t.same(resolverOf({ ...spec, dnsPolicy: 'ClusterFirst' }, host, 'fleet.example'), cluster)
  t.same(
    resolverOf({ ...spec, dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }, host, 'fleet.example'),
    cluster,
  )
  const dnsConfig = {
    nameservers: ['192.0.2.9', '169.254.20.10'],
    searches: ['a.lan', 'svc.fleet.example'],
    options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
  }
  t.same(resolverOf({ ...spec, dnsConfig }, host, 'fleet.example'), {
    servers: ['169.254.20.10', '192.0.2.9'],
    searches: [...cluster.searches, 'a.lan'],
    options: ['ndots:2', 'edns0'],
  })
})

test('on the network of the machine, with Default and with None a pod does not ask it', async (t) => {
  const { spec } = aPod()
  t.equal(resolverOf({ ...spec, hostNetwork: true }, host, 'fleet.example'), undefined)
  t.equal(resolverOf({ ...spec, dnsPolicy: 'Default' }, host, 'fleet.example'), undefined)
  const dnsConfig = { nameservers: ['192.0.2.9'] }
  t.same(resolverOf({ ...spec, dnsPolicy: 'None', dnsConfig }, host, 'fleet.example'), {
    servers: ['192.0.2.9'],
    searches: [],
    options: [],
  })
  t.match(resolverOf({ ...spec, dnsPolicy: 'Default', dnsConfig }, host, 'fleet.example'), {
    servers: ['192.0.2.1', '192.0.2.2', '192.0.2.9'],
    searches: ['lan'],
  })
})

test('the search domains of the machine are needed for pods that ask the name server of their node', async (t) => {
  const { spec } = aPod()
  t.equal(asksForHostResolver(spec, 'fleet.example'), true)
  t.equal(asksForHostResolver(spec, undefined), false)
  t.equal(asksForHostResolver({ ...spec, hostNetwork: true }, 'fleet.example'), false)
  t.equal(asksForHostResolver({ ...spec, dnsPolicy: 'None' }, 'fleet.example'), false)
})

test('a pod has at most 32 search domains, of 2048 characters', async (t) => {
  const { spec } = aPod()
  const searchesOf = (searches: readonly string[]) =>
    resolverOf({ ...spec, dnsConfig: { searches } }, undefined, 'fleet.example')?.searches ?? []
  t.equal(searchesOf(Array.from({ length: 40 }, (_, index) => `d${index}.lan`)).length, 32)
  const long = searchesOf(Array.from({ length: 20 }, (_, index) => `${'x'.repeat(250)}${index}`))
  t.ok(long.length > 3 && long.join(' ').length <= 2048)
})

test('the full name of a pod ends with the domain of the fleet', async (t) => {
  const pod = aPod({ name: 'web', namespace: 'prod', spec: { subdomain: 's' } })
  t.equal(podHostname(pod, 'fleet.example').domain, 's.prod.svc.fleet.example')
})

test('of options of one name the last one counts, and an empty value does not count', async (t) => {
  const options = [
    { name: 'ndots', value: '2' },
    { name: 'edns0', value: '' },
    { name: 'ndots', value: '3' },
  ]
  const host = { servers: [], searches: [], options: ['ndots:1'] }
  t.same(resolverOf({ containers: [], dnsPolicy: 'Default', dnsConfig: { options } }, host)?.options, [
    'ndots:3',
    'edns0',
  ])
})

test('a search domain has no dot at its end, and one that no name can have is left out', async (t) => {
  t.same(parseResolver('search lan. example.com. .\n').searches, ['lan', 'example.com'])
  const searches = [`${'a.'.repeat(127)}b`, 'lan']
  t.same(resolverOf({ containers: [], dnsPolicy: 'None', dnsConfig: { searches } }, undefined)?.searches, ['lan'])
})
