import { test } from 'tap'
import type { LocalPod, PodHostPort } from '../policies/policy-rules.ts'
import { areSameHostTargets, hostPortTargets, isStaleHostFlow } from './host-port-flows.ts'

type Family = 'IPv4' | 'IPv6'
const [ip, ipv6] = ['10.244.1.5', '2001:db8:244::5']
const pod = (...hostPorts: readonly Partial<PodHostPort>[]): LocalPod => ({
  ...{ namespace: 'shop', name: 'log', ip, ipv6, labels: {}, ports: [], isStatic: false },
  hostPorts: hostPorts.map((one) => ({ protocol: 'udp', port: 514, containerPort: 5514, hostIP: '', ...one })),
})
const targets = (family: Family, ...pods: readonly LocalPod[]) =>
  hostPortTargets(new Map(pods.map((one, index) => [`u${index}`, one])), family)
const places = (family: Family, ...pods: readonly LocalPod[]) =>
  [...targets(family, ...pods)].map(([where, { uid, endpoint }]) => `${where} = ${uid} ${endpoint}`)

test('a UDP host port is led to its pod, at all addresses of the node or at one', async (t) => {
  t.same(places('IPv4', pod({})), [' 514 = u0 10.244.1.5 5514'])
  t.same(places('IPv6', pod({})), [' 514 = u0 2001:db8:244::5 5514'])
  t.same(places('IPv4', pod({ hostIP: '0.0.0.0' })), [' 514 = u0 10.244.1.5 5514'])
  t.same(places('IPv6', pod({ hostIP: '::' })), [' 514 = u0 2001:db8:244::5 5514'])
  t.same(places('IPv4', pod({ hostIP: '192.0.2.1' })), ['192.0.2.1 514 = u0 10.244.1.5 5514'])
  t.same(places('IPv6', pod({ hostIP: '2001:DB8:0::1' })), ['2001:db8::1 514 = u0 2001:db8:244::5 5514'])
  t.same(places('IPv4', pod({ protocol: 'tcp' }, { protocol: 'sctp' })), [])
  t.same(places('IPv4', pod({}), pod({ port: 515 })), [' 514 = u0 10.244.1.5 5514', ' 515 = u1 10.244.1.5 5514'])
})

test('a port at an address of one family is not led by the other, nor to a pod without an address', async (t) => {
  t.same(places('IPv4', pod({ hostIP: '::' }, { hostIP: '2001:db8::1' })), [])
  t.same(places('IPv6', pod({ hostIP: '192.0.2.1' })), [])
  const { ipv6: _, ...single } = pod({})
  t.same(places('IPv6', single), [])
  const { hostPorts: __, ...without } = pod({})
  t.same(places('IPv4', without), [])
})

test('a flow is stale when it is led elsewhere than the port is now', async (t) => {
  const [before, now, none] = [
    targets('IPv4', pod({})),
    targets('IPv4', { ...pod({}), ip: '10.244.1.6' }),
    targets('IPv4'),
  ]
  const flow = (endpoint: string, more: object = {}) => ({
    ...{ address: '192.0.2.1', port: 514, endpoint, endpointPort: 5514, ...more },
  })
  t.ok(isStaleHostFlow(flow(ip), before, now), 'to the pod before')
  t.notOk(isStaleHostFlow(flow('10.244.1.6'), before, now))
  t.ok(isStaleHostFlow(flow('10.244.1.6', { endpointPort: 5515 }), before, now), 'to another port of it')
  t.ok(isStaleHostFlow(flow('192.0.2.1', { endpointPort: 514 }), none, now), 'to the node, which had no pod')
  t.ok(isStaleHostFlow(flow(ip), before, none), 'its pod is gone')
  t.notOk(isStaleHostFlow(flow('192.0.2.1', { endpointPort: 514 }), before, none), 'it was not translated')
  t.notOk(isStaleHostFlow(flow(ip, { port: 515 }), before, now), 'another port')
  for (const address of ['127.0.0.1', '127.9.9.9', '::1'])
    t.notOk(isStaleHostFlow(flow(ip, { address }), before, now), address)
})

test('a port at one address of the node comes before one at all of them', async (t) => {
  const now = targets('IPv4', pod({}), { ...pod({ hostIP: '192.0.2.1' }), ip: '10.244.1.6' })
  const isStale = (address: string, endpoint: string) =>
    isStaleHostFlow({ address, port: 514, endpoint, endpointPort: 5514 }, now, now)
  t.same([isStale('192.0.2.1', '10.244.1.6'), isStale('192.0.2.2', ip)], [false, false])
  t.same([isStale('192.0.2.1', ip), isStale('192.0.2.2', '10.244.1.6')], [true, true])
})

test('targets are the same while each port has the same pod', async (t) => {
  const one = targets('IPv4', pod({}))
  t.ok(areSameHostTargets(one, targets('IPv4', pod({}))))
  t.ok(areSameHostTargets(targets('IPv4'), targets('IPv4')))
  t.notOk(areSameHostTargets(one, targets('IPv4')))
  t.notOk(areSameHostTargets(targets('IPv4'), one))
  t.notOk(areSameHostTargets(one, targets('IPv4', pod({ containerPort: 5515 }))))
  t.notOk(areSameHostTargets(one, targets('IPv4', pod({ port: 515 }))))
  t.notOk(areSameHostTargets(one, hostPortTargets(new Map([['other', pod({})]]), 'IPv4')), 'another pod in its place')
})
