import { test } from 'tap'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import { networkPath, pathText } from './network-path.ts'
import type { NodeRoute } from './network-report.ts'
import type { PathFindings } from './path-ends.ts'
import { aService, endpointOn } from './testing/services.ts'

const node = (number: number, way: NodeRoute['way'], more: Partial<NodeRoute> = {}): NodeRoute => ({
  ...{ name: `pi-${number}`, podCIDR: `10.244.${number}.0/24`, address: `192.168.1.${number}`, way, state: 'in place' },
  ...more,
})
const nodes = [
  node(1, 'none', { state: 'this node' }),
  node(2, 'route'),
  node(3, 'tunnel', { state: 'missing' }),
  node(4, 'wireguard', { relay: 'hub' }),
]
const [clusterCIDR, serviceCIDR] = ['10.244.0.0/16', '10.96.0.0/12']
const message: NetworkMessage = {
  ...{ epoch: 'e', version: 1, clusterCIDR, serviceCIDR, clusterDomain: 'cluster.local' },
  nodes: nodes.map(({ name, podCIDR, address }) => ({ name, podCIDR, address, segment: 'lan' })),
}
const web = aService({
  addresses: [
    endpointOn('pi-1', '10.244.1.5'),
    endpointOn('pi-2', '10.244.2.5', { hostname: 'db-0', pod: 'db-0' }),
    endpointOn('pi-4', '10.244.4.5', { ready: false }),
  ],
  loadBalancerIPs: ['192.168.1.240'],
})
const findings = (...services: PathFindings['services']): PathFindings => ({
  message,
  services,
  report: {
    node: 'pi-1',
    problems: [],
    network: {
      podCIDR: '10.244.1.0/24',
      clusterCIDR,
      serviceCIDR,
      nodes,
      services: { total: 0, withoutEndpoints: [] },
      loadBalancers: [],
      isolated: [],
    },
  },
})
const shown = (name: string, ...services: PathFindings['services']) => {
  const path = networkPath(name, findings(...services))
  return path && pathText(path)
}

test('a Service is shown with its endpoints, and the way to each of them', async (t) => {
  const text = `: Service shop/web, address 10.96.0.7, also 192.168.1.240

PORT    TO               NODE  USED  BY
80/TCP  10.244.1.5:8080  pi-1  yes   this node
80/TCP  10.244.2.5:8080  pi-2  yes   route by 192.168.1.2
80/TCP  10.244.4.5:8080  pi-4  no    WireGuard by hub
`
  const names = ['shop/web', 'web.shop', 'web.shop.svc', 'Web.Shop.svc.cluster.local.', '10.96.0.7', '192.168.1.240']
  for (const name of names) t.equal(shown(name, web), `${name}${text}`)
  t.match(shown('web', { ...web, namespace: 'default' }), /^web: Service default\/web/)
})

test('a Service without an endpoint for this node has a problem', async (t) => {
  t.match(shown('shop/web', aService({})), /\n- No endpoint is ready: connections are refused\n/)
  const local = { internalTrafficPolicy: 'Local', addresses: [endpointOn('pi-2', '10.244.2.5')] } as const
  t.match(shown('shop/web', aService(local)), / no +route by .*\n\nProblems:\n- No endpoint on this node is ready/)
  t.match(
    shown('shop/web', aService({ addresses: [endpointOn('pi-3', '10.244.3.5')] })),
    [/VXLAN \(missing\)\n\nProblems:\n- No complete route to the pods of pi-3: missing\n/][0],
  )
})

test('names of headless Services and aliases are not addresses', async (t) => {
  const headless = { ...web, clusterIPs: [], loadBalancerIPs: [] }
  t.match(shown('web.shop', headless), /: Service shop\/web, headless: its names lead to its endpoints\n/)
  t.match(
    shown('db-0.web.shop', headless),
    /USED {2}BY\n80\/TCP {2}10\.244\.2\.5:8080 {2}pi-2 {2}yes {3}route by 192\.168\.1\.2\n$/,
  )
  t.match(shown('10-244-1-5.web.shop', headless), /10\.244\.1\.5:8080 {2}pi-1 {2}yes {3}this node\n$/)
  t.match(shown('web.shop', { ...headless, ports: [] }), /- {2,}10\.244\.1\.5 {2,}pi-1 {2}yes/)
  t.match(shown('web.shop', { ...headless, endpoints: [] }), /- No endpoint is ready: its names have no addresses\n/)
  const alias = { ...headless, type: 'ExternalName', externalName: 'db.example' } as const
  t.equal(shown('web.shop', alias), 'web.shop: Service shop/web, an alias for db.example\n')
})

test('addresses and nodes', async (t) => {
  t.match(
    shown('10.244.2.5', web),
    /^10\.244\.2\.5: pod shop\/db-0\n[\s\S]* 10\.244\.2\.5 +pi-2 +yes +route by 192\.168\.1\.2\n$/,
  )
  t.match(shown('10-244-4-9.shop.pod.cluster.local'), /: an address of a pod\n[\s\S]*pi-4 +yes +WireGuard by hub\n$/)
  t.match(shown('10.244.3.9'), /- No complete route to the pods of pi-3: missing/)
  t.match(shown('10.244.99.1'), /- No node has a range for pods with this address/)
  t.match(shown('10.96.0.99'), /- No Service has this address: packets to it are dropped/)
  t.match(shown('192.0.2.1'), /: an address outside of the fleet\n[\s\S]* network of the machine\n$/)
  for (const name of ['pi-2', 'pi-2.node.cluster.local', '192.168.1.2'])
    t.match(shown(name), /: node pi-2\n[\s\S]*192\.168\.1\.2 +pi-2 +yes +network of the machine\n$/)
})

