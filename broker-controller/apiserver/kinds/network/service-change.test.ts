import { test } from 'tap'
import type { Service, ServiceSpec } from '../../../../api/network/service.ts'
import { changedService, newService } from './service-change.ts'

const service = (spec?: ServiceSpec, status?: Service['status']): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  ...(spec && { spec }),
  ...(status && { status }),
})
const changed = (old: ServiceSpec, now: ServiceSpec) => changedService(service(old), service(now)).spec
const [ip, ipv6] = ['192.0.2.7', '2001:db8::7']
const both = { clusterIP: ip, clusterIPs: [ip, ipv6] }

test('a new Service has the address of an older client as a list, and no status', async (t) => {
  const specs: readonly (readonly [ServiceSpec, ServiceSpec])[] = [
    [{}, {}],
    [{ clusterIP: '' }, { clusterIP: '' }],
    [{ clusterIP: ip }, { clusterIP: ip, clusterIPs: [ip] }],
    [{ clusterIP: 'None' }, { clusterIP: 'None', clusterIPs: ['None'] }],
    [
      { clusterIP: ip, clusterIPs: [] },
      { clusterIP: ip, clusterIPs: [ip] },
    ],
    [both, both],
    [{ clusterIPs: [ip] }, { clusterIPs: [ip] }],
  ]
  for (const [given, made] of specs) t.same(newService(service(given)).spec, made, JSON.stringify(given))
  const claimed = { loadBalancer: { ingress: [{ ip }] } }
  t.same(newService(service(undefined, claimed)), service({}, { loadBalancer: {} }))
})

test('an address that its author leaves out stays, and one that changes alone stands for both fields', async (t) => {
  const type = 'ClusterIP'
  const specs: readonly (readonly [now: ServiceSpec, then: ServiceSpec])[] = [
    [{}, both],
    [{ clusterIP: ip }, both],
    [{ clusterIPs: [ip, ipv6] }, both],
    [{ clusterIP: '', clusterIPs: [] }, both],
    [
      { clusterIP: ip, clusterIPs: [ip] },
      { clusterIP: ip, clusterIPs: [ip] },
    ],
    [
      { clusterIP: '192.0.2.8', clusterIPs: both.clusterIPs },
      { clusterIP: '192.0.2.8', clusterIPs: ['192.0.2.8'] },
    ],
    [{ clusterIP: '192.0.2.8' }, { clusterIP: '192.0.2.8', clusterIPs: ['192.0.2.8'] }],
    [
      { clusterIP: '192.0.2.8', clusterIPs: ['192.0.2.9'] },
      { clusterIP: '192.0.2.8', clusterIPs: ['192.0.2.9'] },
    ],
  ]
  for (const [now, then] of specs) {
    t.same(changed({ type, ...both }, { type, ...now }), { type, ...then }, JSON.stringify(now))
  }
})

