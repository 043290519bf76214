import { test } from 'tap'
import type { Endpoint, EndpointSlice } from '../../../api/network/endpoint-slice.ts'
import type { Service, ServiceSpec } from '../../../api/network/service.ts'
import { serviceState } from './service-state.ts'

const aService = (spec: ServiceSpec, status: Service['status'] = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name: 'web' },
  spec,
  status,
})

const aSlice = (
  endpoints: readonly Endpoint[],
  ports: EndpointSlice['ports'] = [{ port: 8080 }],
  addressType = 'IPv4',
) =>
  ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'shop', name: 'web-1' },
    endpoints,
    ports,
    addressType,
  }) as EndpointSlice

test('a Service without fields has the defaults of Kubernetes', async (t) => {
  t.same(serviceState(aService({}), []), {
    namespace: 'shop',
    name: 'web',
    type: 'ClusterIP',
    clusterIPs: [],
    ports: [],
    internalTrafficPolicy: 'Cluster',
    externalTrafficPolicy: 'Cluster',
    endpoints: [],
  })
})

test('a load balancer for IPv6-only clients admits no IPv4 client', async (t) => {
  const ranges = (...loadBalancerSourceRanges: readonly string[]) =>
    serviceState(aService({ type: 'LoadBalancer', loadBalancerSourceRanges }), []).sourceRanges
  t.same(ranges('fd00::/8'), ['0.0.0.0/32'])
  t.same(ranges('fd00::/8', '192.0.2.0/24'), ['192.0.2.0/24'])
  t.same(ranges('010.0.0.0/8', '192.0.2.7/24'), ['10.0.0.0/8', '192.0.2.0/24'], 'as nodes read them')
  t.equal(ranges(), undefined)
})

test('IPv6 addresses and SCTP ports are left out', async (t) => {
  const state = serviceState(
    aService({
      clusterIP: '10.96.0.9',
      clusterIPs: ['10.96.0.9', 'fd00::9'],
      externalIPs: ['fd00::1', '192.0.2.1'],
      ports: [
        { name: 'http', port: 80, nodePort: 30_080 },
        { port: 53, protocol: 'UDP' },
        { port: 9, protocol: 'SCTP' },
      ],
    }),
    [
      aSlice(
        [{ addresses: ['10.244.1.5'] }, { addresses: ['fd00::5'] }],
        [{ port: 8080 }, { port: 9, protocol: 'SCTP' }],
      ),
      aSlice([{ addresses: ['fd00::5'] }], undefined, 'IPv6'),
      aSlice([{ addresses: ['a.example'] }], undefined, 'FQDN'),
    ],
  )
  t.match(state, { clusterIPs: ['10.96.0.9'], externalIPs: ['192.0.2.1'] })
  t.same(state.ports, [
    { name: 'http', port: 80, protocol: 'TCP' },
    { port: 53, protocol: 'UDP' },
  ])
  t.same(state.endpoints, [
    {
      ports: [{ port: 8080, protocol: 'TCP' }],
      addresses: [{ ip: '10.244.1.5', ready: true, serving: true, terminating: false }],
    },
  ])
})

test('in a fleet with both IP families a Service has its addresses and endpoints of IPv6 beside those of IPv4', async (t) => {
  const spec: ServiceSpec = {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.9',
    clusterIPs: ['10.96.0.9', 'FD00:10:96:0::9'],
    ipFamilies: ['IPv4', 'IPv6'],
    externalIPs: ['2001:DB8::1', '192.0.2.1'],
    ports: [{ port: 80, nodePort: 30_080 }],
    loadBalancerSourceRanges: ['192.0.2.0/24', 'fd00:7::5/64'],
  }
  const service = aService(spec, { loadBalancer: { ingress: [{ ip: '192.0.2.7' }, { ip: 'fd00::7' }] } })
  const endpoint = { nodeName: 'pi-1', conditions: { ready: true } }
  const slices = [
    aSlice([{ ...endpoint, addresses: ['10.244.1.5'] }]),
    aSlice(
      [
        { ...endpoint, addresses: ['fd00:10:244:1::05'] },
        { ...endpoint, addresses: ['::ffff:10.0.0.1'] },
      ],
      undefined,
      'IPv6',
    ),
  ]
  const { ipv6, ...ipv4 } = serviceState(service, slices, true)
  t.equal(JSON.stringify(ipv4), JSON.stringify(serviceState(service, slices)), 'in another fleet it has no field more')
  t.match(ipv4, { clusterIPs: ['10.96.0.9'], externalIPs: ['192.0.2.1'], loadBalancerIPs: ['192.0.2.7'] })
  const address = { ip: 'fd00:10:244:1::5', node: 'pi-1', ready: true, serving: true, terminating: false }
  t.same(ipv6, {
    clusterIPs: ['fd00:10:96::9'],
    externalIPs: ['2001:db8::1'],
    loadBalancerIPs: ['fd00::7'],
    sourceRanges: ['fd00:7::/64'],
    endpoints: [{ ports: [{ port: 8080, protocol: 'TCP' }], addresses: [address] }],
  })
})

