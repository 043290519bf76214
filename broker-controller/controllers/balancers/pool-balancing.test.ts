import { test } from 'tap'
import { parseAddressRange } from './address-pool.ts'
import type { BalancedService } from './balanced-services.ts'
import type { BalancerNode } from './balancer-nodes.ts'
import { balanceByPool } from './pool-balancing.ts'
import { balancedService as service } from './testing/services.ts'

const range = parseAddressRange('192.168.1.240-192.168.1.242')
const pool = range === undefined ? [] : [range]

function node(name: string, given: Partial<BalancerNode> = {}): BalancerNode {
  const address = `192.168.1.${name.slice(3)}`
  return { name, address, segment: '192.168.1.0/24', isReady: true, isExcluded: false, ...given }
}

const three = [node('pi-1'), node('pi-2'), node('pi-3')]
const result = (services: readonly BalancedService[], nodes = three, foreign: readonly string[] = []) =>
  Object.fromEntries(
    balanceByPool(
      services,
      nodes,
      pool,
      foreign.map((ip) => ({ key: 'metal/web', ips: [ip], ports: ['TCP/80'] })),
    ),
  )

test('each Service has an address of its own, and nodes have as many as each other', async (t) => {
  const found = result([service('a'), service('bb'), service('ccc')])
  t.same(
    Object.values(found).map(({ ips }) => ips),
    [['192.168.1.240'], ['192.168.1.241'], ['192.168.1.242']],
  )
  t.same(
    Object.values(found)
      .map((one) => one.node)
      .sort(),
    ['pi-1', 'pi-2', 'pi-3'],
  )
})

test('what was decided stays: deciding again changes nothing', async (t) => {
  const services = [service('a'), service('bb'), service('ccc', { requestedIPs: ['192.168.1.240'] })]
  const first = result(services)
  const again = services.map((one) => ({ ...one, ...first[one.key] }))
  t.same(result(again), first)
  t.same(result([...again].reverse()), first, 'in any order')
})

test('an address that is requested is given before those that are not', async (t) => {
  const found = result([service('a'), service('bb', { requestedIPs: ['192.168.1.240'] })])
  t.same(found['shop/bb']?.ips, ['192.168.1.240'])
  t.same(found['shop/a']?.ips, ['192.168.1.241'])
})

test('a request outside of the pool, or for an address in use, is a problem with its remedy', async (t) => {
  const nodes = [...three, node('pi-241')]
  const found = result(
    [
      service('a', { requestedIPs: ['192.168.1.9'] }),
      service('bb', { ips: ['192.168.1.240'], node: 'pi-1' }),
      service('ccc', { requestedIPs: ['192.168.1.240'] }),
      service('dddd', { requestedIPs: ['192.168.1.241'] }),
    ],
    nodes,
  )
  t.match(found['shop/a'], { ips: [], problem: /^Address 192.168.1.9 is not in the pool \(.*\): request one/ })
  t.match(found['shop/ccc'], { ips: [], problem: /^Address 192.168.1.240 is in use by Service shop\/bb: request/ })
  t.match(found['shop/dddd'], { ips: [], problem: /in use by node pi-241/ })
})

test('a request that cannot be met does not cost a Service its address', async (t) => {
  const found = result([service('a', { ips: ['192.168.1.241'], node: 'pi-2', requestedIPs: ['192.168.1.9'] })])
  t.match(found['shop/a'], { ips: ['192.168.1.241'], node: 'pi-2', problem: /not in the pool/ })
})

