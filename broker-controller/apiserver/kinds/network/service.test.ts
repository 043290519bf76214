import { test } from 'tap'
import type { Service, ServiceSpec } from '../../../../api/network/service.ts'
import { causes, create } from '../../../testing/admitting.ts'
import { type Ask, anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const path = '/api/v1/namespaces/default/services'
const web = (spec: Partial<ServiceSpec> = {}, name = 'web'): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default' },
  spec: { selector: { app: 'web' }, ports: [{ port: 80 }], ...spec },
})
const post = (ask: Ask, spec: Partial<ServiceSpec>, name: string) => ask('POST', path, { body: web(spec, name) })
const merge = (ask: Ask, name: string, spec: unknown) =>
  ask('PATCH', `${path}/${name}`, { type: patchTypes.merge, body: { spec } })

test('a new Service gets its defaults and an address', async (t) => {
  const { ask } = await anApi(t)
  const { code, body } = await ask('POST', path, { body: web() })
  t.equal(code, 201)
  t.match(body, {
    spec: {
      type: 'ClusterIP',
      clusterIP: /^10\.\d+\.\d+\.\d+$/,
      clusterIPs: [/^10\./],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    },
    status: { loadBalancer: {} },
  })
  t.match(await post(ask, { sessionAffinity: 'ClientIP' }, 'sticky'), {
    body: { spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } } },
  })
})

test('an address belongs to one Service, also after a restart, and is free when the Service is deleted', async (t) => {
  const { ask, store } = await anApi(t)
  const clusterIP = '10.96.7.7'
  t.match(await post(ask, { clusterIP }, 'one'), { code: 201, body: { spec: { clusterIPs: [clusterIP] } } })
  const refused = {
    code: 422,
    body: {
      message: `Service "two" is invalid: spec.clusterIPs: Invalid value: ["${clusterIP}"]: failed to allocate IP ${clusterIP}: provided IP is already allocated`,
    },
  }
  t.match(await post(ask, { clusterIP }, 'two'), refused)
  t.match(await post(ask, { clusterIP: '192.168.1.1' }, 'two'), {
    code: 422,
    body: {
      message:
        /failed to allocate IP 192.168.1.1: the provided IP \(192.168.1.1\) is not in the valid range. The range of valid IPs is 10.96.0.0\/12/,
    },
  })
  t.match(await post(ask, { clusterIP: '10.96.0.1' }, 'two'), { code: 422, body: { message: /already allocated/ } })
  t.equal((await store.list('services')).items.length, 1, 'the stored objects are the only record of allocations')
  await ask('DELETE', `${path}/one`)
  t.match(await post(ask, { clusterIP }, 'two'), { code: 201 })
})

test('Services created at once get different addresses and node ports', async (t) => {
  const { ask } = await anApi(t)
  const made = await Promise.all(
    Array.from({ length: 40 }, (_, index) => post(ask, { type: 'NodePort' }, `web-${index}`)),
  )
  const specs = made.map(({ body }) => (body['spec'] ?? {}) as ServiceSpec)
  t.equal(new Set(specs.map(({ clusterIP }) => clusterIP)).size, 40)
  t.equal(new Set(specs.map(({ ports }) => ports?.[0]?.nodePort)).size, 40)
  const asked = await Promise.all(
    Array.from({ length: 8 }, (_, index) => post(ask, { clusterIP: '10.97.0.9' }, `same-${index}`)),
  )
  t.equal(asked.filter(({ code }) => code === 201).length, 1)
})

test('node ports are of one range, and of one Service', async (t) => {
  const { ask } = await anApi(t)
  const nodePort = (port: number) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: port }] })
  t.match(await post(ask, nodePort(30_080), 'one'), { code: 201, body: { spec: { ports: [{ nodePort: 30_080 }] } } })
  t.match(await post(ask, nodePort(30_080), 'two'), {
    code: 422,
    body: { message: /spec.ports\[0\].nodePort: Invalid value: 30080: provided port is already allocated/ },
  })
  t.match(await post(ask, nodePort(80), 'two'), {
    body: { message: /provided port is not in the valid range. The range of valid ports is 30000-32767/ },
  })
  const dns = [
    { name: 'tcp', port: 53, protocol: 'TCP' },
    { name: 'udp', port: 53, protocol: 'UDP' },
  ]
  const { body } = await post(ask, { type: 'NodePort', ports: dns }, 'dns')
  const ports = ((body['spec'] ?? {}) as ServiceSpec).ports ?? []
  t.ok(ports[0]?.nodePort)
  t.equal(ports[0]?.nodePort, ports[1]?.nodePort, 'one number for both protocols of a port')
})