test('a Service without IPv6 among its families has none, and one for IPv4-only clients admits no IPv6 clients', async (t) => {
  const six = aSlice([{ addresses: ['fd00::5'] }], undefined, 'IPv6')
  const ipv6Of = (spec: ServiceSpec) => serviceState(aService(spec), [six], true).ipv6
  t.equal(ipv6Of({ clusterIPs: ['10.96.0.9'], ipFamilies: ['IPv4'], externalIPs: ['fd00::1'] }), undefined)
  t.equal(ipv6Of({ type: 'ExternalName', externalName: 'a.example' }), undefined)
  const headless: ServiceSpec = { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4', 'IPv6'] }
  t.match(ipv6Of(headless), { clusterIPs: [], endpoints: [{ addresses: [{ ip: 'fd00::5' }] }] })
  t.equal(serviceState(aService(headless), [], true).ipv6, undefined, 'also one without endpoints of IPv6')
  const balanced: ServiceSpec = { type: 'LoadBalancer', clusterIPs: ['fd00::9'], ipFamilies: ['IPv6'] }
  t.equal(ipv6Of(balanced)?.sourceRanges, undefined)
  for (const range of ['192.0.2.0/24', '::ffff:192.0.2.0/120']) {
    t.same(ipv6Of({ ...balanced, loadBalancerSourceRanges: [range] })?.sourceRanges, ['::/128'], range)
  }
})

test('node ports, affinity, policies and the health check are those of the Service', async (t) => {
  const spec: ServiceSpec = {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.9',
    ports: [{ port: 80, nodePort: 30_080 }],
    sessionAffinity: 'ClientIP',
    internalTrafficPolicy: 'Local',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 30_999,
    publishNotReadyAddresses: true,
    loadBalancerSourceRanges: [' 192.0.2.0/24', 'fd00::/8', 'many'],
  }
  const ingress = [
    { ip: '192.0.2.7' },
    { ip: '192.0.2.8', ipMode: 'Proxy' },
    { hostname: 'lb.example' },
    { ip: 'fd00::7' },
  ]
  t.match(serviceState(aService(spec, { loadBalancer: { ingress } }), []), {
    type: 'LoadBalancer',
    ports: [{ port: 80, protocol: 'TCP', nodePort: 30_080 }],
    loadBalancerIPs: ['192.0.2.7'],
    sourceRanges: ['192.0.2.0/24'],
    affinitySeconds: 10_800,
    internalTrafficPolicy: 'Local',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 30_999,
    publishNotReadyAddresses: true,
  })
  const timed = { ...spec, type: 'NodePort', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } }
  const state = serviceState(aService(timed, { loadBalancer: { ingress } }), [])
  t.equal(state.affinitySeconds, 60)
  t.notOk('loadBalancerIPs' in state || 'sourceRanges' in state || 'healthCheckNodePort' in state)
})

test('the node of a load balancer goes with its addresses, unless they are those of nodes', async (t) => {
  const spec = { type: 'LoadBalancer', clusterIP: '10.96.0.9', ports: [{ port: 80 }] }
  const stateWith = (node: string, ip: string, type = spec.type, ofIPv6?: Partial<ServiceSpec>) => {
    const { metadata, ...service } = aService({ ...spec, type, ...ofIPv6 }, { loadBalancer: { ingress: [{ ip }] } })
    const annotations = { 'bramble.dev/load-balancer-node': node }
    const whole = { ...service, metadata: { ...metadata, annotations } }
    return serviceState(whole, [], ofIPv6 !== undefined).loadBalancerNode
  }
  t.equal(stateWith('pi-1', '192.0.2.7'), 'pi-1')
  t.equal(stateWith('*', '192.0.2.7'), undefined)
  t.equal(stateWith('pi-1', 'fd00::7'), undefined)
  t.equal(stateWith('pi-1', '192.0.2.7', 'NodePort'), undefined)
  const alone = { clusterIP: 'fd00:10:96::9', ipFamilies: ['IPv6'] }
  t.equal(stateWith('pi-1', 'fd00::7', 'LoadBalancer', alone), 'pi-1', 'of IPv6 only')
  t.equal(stateWith('pi-1', 'fd00::7', 'NodePort', alone), undefined)
})

