import { test } from 'tap'
import type { PolicyPortState } from '../../../api/network/node-policies.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { portMatches } from './port-matches.ts'

test('ports of a rule are one match for each protocol, and ranges that overlap are joined', async (t) => {
  const tcp = (port: number, endPort?: number): PolicyPortState => ({
    protocol: 'TCP',
    port,
    ...(endPort !== undefined && { endPort }),
  })
  const cases: readonly [string, readonly PolicyPortState[], readonly string[]][] = [
    ['none', [], []],
    ['one', [tcp(80)], ['tcp dport { 80 } ']],
    ['several', [tcp(443), tcp(80)], ['tcp dport { 80, 443 } ']],
    ['twice the same', [tcp(80), tcp(80)], ['tcp dport { 80 } ']],
    ['a range', [tcp(80, 90)], ['tcp dport { 80-90 } ']],
    ['one within a range', [tcp(85), tcp(80, 90)], ['tcp dport { 80-90 } ']],
    ['a range within a range', [tcp(80, 90), tcp(82, 84)], ['tcp dport { 80-90 } ']],
    ['ranges that overlap', [tcp(80, 90), tcp(85, 95)], ['tcp dport { 80-95 } ']],
    ['ranges beside each other', [tcp(80, 90), tcp(91, 95)], ['tcp dport { 80-95 } ']],
    ['ranges with a gap', [tcp(80, 90), tcp(92, 95)], ['tcp dport { 80-90, 92-95 } ']],
    ['all of a protocol', [{ protocol: 'UDP' }], ['meta l4proto udp ']],
    ['all, and one of them', [tcp(80), { protocol: 'TCP' }], ['meta l4proto tcp ']],
    [
      'of several protocols',
      [{ protocol: 'SCTP', port: 7 }, { protocol: 'UDP', port: 53 }, tcp(53)],
      ['tcp dport { 53 } ', 'udp dport { 53 } ', 'sctp dport { 7 } '],
    ],
    [
      'by name',
      [{ protocol: 'TCP', name: 'web' }, { protocol: 'TCP', name: 'web' }, tcp(80)],
      ['tcp dport { 80 } ', 'ip daddr . meta l4proto . th dport @policy-port-tcp-web '],
    ],
  ]
  for (const [what, ports, matches] of cases) t.same(portMatches(ports, ipv4Rules), matches, what)
  t.same(portMatches([{ protocol: 'UDP', name: 'dns' }], ipv6Rules), [
    'ip6 daddr . meta l4proto . th dport @policy-port-udp-dns ',
  ])
})
