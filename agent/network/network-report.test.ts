import { test } from 'tap'
import { parseCidr } from '../../api/text/cidr.ts'
import { engineObstacle } from './gate/network-obstacle.ts'
import { type NetworkFindings, networkReport, networkText } from './network-report.ts'
import { noProofs } from './probes/proven-network.ts'
import { aService, endpointOn } from './testing/services.ts'

const range = (text: string) => {
  const parsed = parseCidr(text)
  if (parsed === undefined) throw new Error(`Not a range: ${text}`)
  return parsed
}
const node = (number: number, segment = 'lan') => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment,
})
const whole: NetworkFindings = {
  nodeName: 'pi-1',
  message: {
    epoch: 'e',
    version: 1,
    clusterCIDR: '10.244.0.0/16',
    serviceCIDR: '10.96.0.0/12',
    clusterDomain: 'cluster.local',
    nodes: [node(1), node(2), node(3, 'attic')],
  },
  services: [],
  proofs: noProofs,
  heldAddresses: new Set(),
  links: {
    routes: [
      { interface: 'eth0', range: range('10.244.2.0/24'), gateway: '192.168.1.2', metric: 0 },
      { interface: 'bramble-vxlan', range: range('10.244.3.0/24'), gateway: '10.244.3.0', metric: 0 },
    ],
    hasTunnel: true,
    hasWireguard: false,
  },
  made: { routes: [], tunnelPeers: [] },
  hasRules: true,
  hasIPv6: true,
  isIPv6Closed: true,
  dockerAccepts: true,
  forwards: true,
  filtersBridges: true,
  isolated: [],
  nowSeconds: 0,
}

test('a node whose network is whole has no problems', async (t) => {
  const report = networkReport(whole)
  t.same(report.problems, [])
  t.equal(
    networkText(report),
    `Node pi-1: pods 10.244.1.0/24 of 10.244.0.0/16, Services 10.96.0.0/12

NODE  PODS           ADDRESS      BY      STATE
pi-1  10.244.1.0/24  192.168.1.1  none    this node
pi-2  10.244.2.0/24  192.168.1.2  route   in place
pi-3  10.244.3.0/24  192.168.1.3  tunnel  in place
`,
  )
})

test('what is missing is named', async (t) => {
  const report = networkReport({
    ...whole,
    links: { routes: [], hasTunnel: false, hasWireguard: false },
    hasRules: false,
    isIPv6Closed: false,
    dockerAccepts: false,
    forwards: false,
    filtersBridges: false,
  })
  t.match(report.problems, [
    /table of rules/,
    /No rules keep IPv6 away/,
    /DOCKER-USER/,
    /ip_forward=1/,
    /bridge-nf-call-iptables=1/,
    /the pods of pi-2, pi-3$/,
  ])
  t.match(networkText(report), /pi-2 .* missing\n/)
  t.match(networkText(report), /\n\nProblems:\n- The table/)
})

test('a route of others in the place of ours is a problem', async (t) => {
  const foreign = { interface: 'wg0', range: range('10.244.2.0/24'), metric: 0 }
  const report = networkReport({ ...whole, links: { routes: [foreign], hasTunnel: false, hasWireguard: false } })
  t.ok(report.problems.some((problem) => /10\.244\.2\.0\/24 on wg0/.test(problem)))
  t.match(report.network?.nodes[1], { name: 'pi-2', state: 'missing' })
})