test('a Service that becomes a name loses its addresses and families, but none that its author changed', async (t) => {
  const [type, externalName] = ['ExternalName', 'db.example.com']
  const families = { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' }
  const old = { type: 'ClusterIP', ...both, ...families }
  const named = (now: ServiceSpec) => changed(old, { type, externalName, ...now })
  t.same(named({ ...both, ...families }), { type, externalName })
  t.same(named({}), { type, externalName })
  t.same(named({ clusterIP: ip }), { type, externalName }, 'as older clients send it')
  t.same(named({ ...both, clusterIP: '' }), { type, externalName, clusterIP: '' })
  t.same(named({ ...both, clusterIP: '192.0.2.8' }), {
    ...{ type, externalName, clusterIP: '192.0.2.8', clusterIPs: ['192.0.2.8'] },
  })
  t.same(named({ ipFamilies: ['IPv6'] }), { type, externalName, ipFamilies: ['IPv6'] })
  t.same(named({ ipFamilyPolicy: 'SingleStack' }), { type, externalName, ipFamilyPolicy: 'SingleStack' })
  t.same(changed({ type, externalName }, { type: 'ClusterIP', clusterIP: ip }), {
    ...{ type: 'ClusterIP', clusterIP: ip, clusterIPs: [ip] },
  })
})

test('ports of the same name keep their node port, unless another one took it', async (t) => {
  const old = {
    type: 'NodePort',
    ports: [
      { name: 'http', port: 80, nodePort: 30_080 },
      { name: 'https', port: 443, nodePort: 30_443 },
    ],
  }
  const nodePorts = (ports: ServiceSpec['ports'] = [], type = 'NodePort', before: ServiceSpec = old) =>
    changed(before, { type, ports })?.ports?.map(({ nodePort }) => nodePort)
  const [http, https] = [
    { name: 'http', port: 8080 },
    { name: 'https', port: 8443 },
  ]
  t.same(nodePorts([http, https]), [30_080, 30_443])
  t.same(nodePorts([https, { name: 'other', port: 80 }]), [30_443, undefined])
  t.same(nodePorts([{ ...http, nodePort: 0 }, https], 'LoadBalancer'), [30_080, 30_443])
  t.same(nodePorts([{ ...http, nodePort: 30_081 }]), [30_081])
  t.same(nodePorts([http, { ...https, nodePort: 30_080 }]), [undefined, 30_080])
  t.same(nodePorts([{ port: 8080 }], 'NodePort', { ...old, ports: [{ port: 80, nodePort: 30_080 }] }), [30_080])
  t.same(nodePorts([http], 'NodePort', { type: 'ClusterIP', ports: [{ name: 'http', port: 80 }] }), [undefined])
})

test('a load balancer without node ports keeps those that its author names, and loses the others', async (t) => {
  const type = 'LoadBalancer'
  const port = { name: 'http', port: 80 }
  const old = { type, allocateLoadBalancerNodePorts: true, ports: [{ ...port, nodePort: 30_080 }] }
  const ports = (now: ServiceSpec) => changed(old, { type, ...now })?.ports
  t.same(ports({ allocateLoadBalancerNodePorts: true, ports: [port] }), old.ports)
  t.same(ports({ allocateLoadBalancerNodePorts: false, ports: [port] }), [port])
  t.same(ports({ allocateLoadBalancerNodePorts: false, ports: old.ports }), old.ports)
  t.same(changed({ ...old, allocateLoadBalancerNodePorts: false }, { type: 'NodePort', ports: [port] })?.ports, [port])
})

test('a Service that needs no node ports loses those that it had, if its author adds none', async (t) => {
  const old = { type: 'NodePort', ports: [{ port: 80, protocol: 'TCP', nodePort: 30_080 }] }
  const nodePorts = (...given: number[]) =>
    changed(old, {
      type: 'ClusterIP',
      ports: given.map((nodePort, index) => ({ name: `p${index}`, port: 80 + index, nodePort })),
    })?.ports?.map(({ nodePort }) => nodePort)
  t.same(nodePorts(30_080), [undefined])
  t.same(nodePorts(30_080, 0), [undefined, undefined])
  t.same(nodePorts(30_080, 30_081), [30_080, 30_081])
})

test('fields of load balancers go with the type, but none that its author changed', async (t) => {
  const type = 'LoadBalancer'
  const fields = {
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 30_001,
    allocateLoadBalancerNodePorts: true,
    loadBalancerClass: 'example.com/lb',
  }
  const ports: ServiceSpec['ports'] = []
  const from = (now: ServiceSpec) => changed({ type, ports, ...fields }, { ports, ...now })
  t.same(from({ type: 'ClusterIP', ...fields }), { type: 'ClusterIP', ports })
  t.same(from({ type: 'NodePort', ...fields }), {
    ...{ type: 'NodePort', externalTrafficPolicy: 'Local', ports },
  })
  t.same(from({ type: 'ClusterIP', externalIPs: [ip], ...fields }), {
    ...{ type: 'ClusterIP', externalIPs: [ip], externalTrafficPolicy: 'Local', ports },
  })
  const other = {
    externalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 30_002,
    allocateLoadBalancerNodePorts: false,
    loadBalancerClass: 'example.com/other',
  }
  t.same(from({ type: 'ClusterIP', ...other }), { type: 'ClusterIP', ...other, ports })
  const cluster = { type, ...fields, externalTrafficPolicy: 'Cluster' }
  const { healthCheckNodePort: _, ...unchecked } = cluster
  t.same(from(cluster), { ...unchecked, ports }, 'no balancer asks the nodes')
})

test('the port for health checks stays while it is needed', async (t) => {
  const local = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [] }
  const port = (old: ServiceSpec, now: ServiceSpec) =>
    changed({ ...local, ...old }, { ...local, ...now })?.healthCheckNodePort
  t.equal(port({ healthCheckNodePort: 30_001 }, {}), 30_001)
  t.equal(port({ healthCheckNodePort: 30_001 }, { healthCheckNodePort: 0 }), 30_001)
  t.equal(port({ healthCheckNodePort: 30_001 }, { healthCheckNodePort: 30_002 }), 30_002)
  t.equal(port({}, {}), undefined)
  t.equal(port({ healthCheckNodePort: 30_001, externalTrafficPolicy: 'Cluster' }, {}), undefined)
})

test('only a load balancer keeps the status of one', async (t) => {
  const status = { loadBalancer: { ingress: [{ ip }] }, conditions: [] }
  const then = (type: string, given?: Service['status']) =>
    changedService(service({ type: 'LoadBalancer' }), service({ type, ports: [] }, given)).status
  t.same(then('LoadBalancer', status), status)
  t.same(then('ClusterIP', status), { loadBalancer: {}, conditions: [] })
  t.same(then('LoadBalancer'), { loadBalancer: {} })
})
