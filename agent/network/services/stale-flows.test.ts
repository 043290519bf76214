import { test } from 'tap'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { areSameTargets, isStaleFlow, udpTargets } from './stale-flows.ts'

const dns = (...endpoints: ReturnType<typeof endpointOn>[]) => ({
  ...aService({ name: 'dns', clusterIPs: ['10.96.0.10'], externalIPs: ['192.0.2.1'] }),
  ports: [{ name: 'dns', port: 53, protocol: 'UDP' as const, nodePort: 30053 }],
  endpoints: [{ ports: [{ name: 'dns', port: 5353, protocol: 'UDP' as const }], addresses: endpoints }],
})
const flow = (address: string, port: number, endpoint: string, endpointPort = 5353) => ({
  address,
  port,
  endpoint,
  endpointPort,
})
const here = endpointOn('pi-1', '10.244.1.2')

test('a flow to an endpoint that is gone is stale, by each address and port of the Service', async (t) => {
  const targets = udpTargets([dns(here)], ipv4Rules)
  for (const [address, port] of [
    ['10.96.0.10', 53],
    ['192.0.2.1', 53],
    ['192.168.1.11', 30053],
  ] as const) {
    t.equal(isStaleFlow(flow(address, port, '10.244.1.2'), targets), false)
    t.equal(isStaleFlow(flow(address, port, '10.244.1.3'), targets), true)
    t.equal(isStaleFlow(flow(address, port, '10.244.1.2', 53), targets), true, 'another port')
    t.equal(isStaleFlow(flow(address, port, address, port), targets), true, 'began before the Service had endpoints')
  }
  t.equal(isStaleFlow(flow('10.96.0.11', 53, '10.244.1.3'), targets), false, 'of no Service')
})

test('endpoints that end keep their flows while they serve', async (t) => {
  const ending = endpointOn('pi-1', '10.244.1.9', { ready: false, serving: true, terminating: true })
  const targets = udpTargets([dns(here, ending)], ipv4Rules)
  t.equal(isStaleFlow(flow('10.96.0.10', 53, '10.244.1.9'), targets), false)
  const ended = udpTargets([dns(here, { ...ending, serving: false })], ipv4Rules)
  t.equal(isStaleFlow(flow('10.96.0.10', 53, '10.244.1.9'), ended), true)
})

test('flows of a Service without endpoints, and those of TCP, are left', async (t) => {
  const targets = udpTargets([dns(), aService({ addresses: [here] })], ipv4Rules)
  t.equal(isStaleFlow(flow('10.96.0.10', 53, '10.244.1.3'), targets), false)
  t.equal(isStaleFlow(flow('10.96.0.7', 80, '10.244.1.3'), targets), false)
})

test('flows to the ClusterIP of a Service are not stale because another Service claims it as an external address', async (t) => {
  const greedy = { ...dns(endpointOn('pi-2', '10.244.2.9')), clusterIPs: ['10.96.0.8'], externalIPs: ['10.96.0.10'] }
  for (const services of [
    [greedy, dns(here)],
    [dns(here), greedy],
  ]) {
    t.equal(isStaleFlow(flow('10.96.0.10', 53, '10.244.1.2'), udpTargets(services, ipv4Rules)), false)
  }
})

test('targets are the same while the endpoints that serve are', async (t) => {
  const there = endpointOn('pi-2', '10.244.2.2')
  t.ok(areSameTargets(udpTargets([dns(here, there)], ipv4Rules), udpTargets([dns(there, here)], ipv4Rules)))
  t.ok(areSameTargets(udpTargets([dns(here)], ipv4Rules), udpTargets([dns({ ...here, ready: false })], ipv4Rules)))
  t.notOk(areSameTargets(udpTargets([dns(here)], ipv4Rules), udpTargets([dns(there)], ipv4Rules)))
  t.notOk(areSameTargets(udpTargets([dns(here)], ipv4Rules), udpTargets([dns(here, there)], ipv4Rules)))
  t.notOk(areSameTargets(udpTargets([dns(here)], ipv4Rules), udpTargets([], ipv4Rules)))
})

test('targets of IPv6 are its addresses and endpoints', async (t) => {
  const service = { ...dns(endpointOn('pi-1', 'fd00:10:244:1::2')), clusterIPs: ['fd00:10:96::a'] }
  const targets = udpTargets([service], ipv6Rules)
  t.same([...targets.byAddress.keys()], ['fd00:10:96::a:53'])
  t.equal(isStaleFlow(flow('fd00:10:96::a', 53, 'fd00:10:244:1::2'), targets), false)
  t.equal(isStaleFlow(flow('fd00:10:96::a', 53, 'fd00:10:244:1::3'), targets), true)
  t.equal(isStaleFlow(flow('fd00:7::1', 30053, 'fd00:10:244:1::3'), targets), true)
})