test('without a network of the fleet, or a range for this node, the report states that', async (t) => {
  const none = networkReport({ ...whole, message: undefined, hasRules: false, dockerAccepts: false })
  t.same(none.problems, [])
  t.match(networkText(none), /has no network of its own \(podNetwork: node\)/)
  const off = networkReport({ ...whole, message: undefined, obstacle: engineObstacle('nftables') })
  t.match(off.problems, [/firewall backend is nftables.*Pods of this node run in Docker's own network.*"iptables"/])
  t.match(networkText(off), /^Node pi-1: it is not part of the network of the fleet\n/)
  const shared = { ...node(4), address: '192.168.1.1' }
  const message = whole.message && { ...whole.message, nodes: [node(1), shared] }
  t.match(networkReport({ ...whole, message }).network?.nodes[1], { name: 'pi-4', way: 'none', state: 'not reached' })
  t.match(networkReport({ ...whole, nodeName: 'pi-9' }).problems, [/has not assigned/])
})

test('pods that policies restrict are listed', async (t) => {
  const isolated = [
    { pod: 'shop/db', address: '10.244.1.5', directions: ['ingress', 'egress'] as const },
    { pod: undefined, address: '10.244.1.16', directions: ['ingress'] as const },
  ]
  t.match(
    networkText(networkReport({ ...whole, isolated })),
    `
POD                 ADDRESS      ISOLATED
shop/db             10.244.1.5   ingress, egress
<unknown policies>  10.244.1.16  ingress
`,
  )
})

const keyed = (number: number, more: object = {}) => ({
  ...node(number, `site ${number}`),
  wireguardKey: `key ${number}`,
  ...more,
})
const hidden = { wireguardEndpoint: 'none' }
const encrypted: NetworkFindings = {
  ...whole,
  message: whole.message && {
    ...whole.message,
    wireguard: { port: 51_871 },
    nodes: [keyed(1, hidden), keyed(2, hidden), keyed(3, { relay: true }), keyed(4)],
  },
  links: {
    routes: [2, 3, 4].map((number) => ({
      interface: 'bramble-wg',
      range: range(`10.244.${number}.0/24`),
      gateway: `10.244.${number}.0`,
      metric: 0,
    })),
    hasTunnel: false,
    hasWireguard: true,
  },
  nowSeconds: 5_000,
}
const peerState = (handshake: number) => ({ endpoint: '192.0.2.1:1', ranges: [], handshake, keepaliveSeconds: 25 })

test('of nodes of other sites the report has the way and the contact', async (t) => {
  const state = (third: number, fourth: number) => ({
    publicKey: 'own',
    port: 51_871,
    peers: new Map([
      ['key 3', peerState(third)],
      ['key 4', peerState(fourth)],
    ]),
  })
  const report = networkReport({ ...encrypted, wireguard: state(4_990, 4_990) })
  t.same(report.problems, [])
  t.match(networkText(report), /pi-2 .* relay pi-3 +in place\npi-3 .* wireguard +in place\n/)
  const silent = networkReport({ ...encrypted, wireguard: state(0, 4_000) })
  t.match(networkText(silent), /pi-2 .* relay pi-3 +no contact yet\npi-3 .* no contact yet\npi-4 .* contact lost\n/)
  t.same(silent.problems, ['node pi-3 has not answered WireGuard at 192.168.1.3:51871 yet'], 'once')
  const nodes = encrypted.message?.nodes.filter(({ name }) => name !== 'pi-3') ?? []
  const alone = networkReport({ ...encrypted, message: encrypted.message && { ...encrypted.message, nodes } })
  t.match(alone.problems, [/^no route to the pods of pi-2/])
  t.match(alone.network?.nodes[1], { name: 'pi-2', state: 'not reached' })
})

test('addresses of load balancers are shown with their nodes, and one that is missing here is a problem', async (t) => {
  const balancer = (name: string, address: string, node: string) =>
    aService({ name, type: 'LoadBalancer', loadBalancerIPs: [address], loadBalancerNode: node })
  const report = networkReport({
    ...whole,
    services: [
      {
        ...balancer('web', '192.168.1.240', 'pi-1'),
        ipv6: { clusterIPs: [], loadBalancerIPs: ['fd00:9::240'], endpoints: [] },
      },
      balancer('db', '192.168.1.241', 'pi-2'),
      balancer('api', '192.168.1.242', 'pi-1'),
      aService({ name: 'plain', type: 'LoadBalancer', loadBalancerIPs: ['192.168.1.1'] }),
    ],
    heldAddresses: new Set(['192.168.1.240', 'fd00:9::240']),
  })
  t.match(
    networkText(report),
    `
LOAD BALANCER  SERVICE   NODE  STATE
192.168.1.242  shop/api  pi-1  missing
192.168.1.241  shop/db   pi-2  other node
192.168.1.240  shop/web  pi-1  in place
fd00:9::240    shop/web  pi-1  in place
`,
  )
  t.same(report.problems, [
    'This node does not answer for 192.168.1.242: another machine does, or the agent is not running',
  ])
})

test('a node whose address is not proven is named with the reason, one that has a route meanwhile is not', async (t) => {
  const [first, second, third] = [node(1), { ...node(2), probePort: 8473 }, { ...node(3, 'attic'), probePort: 8473 }]
  const message = whole.message && { ...whole.message, nodes: [first, second, third] }
  const links = { ...whole.links, routes: whole.links.routes.slice(1) }
  const failures = new Map([['pi-2', { why: 'other node', node: 'pi-7' } as const]])
  const report = networkReport({ ...whole, message, links, proofs: { used: new Map(), failures } })
  t.match(networkText(report), /pi-2 .* route +not proven\npi-3 .* tunnel +in place\n/)
  t.same(report.problems, [
    'no route to the pods of pi-2, whose address 192.168.1.2 is not proven: node pi-7 answers there; the fleet follows when the other one has reported its address',
  ])
  const early = networkReport({ ...whole, message, links, proofs: noProofs })
  t.match(networkText(early), /pi-2 .* not proven/, 'before the first probe')
})

test('Services are counted, and those without an endpoint that is ready are named', async (t) => {
  const ready = aService({ name: 'web', addresses: [endpointOn('pi-1', '10.244.1.5')] })
  const alias = { ...aService({ name: 'alias', addresses: [] }), type: 'ExternalName' } as const
  const empty = (count: number) =>
    Array.from({ length: count }, (_, index) => aService({ name: `empty-${index}`, addresses: [] }))
  const lineOf = (services: NetworkFindings['services']) =>
    /^Services: .*$/m.exec(networkText(networkReport({ ...whole, services })))?.[0]
  t.equal(lineOf([ready, alias]), 'Services: 2, of which 0 have no endpoint that is ready')
  t.equal(
    lineOf([ready, ...empty(2)]),
    'Services: 3, of which 2 have no endpoint that is ready (shop/empty-0, shop/empty-1)',
  )
  t.match(lineOf(empty(7)), /7 have .*shop\/empty-4, and 2 more\)$/)
})