test('what the fleet does not have has no path', async (t) => {
  for (const name of ['db', 'shop/db', 'db.shop', 'shop', 'example.com', '', 'pi-9.node.cluster.local'])
    t.equal(shown(name, web), undefined, name)
})

test('a Service of both families is shown with its addresses and endpoints of both', async (t) => {
  const ipv6 = { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' }
  const dualStack = message.nodes.map((one, index) => ({
    ...one,
    ipv6: { podCIDR: `fd00:10:244:${index + 1}::/64`, address: `fd00:7::${index + 1}` },
  }))
  const ports = [{ port: 8080, protocol: 'TCP' as const }]
  const ofIPv6 = [endpointOn('pi-1', 'fd00:10:244:1::5'), endpointOn('pi-2', 'fd00:10:244:2::5', { pod: 'db-0' })]
  const both = { ...web, ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints: [{ ports, addresses: ofIPv6 }] } }
  const lookWith = (state: 'in place' | 'missing', name: string, ...services: PathFindings['services']) => {
    const known = findings(...services)
    const routes = nodes.map((one, index) => {
      const there = one.state === 'this node' ? one.state : state
      return { ...one, ipv6: { podCIDR: `fd00:10:244:${index + 1}::/64`, state: there } }
    })
    const network = known.report.network && { ...known.report.network, nodes: routes }
    const report = { ...known.report, ...(network && { network }) }
    const path = networkPath(name, { services, report, message: { ...message, ipv6, nodes: dualStack } })
    return path && pathText(path)
  }
  const look = (name: string, ...services: PathFindings['services']) => lookWith('in place', name, ...services)
  const text = `: Service shop/web, address 10.96.0.7, fd00:10:96::7, also 192.168.1.240

PORT    TO                       NODE  USED  BY
80/TCP  10.244.1.5:8080          pi-1  yes   this node
80/TCP  10.244.2.5:8080          pi-2  yes   route by 192.168.1.2
80/TCP  10.244.4.5:8080          pi-4  no    WireGuard by hub
80/TCP  [fd00:10:244:1::5]:8080  pi-1  yes   this node
80/TCP  [fd00:10:244:2::5]:8080  pi-2  yes   route by fd00:7::2
`
  t.equal(look('shop/web', both), `shop/web${text}`)
  t.equal(look('FD00:10:96:0::7', both), `fd00:10:96::7${text}`)
  const { endpoints } = both.ipv6
  const single = { ...both, clusterIPs: [], loadBalancerIPs: [], endpoints: [] }
  t.match(look('shop/web', single), /^shop\/web: Service shop\/web, address fd00:10:96::7\n\nPORT .*\n80\/TCP +\[fd00/)
  t.match(look('shop/web', { ...both, ipv6: { ...both.ipv6, endpoints: [] } }), /\n- No IPv6 endpoint is ready: /)
  const headless = { ...web, clusterIPs: [], ports: [], loadBalancerIPs: [], ipv6: { clusterIPs: [], endpoints } }
  t.match(look('fd00-10-244-2--5.web.shop', headless), /headless.*\n\nPORT +TO.*\n- +fd00:10:244:2::5 +pi-2 +yes/)
  t.match(look('fd00:10:244:2::5', both), /: pod shop\/db-0\n/)
  t.match(look('fd00:10:244:9::5', both), /No node has a range for pods with this address/)
  t.match(look('fd00:10:96::99', both), /an address of the range of Services fd00:10:96::\/112/)
  t.match(look('2001:db8::1', both), /an address outside of the fleet/)
  t.match(look('pi-2', both), /192\.168\.1\.2 .*\n- +fd00:7::2 +pi-2/)
  t.match(look('fd00:7::2', both), /^fd00:7::2: node pi-2/)
  t.match(
    lookWith('missing', 'shop/web', both),
    /\[fd00:10:244:2::5\]:8080 +pi-2 +yes +route by fd00:7::2 \(missing\)\n\nProblems:\n- No complete IPv6 route to the pods of pi-2: missing\n$/,
  )
})

test('endpoints of nodes that do not answer are not used, in the family that they do not answer by', async (t) => {
  const endpoints = [
    {
      ports: [{ port: 8080, protocol: 'TCP' as const }],
      addresses: [endpointOn('pi-1', 'fd00::1'), endpointOn('pi-2', 'fd00::2')],
    },
  ]
  const service = { ...web, ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints } }
  const usedWith = (ipv4: readonly string[], ipv6: readonly string[]) =>
    networkPath('shop/web', { ...findings(service), silentNodes: { ipv4, ipv6 } })?.ends.flatMap(({ address, used }) =>
      used ? [address] : [],
    )
  t.same(usedWith([], ['pi-2']), ['10.244.1.5:8080', '10.244.2.5:8080', '[fd00::1]:8080'])
  t.same(usedWith(['pi-2'], []), ['10.244.1.5:8080', '[fd00::1]:8080', '[fd00::2]:8080'])
})
