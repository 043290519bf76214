import { test } from 'tap'
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../../api/network/network-policy.ts'
import { problemText } from '../../../../api/problem.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { networkPolicyProblems } from './network-policy-problems.ts'

const policy = (spec?: NetworkPolicy['spec']): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'web', namespace: 'default' },
  ...(spec && { spec }),
})
const problemsOf = (spec?: NetworkPolicy['spec']) => networkPolicyProblems(policy(spec)).map(problemText)
const ofPort = (port: NetworkPolicyPort) => problemsOf({ ingress: [{ ports: [port] }] })
const ofPeer = (...to: readonly NetworkPolicyPeer[]) => problemsOf({ egress: [{ to }] })

test('a policy with no rules, or with empty ones, is right', async (t) => {
  t.same(problemsOf(), [])
  t.same(problemsOf({}), [])
  t.same(problemsOf({ ingress: [{}], egress: [{}], policyTypes: ['Egress', 'Ingress'] }), [])
})

test('every rule of a policy has its own place', async (t) => {
  const [right, wrong] = [{ ports: [{ port: 80 }] }, { ports: [{ port: 80 }, { port: 65_536 }] }]
  const number = 'Invalid value: 65536: must be between 1 and 65535, inclusive'
  t.same(problemsOf({ ingress: [right, wrong], egress: [wrong] }), [
    `spec.ingress[1].ports[1].port: ${number}`,
    `spec.egress[0].ports[1].port: ${number}`,
  ])
  t.same(problemsOf({ ingress: [{ from: [{ podSelector: {} }, {}] }] }), [
    'spec.ingress[0].from[1]: Required value: must specify a peer',
  ])
  t.match(problemsOf({ podSelector: { matchLabels: { '-': 'a' } } }), [/^spec.podSelector.matchLabels: Invalid value/])
})

test('an exception may be all but the block itself, and of the same family', async (t) => {
  const block = (cidr: string, ...except: readonly string[]) => ofPeer({ ipBlock: { cidr, except } })
  t.same(block('192.0.2.0/24', '192.0.2.0/25', '192.0.2.128/25', '192.0.2.7/32'), [])
  t.same(block('192.0.2.7/32'), [])
  t.same(block('2001:db8::/32', '2001:db8::/33', '2001:db8::7/128'), [])
  for (const [cidr, except] of [
    ['2001:db8::/32', '2001:db8::/32'],
    ['2001:db8::/32', '2001:db9::/64'],
    ['2001:db8::/32', '192.0.2.0/25'],
    ['::/0', '192.0.2.0/24'],
  ] as const) {
    t.match(block(cidr, except), [
      /^spec.egress\[0\].to\[0\].ipBlock.except\[0\]: .*: must be a strict subset of `cidr`$/,
    ])
  }
  t.same(block('192.0.2.0/24', '192.0.2.0/25', 'x', '192.0.3.0/25').length, 2, 'each is checked')
  t.same(ofPeer({ ipBlock: { cidr: '192.0.2.0/24' }, podSelector: {}, namespaceSelector: {} }).length, 1)
})

test('what the ports of a policy must not be', async (t) => {
  const cases: readonly [NetworkPolicyPort, readonly (string | RegExp)[]][] = [
    [{}, []],
    [{ port: 1, endPort: 65_535 }, []],
    [{ port: 80, endPort: 80, protocol: 'SCTP' }, []],
    [{ port: 'serve-80' }, []],
    [
      { protocol: 'ICMP' },
      ['spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'],
    ],
    [{ port: 0 }, ['spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive']],
    [{ port: 'no_name' }, [/^spec.ingress\[0\].ports\[0\].port: Invalid value: "no_name"/]],
    [{ endPort: 90 }, [/endPort: Invalid value: 90: may not be specified when `port` is not specified$/]],
    [{ port: 'a', endPort: 90 }, [/endPort: Invalid value: 90: may not be specified when `port` is non-numeric$/]],
    [{ port: 91, endPort: 90 }, [/endPort: Invalid value: 91: must be greater than or equal to `port`$/]],
    [{ port: 91, endPort: 70_000 }, [/endPort: Invalid value: 70000: must be between 1 and 65535, inclusive$/]],
  ]
  for (const [port, expected] of cases) {
    const found = ofPort(port)
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
})

test('what the peers and types of a policy must not be', async (t) => {
  const block = (cidr: string, ...except: readonly string[]) => ofPeer({ ipBlock: { cidr, except } })
  const at = 'spec.egress[0].to[0]'
  t.same(ofPeer({ podSelector: {} }, { namespaceSelector: {} }, { podSelector: {}, namespaceSelector: {} }), [])
  t.same(ofPeer({}), [`${at}: Required value: must specify a peer`])
  t.same(ofPeer({ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }), [
    `${at}: Forbidden: may not specify both ipBlock and another peer`,
  ])
  t.match(ofPeer({ podSelector: { matchLabels: { a: '!' } } }), [/podSelector.matchLabels/])
  t.match(ofPeer({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Gt' }] } }), [
    /namespaceSelector.matchExpressions\[0\].operator: Invalid value: "Gt": not a valid selector operator$/,
  ])
  for (const [cidr, except] of [
    ['10.0.0.5/8', '10.1.0.0/16'],
    ['010.0.0.0/08', '10.1.0.9/32'],
    ['2001:db8::/32', '2001:db8:1::/48'],
    ['0.0.0.0/0', '128.0.0.0/1'],
    ['::/0', '::1/128'],
  ] as const) {
    t.same(block(cidr, except), [], `${cidr} except ${except}`)
  }
  t.same(block(''), [`${at}.ipBlock.cidr: Required value`])
  for (const cidr of ['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'fd00::%1/64', '256.0.0.0/8']) {
    t.match(block(cidr), [`${at}.ipBlock.cidr: Invalid value: ${JSON.stringify(cidr)}: must be a valid CIDR value`])
  }
  for (const except of ['11.0.0.0/16', '10.0.0.0/8', '10.0.0.0/7', 'fd00::/64']) {
    t.same(block('10.0.0.0/8', except), [
      `${at}.ipBlock.except[0]: Invalid value: ${JSON.stringify(except)}: must be a strict subset of \`cidr\``,
    ])
  }
  t.match(block('10.0.0.0/8', 'x'), [/except\[0\]: Invalid value: "x": must be a valid CIDR value/])
  t.same(problemsOf({ policyTypes: ['Both'] }), [
    'spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"',
  ])
  t.match(problemsOf({ policyTypes: ['Ingress', 'Egress', 'Ingress'] }), [/may not specify more than two policyTypes$/])
  const before = create('networkpolicies', policy())
  t.match(
    causes(() => update('networkpolicies', before, policy({ policyTypes: ['Both'] }))),
    [/^spec.policyTypes\[0\]/],
  )
})