test('a Service changes its type: allocated values come and go', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await post(ask, {}, 'web')
  const { clusterIP } = (body['spec'] ?? {}) as ServiceSpec
  t.match(await merge(ask, 'web', { type: 'NodePort' }), {
    code: 200,
    body: { spec: { clusterIP, externalTrafficPolicy: 'Cluster', ports: [{ nodePort: Number }] } },
  })
  const plain = await merge(ask, 'web', { type: 'ClusterIP' })
  t.match(plain, { code: 200, body: { spec: { clusterIP } } })
  t.notMatch(plain.body, { spec: { ports: [{ nodePort: Number }] } })
  t.notMatch(plain.body, { spec: { externalTrafficPolicy: 'Cluster' } })
  const named = await merge(ask, 'web', { type: 'ExternalName', externalName: 'example.com' })
  t.equal(named.code, 200)
  t.notMatch(named.body, { spec: { clusterIP: String } })
  t.match(await merge(ask, 'web', { type: 'ClusterIP', externalName: null }), {
    code: 200,
    body: { spec: { clusterIP: /^10\./, ipFamilies: ['IPv4'] } },
  })
})

test('an update without the address keeps it; another address is refused', async (t) => {
  const { ask } = await anApi(t)
  const { body } = await post(ask, {}, 'web')
  const { clusterIP } = (body['spec'] ?? {}) as ServiceSpec
  const kept = await ask('PUT', `${path}/web`, { body: web({ ports: [{ port: 8080 }] }) })
  t.match(kept, { code: 200, body: { spec: { clusterIP, ports: [{ port: 8080 }] } } })
  t.match(await merge(ask, 'web', { clusterIP: '10.96.9.9' }), {
    code: 422,
    body: { message: /spec.clusterIPs\[0\]: Invalid value: \["10.96.9.9"\]: may not change once set/ },
  })
})

test('a dry run shows an address and takes none', async (t) => {
  const { ask, store } = await anApi(t)
  t.match(await ask('POST', `${path}?dryRun=All`, { body: web() }), {
    code: 201,
    body: { spec: { clusterIP: /^10\./ } },
  })
  t.same((await store.list('services')).items, [])
})

