import { test } from 'tap'
import type { LocalPod, PodHostPort } from '../policies/policy-rules.ts'
import { hostPortRules } from './host-port-rules.ts'

const pod = (ipv6: string | undefined, ...hostPorts: PodHostPort[]): LocalPod => ({
  ...{ namespace: 'shop', name: 'web', ip: '10.244.1.5', labels: {}, ports: [], isStatic: false },
  ...(ipv6 !== undefined && { ipv6 }),
  hostPorts,
})
const port = (hostIP: string, given: Partial<PodHostPort> = {}): PodHostPort => ({
  ...{ protocol: 'tcp', port: 8080, containerPort: 80, hostIP },
  ...given,
})
const byUid = (pods: readonly LocalPod[]) => new Map(pods.map((one, index) => [`${index}`, one]))
const rulesOf = (...pods: LocalPod[]) => hostPortRules(byUid(pods), 'IPv6')
/** The chain that a map leads to, by key. */
const targets = ({ chains, sets }: ReturnType<typeof rulesOf>, map: 'host-ports' | 'host-port-ips') =>
  [...(sets.get(map)?.elements ?? [])].map(([key, verdict]) => [
    key,
    chains.get(verdict.replace('goto ', ''))?.rules[0],
  ])

test('a host port without hostIP, or of all of IPv6, leads to the pod from every IPv6 address', async (t) => {
  for (const hostIP of ['', '::', '0:0::0']) {
    const rules = rulesOf(pod('fd00:10:244:1::5', port(hostIP), port(hostIP, { protocol: 'udp', port: 53 })))
    t.same(targets(rules, 'host-ports'), [
      ['tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::5]:80'],
      ['udp . 53', 'meta l4proto udp dnat to [fd00:10:244:1::5]:80'],
    ])
    t.same(targets(rules, 'host-port-ips'), [])
  }
})

test('with an IPv6 hostIP it does so only from that address', async (t) => {
  const rules = rulesOf(pod('fd00:10:244:1::5', port('FD00:7:0::1')), pod('fd00:10:244:1::6', port('fd00:7::2')))
  t.same(targets(rules, 'host-ports'), [])
  t.same(targets(rules, 'host-port-ips'), [
    ['fd00:7::1 . tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::5]:80'],
    ['fd00:7::2 . tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::6]:80'],
  ])
  t.same(
    [...(rules.sets.get('host-port-pods')?.elements?.keys() ?? [])],
    ['fd00:10:244:1::5 . fd00:10:244:1::5', 'fd00:10:244:1::6 . fd00:10:244:1::6'],
  )
})

test('there are no rules at all for ports that IPv6 has no part in', async (t) => {
  for (const hostIP of ['0.0.0.0', '192.0.2.1', '::1', 'fe80::1', '::ffff:192.0.2.1']) {
    t.equal(rulesOf(pod('fd00:10:244:1::5', port(hostIP))).chains.size, 0, hostIP)
  }
  t.equal(rulesOf(pod(undefined, port(''))).chains.size, 0, 'a pod without an IPv6 address')
  t.equal(rulesOf(pod('fd00:10:244:1::5')).sets.size, 0)
})

test('of two pods with one port the later one has it', async (t) => {
  const rules = rulesOf(pod('fd00:10:244:1::5', port('')), pod('fd00:10:244:1::6', port('')))
  t.same(targets(rules, 'host-ports'), [['tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::6]:80']])
})

test('of IPv4 rules lead to the port of the name server alone, which Docker cannot open beside it', async (t) => {
  const dns = [port('', { port: 53 }), port('0.0.0.0', { protocol: 'udp', port: 53, containerPort: 5353 })]
  const others = [port(''), port('192.0.2.1', { port: 53 }), port('::', { port: 53 })]
  const rules = hostPortRules(byUid([pod(undefined, ...dns, ...others)]), 'IPv4')
  t.same(targets(rules, 'host-ports'), [
    ['tcp . 53', 'meta l4proto tcp dnat to 10.244.1.5:80'],
    ['udp . 53', 'meta l4proto udp dnat to 10.244.1.5:5353'],
  ])
  t.same(targets(rules, 'host-port-ips'), [])
  const open =
    'fib daddr type local ip daddr != { 127.0.0.0/8, 169.254.20.10 } meta l4proto . th dport vmap @host-ports'
  for (const hook of ['prerouting', 'output']) t.ok(rules.chains.get(`host-ports-${hook}`)?.rules.includes(open), hook)
  t.equal(hostPortRules(byUid([pod(undefined, ...others)]), 'IPv4').chains.size, 0)
})