test('an ExternalName has its name and no endpoints, a headless Service no address', async (t) => {
  const slices = [aSlice([{ addresses: ['10.244.1.5'] }])]
  t.match(serviceState(aService({ type: 'ExternalName', externalName: 'db.example' }), slices), {
    type: 'ExternalName',
    externalName: 'db.example',
    clusterIPs: [],
    endpoints: [],
  })
  t.match(serviceState(aService({ clusterIP: 'None', clusterIPs: ['None'] }), slices), {
    clusterIPs: [],
    endpoints: [{ addresses: [{ ip: '10.244.1.5' }] }],
  })
})

test('an endpoint has its pod, node, zones and conditions', async (t) => {
  const endpoint: Endpoint = {
    addresses: ['10.244.1.5', '10.244.1.6'],
    conditions: { ready: false, serving: true, terminating: true },
    hostname: 'web-0',
    targetRef: { kind: 'Pod', name: 'web-0', namespace: 'shop' },
    nodeName: 'pi-1',
    zone: 'east',
    hints: { forZones: [{ name: 'east' }, { name: 'west' }] },
  }
  t.same(serviceState(aService({}), [aSlice([endpoint])]).endpoints[0]?.addresses, [
    {
      ip: '10.244.1.5',
      hostname: 'web-0',
      pod: 'web-0',
      node: 'pi-1',
      zone: 'east',
      zones: ['east', 'west'],
      ready: false,
      serving: true,
      terminating: true,
    },
  ])
  const notReady = aSlice([{ addresses: ['10.244.1.5'], conditions: { ready: false } }])
  t.match(serviceState(aService({}), [notReady]).endpoints[0]?.addresses, [{ ready: false, serving: false }])
})

test('slices with the same ports are joined in an order that does not depend on theirs', async (t) => {
  const one = aSlice([{ addresses: ['10.244.1.6'] }, { addresses: ['10.244.1.5'], conditions: { ready: false } }])
  const other = aSlice([{ addresses: ['10.244.1.5'] }])
  const third = aSlice([{ addresses: ['10.244.1.7'] }], [{ name: 'a', port: 9 }])
  const state = serviceState(aService({}), [one, other, third])
  t.same(
    state.endpoints.map(({ ports, addresses }) => [ports[0]?.port, addresses.map(({ ip, ready }) => `${ip} ${ready}`)]),
    [
      [9, ['10.244.1.7 true']],
      [8080, ['10.244.1.5 true', '10.244.1.6 true']],
    ],
  )
  t.same(serviceState(aService({}), [third, other, one]), state)
})

test('an invalid source range, and a slice without IPv4 addresses, leave nothing behind', async (t) => {
  const spec: ServiceSpec = { type: 'LoadBalancer', loadBalancerSourceRanges: ['many', '192.0.2.0/24 ', 'fd00::/8'] }
  t.same(serviceState(aService(spec), []).sourceRanges, ['192.0.2.0/24'])
  t.notOk('sourceRanges' in serviceState(aService({ ...spec, loadBalancerSourceRanges: ['many'] }), []))
  const none = { ...aSlice([]), endpoints: undefined, ports: undefined } as unknown as EndpointSlice
  t.same(serviceState(aService({}), [none, aSlice([{ addresses: [] }])]).endpoints, [])
  const named = aSlice([{ addresses: ['192.0.2.1'] }], undefined, 'FQDN')
  t.same(serviceState(aService({}), [named]).endpoints, [])
})

test('a protocol that is empty or missing is TCP', async (t) => {
  const ports = [{ port: 1 }, { port: 2, protocol: '' }, { port: 3, protocol: 'TCP' }, { port: 4, protocol: 'UDP' }]
  const state = serviceState(aService({ ports }), [aSlice([{ addresses: ['10.244.1.5'] }], ports)])
  const wanted = [1, 2, 3, 4].map((port) => ({ port, protocol: port === 4 ? 'UDP' : 'TCP' }))
  t.same(state.ports, wanted)
  t.same(state.endpoints[0]?.ports, wanted)
})

test('an endpoint may have hints of another kind', async (t) => {
  const hinted = aSlice([{ addresses: ['10.244.1.5'], hints: { forNodes: [{ name: 'pi-1' }] } }])
  t.notOk('zones' in (serviceState(aService({}), [hinted]).endpoints[0]?.addresses[0] ?? {}))
})

test('a Service whose label names another proxy is marked', async (t) => {
  const labelled = (label: string) => {
    const service = aService({})
    return serviceState({ ...service, metadata: { ...service.metadata, labels: { [label]: '' } } }, []).proxiedElsewhere
  }
  t.equal(labelled('service.kubernetes.io/service-proxy-name'), true)
  t.equal(labelled('service.kubernetes.io/headless'), true)
  t.equal(labelled('service.kubernetes.io/other'), undefined)
})