test('a Service without an address may be of both IP families; one with an address is IPv4 only', async (t) => {
  const { ask } = await anApi(t)
  t.match(await post(ask, { clusterIP: 'None' }, 'headless'), {
    code: 201,
    body: { spec: { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] } },
  })
  t.match(await post(ask, { clusterIP: 'None', selector: {} }, 'bare'), {
    code: 201,
    body: { spec: { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' } },
  })
  t.match(await post(ask, { ipFamilyPolicy: 'RequireDualStack' }, 'dual'), {
    code: 422,
    body: {
      message: /spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack/,
    },
  })
  t.match(await post(ask, { ipFamilies: ['IPv6'] }, 'six'), {
    body: { message: /spec.ipFamilies\[0\]: Invalid value: "IPv6": not configured on this cluster/ },
  })
})

test('a Service that asks for IPv6 is refused in the words of Kubernetes, and one that prefers it has IPv4', async (t) => {
  const { ask } = await anApi(t)
  const refusal = async (spec: Partial<ServiceSpec>, message: string) =>
    t.match(await post(ask, spec, 'six'), { code: 422, body: { message: `Service "six" is invalid: ${message}` } })
  const two = { ipFamilies: ['IPv4', 'IPv6'] }
  await refusal(
    two,
    "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
  )
  await refusal(
    { ...two, ipFamilyPolicy: 'PreferDualStack' },
    'spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster',
  )
  await refusal(
    { clusterIPs: ['10.96.0.77', 'fd00::77'], clusterIP: '10.96.0.77', ipFamilyPolicy: 'PreferDualStack' },
    'spec.clusterIPs[1]: Invalid value: ["10.96.0.77","fd00::77"]: IPv6 is not configured on this cluster',
  )
  await refusal(
    { clusterIP: 'None', ipFamilies: ['IPv6'] },
    'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
  )
  await refusal(
    { clusterIP: 'fd00::77' },
    'spec.clusterIPs[0]: Invalid value: ["fd00::77"]: IPv6 is not configured on this cluster',
  )
  t.match(await post(ask, { ipFamilyPolicy: 'PreferDualStack' }, 'prefers'), {
    code: 201,
    body: { spec: { clusterIPs: [/^10\./], ipFamilies: ['IPv4'], ipFamilyPolicy: 'PreferDualStack' } },
  })
  t.match(await merge(ask, 'prefers', { ipFamilyPolicy: 'RequireDualStack' }), {
    code: 422,
    body: { message: /RequireDualStack": this cluster is not configured for dual-stack services/ },
  })
})

test('a headless Service of two IP families keeps the first when it becomes SingleStack, and loses none otherwise', async (t) => {
  const { ask } = await anApi(t)
  await post(ask, { clusterIP: 'None', selector: {} }, 'bare')
  t.match(await merge(ask, 'bare', { ipFamilies: ['IPv4'] }), {
    code: 422,
    body: {
      message:
        'Service "bare" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary IP family',
    },
  })
  t.match(await merge(ask, 'bare', { ipFamilyPolicy: 'SingleStack' }), {
    code: 200,
    body: { spec: { clusterIPs: ['None'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' } },
  })
  t.match(await merge(ask, 'bare', { ipFamilyPolicy: 'PreferDualStack' }), {
    body: { spec: { ipFamilies: ['IPv4', 'IPv6'] } },
  })
})

test('the fields of a Service are checked in the words of Kubernetes', async (t) => {
  const wrong = (spec: Partial<ServiceSpec>) => causes(() => create('services', web(spec)))
  t.same(wrong({ ports: [] }), ['spec.ports: Required value'])
  t.same(wrong({ clusterIP: 'None', ports: [] }), [])
  t.match(wrong({ type: 'Other' }), [
    'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
  ])
  t.same(wrong({ ports: [{ port: 0, targetPort: 80 }] }), [
    'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
  ])
  t.same(wrong({ ports: [{ port: 80 }, { port: 81 }] }), [
    'spec.ports[0].name: Required value',
    'spec.ports[1].name: Required value',
  ])
  t.same(wrong({ ports: [{ port: 80, protocol: 'ICMP' }] }), [
    'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
  ])
  const sctp = [{ name: 'sip', port: 5060, protocol: 'SCTP' }]
  t.match(wrong({ ports: sctp }), [/^spec\.ports\[0\]\.protocol: Forbidden: nodes forward TCP and UDP only/])
  t.same(wrong({ ports: sctp, clusterIP: 'None' }), [], 'no node forwards to a headless Service')
  t.same(wrong({ ports: [{ port: 80, nodePort: 30_000 }] }), [
    "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
  ])
  t.same(wrong({ type: 'NodePort', clusterIP: 'None' }), [
    'spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services',
  ])
  t.same(wrong({ type: 'ExternalName' }), ['spec.externalName: Required value'])
  t.same(wrong({ clusterIP: 'here' }), [
    'spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
  ])
  t.same(wrong({ sessionAffinity: 'Always' }), [
    'spec.sessionAffinity: Unsupported value: "Always": supported values: "ClientIP", "None"',
  ])
  t.same(wrong({ externalTrafficPolicy: 'Local' }), [
    'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
  ])
  t.same(wrong({ internalTrafficPolicy: 'Any' }), [
    'spec.internalTrafficPolicy: Unsupported value: "Any": supported values: "Cluster", "Local"',
  ])
  t.same(wrong({ loadBalancerClass: 'a' }), [
    "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
  ])
  t.same(wrong({ externalIPs: ['127.0.0.1', '0.0.0.0', '::1', '192.168.1.5'] }), [
    'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    'spec.externalIPs[1]: Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)',
    'spec.externalIPs[2]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
  ])
  const ofClients = (...loadBalancerSourceRanges: readonly string[]) =>
    wrong({ type: 'LoadBalancer', loadBalancerSourceRanges })
  t.same(ofClients('10.0.0.7/8', '010.0.0.0/8', ' fd00::7/8'), [], 'as kube-apiserver reads them')
  t.same(ofClients('10.0.0.0/33'), [
    'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
  ])
  const named = causes(() => create('services', web({}, '1web')))
  t.match(named, [/^metadata.name: Invalid value: "1web": a DNS-1035 label must consist of/])
})

test('the status of a load balancer is written by its subresource', async (t) => {
  const { ask } = await anApi(t)
  await post(ask, { type: 'LoadBalancer' }, 'web')
  await post(ask, {}, 'plain')
  const status = { loadBalancer: { ingress: [{ ip: '203.0.113.1' }] } }
  const patch = (name: string) => ask('PATCH', `${path}/${name}/status`, { type: patchTypes.merge, body: { status } })
  t.match(await patch('web'), {
    code: 200,
    body: { status: { loadBalancer: { ingress: [{ ip: '203.0.113.1', ipMode: 'VIP' }] } } },
  })
  t.match(await patch('plain'), {
    code: 422,
    body: { message: /status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'/ },
  })
})

test('both protocols of a port get one node port, in whichever order they are, also beside one that is given', async (t) => {
  const { ask } = await anApi(t)
  const ports = [
    { name: 'a', port: 53, protocol: 'TCP' },
    { name: 'b', port: 80, protocol: 'TCP' },
    { name: 'c', port: 53, protocol: 'UDP' },
    { name: 'd', port: 443, protocol: 'UDP' },
    { name: 'e', port: 443, protocol: 'TCP', nodePort: 30_443 },
  ]
  const { body } = await post(ask, { type: 'NodePort', ports }, 'dns')
  const [a, b, c, d, e] = (body as Service).spec?.ports?.map(({ nodePort }) => nodePort) ?? []
  t.equal(a, c)
  t.not(a, b)
  t.same([d, e], [30_443, 30_443])
})

test('a Service has its share of the node ports, not the range of the whole fleet', async (t) => {
  const { ask } = await anApi(t)
  const ports = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }))
  const message =
    'Service "all" is invalid: spec.ports: Too many: 2700: must have at most 250 ports that need a node port'
  t.match(await post(ask, { type: 'NodePort', ports: ports(2_700) }, 'all'), { code: 422, body: { message } })
  t.match(await post(ask, { ports: ports(2_700) }, 'inside'), { code: 201 }, 'none is needed')
  t.match(await merge(ask, 'inside', { type: 'NodePort' }), { code: 422 })
  t.match(await post(ask, { type: 'NodePort', ports: ports(250) }, 'most'), { code: 201 })
  t.match(await merge(ask, 'most', { ports: ports(251) }), { code: 422 })
})
