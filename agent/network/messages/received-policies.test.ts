import { test } from 'tap'
import type { PeerSetState, PolicyState } from '../../../api/network/node-policies.ts'
import { decodePolicies } from './received-policies.ts'

const policy: PolicyState = {
  namespace: 'shop',
  name: 'db.v1',
  podSelector: { matchLabels: { app: 'db' } },
  ingress: [
    {
      peers: { sets: ['ab12'], ranges: ['10.0.0.0-10.0.0.255'] },
      ports: [{ protocol: 'TCP', port: 80, endPort: 90 }, { protocol: 'SCTP' }, { protocol: 'UDP', name: 'dns' }],
    },
  ],
  egress: [{ destinations: ['cd34'], ports: [] }, {}],
}
const addresses: PeerSetState = { name: 'ab12', kind: 'address', elements: ['10.244.1.5'] }
const sockets: PeerSetState = { name: 'cd34', kind: 'port', elements: ['10.244.1.5 . tcp . 8080'] }

const decoded = (given: { readonly policies?: readonly unknown[]; readonly sets?: readonly unknown[] }) => {
  const { policies = [], sets = [] } = given
  const found = decodePolicies({ epoch: 'e', version: 1, namespaces: ['shop', 'web'], sets, policies })
  if (!found.ok) throw new Error('not decoded')
  return found.value
}

test('a message is taken as it is', (t) => {
  const { message, problems } = decoded({ policies: [policy], sets: [addresses, sockets] })
  t.same(problems, [])
  t.same(message, {
    ...{ epoch: 'e', version: 1, namespaces: ['shop', 'web'] },
    sets: [addresses, sockets],
    policies: [policy],
  })
  t.end()
})

test('elements and IPv6 ranges are taken in the form that rules have', (t) => {
  const dual = { ...addresses, ipv6Elements: ['fd00:10:244:1::5'] }
  const dualSockets = { ...sockets, elements: [], ipv6Elements: ['fd00:10:244:1::5 . udp . 53'] }
  const ranges = { sets: [], ranges: [], ipv6Ranges: ['fd00::-fd00::ff', '::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'] }
  const dualPolicy = { ...policy, egress: [{ peers: ranges }] }
  const { message, problems } = decoded({ policies: [dualPolicy], sets: [dual, dualSockets] })
  t.same(problems, [])
  t.same(message.sets, [dual, dualSockets])
  t.same(message.policies, [dualPolicy])
  for (const element of ['10.244.1.5', 'FD00::1', 'fd00:0::1', '::ffff:10.0.0.1', 'fd00::1 }; flush ruleset', 7]) {
    t.same(decoded({ sets: [{ ...addresses, ipv6Elements: [element] }] }).message.sets, [], String(element))
  }
  for (const element of ['fd00::1', 'fd00::1 . tcp . 0', '10.244.1.5 . tcp . 80', 'fd00:::1 . tcp . 80']) {
    t.same(decoded({ sets: [{ ...sockets, ipv6Elements: [element] }] }).message.sets, [], element)
  }
  t.same(decoded({ sets: [{ ...addresses, ipv6Elements: 'fd00::1' }] }).message.sets, [])
  for (const range of ['fd00::/64', '10.0.0.0-10.0.0.1', 'fd00::-', 'fd00::1-fd00::2-fd00::3', 'FD00::-fd00::1']) {
    const bad = { ...policy, egress: [{ peers: { ...ranges, ipv6Ranges: [range] } }] }
    t.same(decoded({ policies: [bad] }).message.namespaces, ['web'], range)
  }
  t.end()
})

test('a policy with an invalid value closes its namespace, and no other', (t) => {
  const other: PolicyState = { namespace: 'web', name: 'deny', podSelector: {}, ingress: [] }
  const rule = (over: object) => ({ ...policy, ingress: [over] })
  const bad = [
    { ...policy, name: 'a/b; flush ruleset' },
    { ...policy, podSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } },
    { ...policy, ingress: 'all' },
    rule({ peers: { sets: ['ab }; flush'], ranges: [] } }),
    rule({ peers: { sets: [], ranges: ['10.0.0.0/8'] } }),
    rule({ peers: { sets: [], ranges: ['10.0.0.0-10.0.0.1-10.0.0.2'] } }),
    rule({ destinations: ['X'] }),
    rule({ ports: [{ protocol: 'ICMP' }] }),
    rule({ ports: [{ protocol: 'TCP', port: 0 }] }),
    rule({ ports: [{ protocol: 'TCP', port: 90, endPort: 80 }] }),
    rule({ ports: [{ protocol: 'TCP', name: 'a b' }] }),
  ]
  for (const one of bad) {
    const { message, problems } = decoded({ policies: [one, policy, other] })
    t.same(message.namespaces, ['web'], JSON.stringify(one))
    t.same(message.policies, [other])
    t.equal(problems.length, 1)
  }
  t.same(decoded({ policies: [7, other] }).message.namespaces, [], 'of an unknown namespace')
  t.end()
})

test('a set with an invalid element is left out', (t) => {
  const bad = [
    { ...addresses, name: 'x y' },
    { ...addresses, elements: ['10.244.1'] },
    { ...addresses, elements: ['10.244.1.5 }; flush ruleset'] },
    { ...sockets, elements: ['10.244.1.5 . tcp . 70000'] },
    { ...sockets, elements: ['10.244.1.5 . icmp . 7'] },
    { ...sockets, elements: ['10.244.1.5'] },
    { ...sockets, kind: 'later' },
    'set',
  ]
  for (const one of bad) {
    const { message, problems } = decoded({ sets: [one, addresses] })
    t.same(message.sets, [addresses], JSON.stringify(one))
    t.equal(problems.length, 1)
  }
  t.end()
})

test('what is not a policies message is refused', (t) => {
  for (const input of [undefined, null, 1, [], {}, { epoch: 'e', version: 1, namespaces: [], policies: [] }]) {
    t.match(decodePolicies(input), { ok: false })
  }
  t.end()
})