test('without an address left a Service waits, and gets the one that becomes free', async (t) => {
  const services = ['a', 'bb', 'ccc', 'dddd'].map((name) => service(name))
  const found = result(services)
  t.match(found['shop/dddd'], {
    ips: [],
    problem: /^No address is left in the pool \(192.168.1.240-.*loadBalancerPool/,
  })
  const rest = services.slice(1).map((one) => ({ ...one, ...found[one.key] }))
  t.same(result(rest)['shop/dddd']?.ips, ['192.168.1.240'])
})

test('of two Services with one address the older keeps it', async (t) => {
  const found = result([service('bb', { ips: ['192.168.1.240'] }), service('a', { ips: ['192.168.1.240'] })])
  t.same(found['shop/a']?.ips, ['192.168.1.240'])
  t.same(found['shop/bb']?.ips, ['192.168.1.241'])
})

test('an address that left the pool, belongs to a node or to another load balancer is replaced', async (t) => {
  const nodes = [...three, node('pi-240')]
  const found = result([service('a', { ips: ['10.0.0.1'] }), service('bb', { ips: ['192.168.1.240'] })], nodes, [
    '192.168.1.241',
  ])
  t.same(found['shop/a']?.ips, ['192.168.1.242'])
  t.match(found['shop/bb'], { ips: [], problem: /No address is left/ })
})

test('an address moves when its node is not ready or excluded, and only then', async (t) => {
  const held = service('a', { ips: ['192.168.1.240'], node: 'pi-2' })
  t.equal(result([held])['shop/a']?.node, 'pi-2')
  for (const gone of [node('pi-2', { isReady: false }), node('pi-2', { isExcluded: true })]) {
    const moved = result([held], [node('pi-1'), gone])['shop/a']
    t.match(moved, { ips: ['192.168.1.240'], node: 'pi-1' })
  }
  const down = three.map((one) => ({ ...one, isReady: false }))
  t.equal(result([held], down)['shop/a']?.node, 'pi-2', 'not while no node is ready')
  t.equal(result([held], [])['shop/a']?.node, undefined, 'the node does not exist')
})

test('with the policy Local a node with a ready endpoint answers', async (t) => {
  const local = { ips: ['192.168.1.240'], node: 'pi-1', policy: 'Local' } as const
  t.equal(result([service('a', { ...local, endpointNodes: new Set(['pi-3']) })])['shop/a']?.node, 'pi-3')
  t.equal(result([service('a', { ...local, endpointNodes: new Set(['pi-3', 'pi-1']) })])['shop/a']?.node, 'pi-1')
  t.equal(result([service('a', local)])['shop/a']?.node, 'pi-1', 'it stays while there is no endpoint')
})

test('an address belongs on the link of the nodes beside it, where there are some', async (t) => {
  const far = { address: '172.16.0.9', segment: '172.16.0.0/24' }
  const held = service('a', { ips: ['192.168.1.240'] })
  t.equal(result([held], [node('pi-1', far), node('pi-2')])['shop/a']?.node, 'pi-2')
  t.equal(result([held], [node('pi-1', far), node('pi-2', { isReady: false })])['shop/a']?.node, undefined)
  const beside = { address: '192.168.0.9', segment: 'house' }
  const house = [node('pi-1', beside), node('pi-2', { segment: 'house', isReady: false })]
  t.equal(result([held], house)['shop/a']?.node, 'pi-1', 'a segment may have several networks')
  t.equal(result([held], [node('pi-1', far)])['shop/a']?.node, 'pi-1', 'no node is beside the address')
})

const bothPool = [...pool, ...['fd00:9::1-fd00:9::2'].flatMap((text) => parseAddressRange(text) ?? [])]
const dualNodes = three.map((one) => ({ ...one, ipv6: `fd00:9::${one.name.slice(3)}00` }))
const both = (services: readonly BalancedService[], nodes: readonly BalancerNode[] = dualNodes, given = bothPool) =>
  Object.fromEntries(balanceByPool(services, nodes, given))
const dual = (name: string, given: Partial<BalancedService> = {}) =>
  service(name, { families: ['IPv4', 'IPv6'], ...given })

test('a Service of both families has an address of each, in their order, and one node', async (t) => {
  const found = both([dual('a'), dual('bb', { families: ['IPv6', 'IPv4'] }), service('ccc', { families: ['IPv6'] })])
  t.match(found['shop/a'], { ips: ['192.168.1.240', 'fd00:9::1'], node: /^pi-/ })
  t.same(found['shop/bb']?.ips, ['fd00:9::2', '192.168.1.241'])
  t.match(found['shop/ccc'], {
    ips: [],
    problem: /^No IPv6 address is left in the pool \(fd00:9::1-fd00:9::2\): add/,
  })
  const again = [dual('a', { ips: ['192.168.1.240'], node: 'pi-2' })]
  t.match(
    both(again)['shop/a'],
    { ips: ['192.168.1.240', 'fd00:9::1'], node: 'pi-2' },
    'one that has one gets the other',
  )
})

test('what was decided for both families stays: deciding again changes nothing', async (t) => {
  const services = [dual('a'), dual('bb', { needsAll: true }), service('ccc'), dual('dddd')]
  const first = both(services)
  const again = services.map((one) => ({ ...one, ...first[one.key] }))
  t.same(both(again), first)
  t.same(both([...again].reverse()), first, 'in any order')
})

test('a Service that lacks a family of the pool has the other one, unless it needs both', async (t) => {
  const found = both([dual('a'), dual('bb', { needsAll: true }), service('ccc', { families: ['IPv6'] })], three, pool)
  t.match(found['shop/a'], { ips: ['192.168.1.240'], problem: undefined })
  const lacks = /^The pool has IPv4 addresses, and the Service .*: add some of IPv6 to loadBalancerPool/
  t.match(found['shop/bb'], { ips: [], node: undefined, problem: lacks })
  t.match(found['shop/ccc'], { ips: [], node: undefined, problem: lacks })
  const had = dual('a', { needsAll: true, ips: ['192.168.1.241'], node: 'pi-1' })
  t.match(
    both([had], three, pool)['shop/a'],
    { ips: ['192.168.1.241'], node: 'pi-1', problem: lacks },
    'clients use it',
  )
})

test('a Service that needs both families takes no address while one of them is used up', async (t) => {
  const older = [dual('a'), dual('bb')]
  const found = both([...older, dual('ccc', { needsAll: true }), service('dddd')])
  t.match(found['shop/ccc'], { ips: [], problem: /^No IPv6 address is left/ })
  t.same(found['shop/dddd']?.ips, ['192.168.1.242'], 'the IPv4 address is free for others')
})

test('an address of each family can be requested', async (t) => {
  const found = both([dual('a', { requestedIPs: ['fd00:9::2', '192.168.1.242'] })])
  t.same(found['shop/a']?.ips, ['192.168.1.242', 'fd00:9::2'])
  const one = both([dual('a', { requestedIPs: ['fd00:9::2'] }), dual('bb', { requestedIPs: ['fd00:9::9'] })])
  t.same(one['shop/a']?.ips, ['192.168.1.240', 'fd00:9::2'])
  t.match(one['shop/bb'], { ips: ['192.168.1.241'], problem: /^Address fd00:9::9 is not in the pool/ })
  const other = both([service('a', { requestedIPs: ['fd00:9::2'] })])
  t.match(other['shop/a'], {
    ips: [],
    problem: /^Address fd00:9::2 is not of IPv4, the family of the Service: request/,
  })
  const used = both([dual('a', { requestedIPs: ['fd00:9::1'] })], [node('pi-1', { ipv6: 'fd00:9::1' })])
  t.match(used['shop/a'], { problem: /^Address fd00:9::1 is in use by node pi-1/ })
})

test('an IPv6 address goes to a node with IPv6, on the link of the address', async (t) => {
  const nodes = [
    node('pi-1'),
    node('pi-2', { ipv6: 'fd00:9::200' }),
    node('pi-3', { ipv6: 'fd00:8::3', segment: 'far' }),
  ]
  const alone = service('a', { families: ['IPv6'], ips: ['fd00:9::1'] })
  t.equal(both([alone], nodes)['shop/a']?.node, 'pi-2')
  t.equal(both([dual('a')], nodes)['shop/a']?.node, 'pi-2')
  t.equal(both([alone], three)['shop/a']?.node, undefined, 'none has it')
  t.match(both([dual('a')], three)['shop/a']?.node, /^pi-/, 'that of IPv4 is better than none')
})

const pihole = { key: 'shop/pihole', backend: '' }
const tcp = (given: Partial<BalancedService> = {}) =>
  service('tcp', { ports: ['TCP/53', 'TCP/80'], sharing: pihole, ...given })
const udp = (given: Partial<BalancedService> = {}) => service('udp-', { ports: ['UDP/53'], sharing: pihole, ...given })
const requested = { requestedIPs: ['192.168.1.241'] }

test('Services with one sharing key have the address that both request, and one node', async (t) => {
  const found = result([service('a'), tcp(requested), udp(requested)])
  t.same(found['shop/tcp']?.ips, ['192.168.1.241'])
  t.match(found['shop/udp-'], { ips: ['192.168.1.241'], node: found['shop/tcp']?.node, problem: undefined })
  t.not(found['shop/a']?.node, found['shop/tcp']?.node, 'they count as one address')
})

test('by their sharing key alone Services have one address, unless their ports meet', async (t) => {
  const found = result([tcp(), udp(), service('third', { sharing: pihole, ports: ['TCP/443', 'TCP/80'] })])
  t.same(found['shop/tcp']?.ips, ['192.168.1.240'])
  t.same(found['shop/udp-']?.ips, ['192.168.1.240'])
  t.match(found['shop/third'], { ips: ['192.168.1.241'], problem: undefined })
  const dualFound = both([dual('a', { sharing: pihole }), dual('bb', { sharing: pihole, ports: ['UDP/80'] })])
  t.same(dualFound['shop/a'], dualFound['shop/bb'], 'in each family')
})

test('what was decided for Services that share stays, also when one of them is deleted or waits for its finalizers', async (t) => {
  const services = [tcp(requested), udp(requested), service('third', { sharing: pihole, ports: ['TCP/443'] })]
  const first = result(services)
  const again = services.map((one) => ({ ...one, ...first[one.key] }))
  t.same(result(again), first)
  t.same(result([...again].reverse()), first, 'in any order')
  const [leaving, ...rest] = again
  if (leaving === undefined) throw new Error('no Service')
  for (const others of [[], [leaving]]) {
    const left = Object.fromEntries(balanceByPool(rest, three, pool, others))
    t.same(left['shop/udp-'], first['shop/udp-'])
    t.same(left['shop/third'], first['shop/third'])
  }
})

test('why a requested address is not shared is one sentence with its remedy', async (t) => {
  const problemOf = (one: BalancedService, other: BalancedService) => result([one, other])[other.key]?.problem
  t.equal(
    problemOf(tcp(requested), udp({ ...requested, ports: ['UDP/53', 'TCP/80'] })),
    'Port TCP/80 of address 192.168.1.241 is in use by Service shop/tcp: change the port, or request another address',
  )
  const merge =
    'Address 192.168.1.241 is in use by Service shop/tcp: request another one, or none, put the ports of both into one Service, or give both the annotation metallb.io/allow-shared-ip with the same value'
  const { sharing: _, ...alone } = udp(requested)
  t.equal(problemOf(tcp(requested), alone), merge)
  t.equal(problemOf(tcp(requested), udp({ ...requested, sharing: { ...pihole, key: 'shop/other' } })), merge)
  t.equal(
    problemOf(tcp(requested), udp({ ...requested, key: 'bar/udp', sharing: { ...pihole, key: 'bar/pihole' } })),
    'Address 192.168.1.241 is in use by Service shop/tcp: request another one, or none',
    'of another namespace',
  )
  t.equal(
    problemOf(
      tcp(requested),
      udp({ ...requested, policy: 'Local', sharing: { ...pihole, backend: '[["app","dns"]]' } }),
    ),
    'Address 192.168.1.241 is in use by Service shop/tcp: to share it, give both Services externalTrafficPolicy Cluster, or both Local and the same selector',
  )
  t.match(
    result([udp(requested)], three, ['192.168.1.241'])['shop/udp-']?.problem,
    /in use by a Service of another load balancer: request another one, or none$/,
  )
})

test('with the policy Local the node of Services that share has their pods', async (t) => {
  const local = {
    policy: 'Local',
    sharing: { ...pihole, backend: '[["app","dns"]]' },
    endpointNodes: new Set(['pi-3']),
  } as const
  const found = result([tcp(local), udp(local)])
  t.match(found['shop/tcp'], { ips: ['192.168.1.240'], node: 'pi-3' })
  t.same(found['shop/udp-'], found['shop/tcp'])
})

test('Services that name two nodes for their address get that of the older one', async (t) => {
  const held = { ips: ['192.168.1.240'] }
  const found = result([udp({ ...held, node: 'pi-1' }), tcp({ ...held, node: 'pi-2' })])
  t.same([found['shop/tcp']?.node, found['shop/udp-']?.node], ['pi-2', 'pi-2'])
})

test('Services that share with two others, each by another family, bring all of them to one node', async (t) => {
  const key = { sharing: pihole }
  const services = [
    service('a', { ...key, ips: ['192.168.1.241'], node: 'pi-2' }),
    service('bb', { ...key, families: ['IPv6'], ips: ['fd00:9::2'], node: 'pi-3' }),
    dual('ccc', { ...key, ports: ['UDP/80'], ips: ['192.168.1.241', 'fd00:9::2'] }),
  ]
  const found = both(services)
  t.same(
    Object.values(found).map(({ node }) => node),
    ['pi-2', 'pi-2', 'pi-2'],
  )
})
