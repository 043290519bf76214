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
const rulesOf = (...pods: LocalPod[]) => hostPortRules(new Map(pods.map((one, index) => [`${index}`, one])))
/** The chain that a map leads to, by key. */
const targets = ({ chains, sets }: ReturnType<typeof rulesOf>, map: 'host-ports' | 'host-port-ips') =>
  [...(sets.get(map)?.elements ?? [])].map(([key, verdict]) => [
    key,
    chains.get(verdict.replace('goto ', ''))?.rules[0],
  ])

test('a host port without hostIP, or of all of IPv6, leads to the pod from every address of IPv6', async (t) => {
  for (const hostIP of ['', '::', '0:0::0']) {
    const rules = rulesOf(pod('fd00:10:244:1::5', port(hostIP), port(hostIP, { protocol: 'udp', port: 53 })))
    t.same(targets(rules, 'host-ports'), [
      ['tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::5]:80'],
      ['udp . 53', 'meta l4proto udp dnat to [fd00:10:244:1::5]:80'],
    ])
    t.same(targets(rules, 'host-port-ips'), [])
  }
})

test('with a hostIP of IPv6 it does so from that address alone', async (t) => {
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
  t.equal(rulesOf(pod(undefined, port(''))).chains.size, 0, 'a pod without an address of IPv6')
  t.equal(rulesOf(pod('fd00:10:244:1::5')).sets.size, 0)
})

test('of two pods with one port the later one has it', async (t) => {
  const rules = rulesOf(pod('fd00:10:244:1::5', port('')), pod('fd00:10:244:1::6', port('')))
  t.same(targets(rules, 'host-ports'), [['tcp . 8080', 'meta l4proto tcp dnat to [fd00:10:244:1::6]:80']])
})
