import { test } from 'tap'
import type { PoliciesMessage, PolicyRuleState, PolicyState } from '../../../api/network/node-policies.ts'
import { ruleChanges } from '../rule-changes.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { noRules } from '../rule-set.ts'
import { type LocalPod, noParts, policyRules } from './policy-rules.ts'

const pod = (name: string, ip: string, more: Partial<LocalPod> = {}): LocalPod => ({
  ...{ namespace: 'shop', name, ip, labels: { app: name }, ports: [], isStatic: false },
  ...more,
})
const policy = (name: string, more: Partial<PolicyState>): PolicyState => ({
  ...{ namespace: 'shop', name, podSelector: {} },
  ...more,
})
const message = (policies: readonly PolicyState[], sets: PoliciesMessage['sets'] = []): PoliciesMessage => ({
  ...{ epoch: 'e', version: 1, namespaces: ['shop'] },
  policies: [...policies],
  sets: [...sets],
})
const made = (policies: readonly PolicyState[], ...pods: readonly LocalPod[]) =>
  policyRules(message(policies), new Map(pods.map((one) => [one.name, one])), ipv4Rules)
const elements = (rules: ReturnType<typeof made>, set: string) => [...(rules.sets.get(set)?.elements ?? [])]

test('without a policy that selects a pod of this node there are no rules', (t) => {
  const other = policy('db', { podSelector: { matchLabels: { app: 'db' } }, ingress: [] })
  for (const rules of [made([other], pod('web', '10.244.1.5')), made([policy('none', {})], pod('web', '10.244.1.5'))]) {
    t.equal(rules.chains.size + rules.sets.size, 0)
    t.equal(rules.pods.get('web')?.state, 'open')
  }
  t.end()
})

test('a pod is isolated in the directions of the policies that select it, and allowed what any of them allows', (t) => {
  const rules = made(
    [
      policy('deny', { ingress: [] }),
      policy('web', { podSelector: { matchLabels: { app: 'web' } }, ingress: [{}], egress: [] }),
    ],
    pod('web', '10.244.1.5'),
    pod('db', '10.244.1.6'),
  )
  t.same(elements(rules, 'ingress-pods'), [
    ['10.244.1.5', 'goto ingress-pod/shop/web'],
    ['10.244.1.6', 'goto ingress-pod/shop/db'],
  ])
  t.same(elements(rules, 'egress-pods'), [['10.244.1.5', 'goto egress-pod/shop/web']])
  const chain = (name: string) => rules.chains.get(name)?.rules
  t.same(chain('ingress-pod/shop/web'), ['jump ingress-policy/shop/deny', 'jump ingress-policy/shop/web', 'drop'])
  t.same(chain('ingress-pod/shop/db'), ['jump ingress-policy/shop/deny', 'drop'])
  t.same(chain('egress-pod/shop/web'), ['jump egress-policy/shop/web', 'drop'])
  t.same(chain('ingress-policy/shop/deny'), [])
  t.same(chain('ingress-policy/shop/web'), ['accept'])
  t.same(
    [...rules.pods].map(([uid, { state }]) => [uid, state]),
    [
      ['web', 'isolated'],
      ['db', 'isolated'],
    ],
  )
  t.end()
})

test('what connects already, and what a pod has with itself, is let through first, before chains that forward', (t) => {
  const rules = made([policy('deny', { ingress: [], egress: [] })], pod('web', '10.244.1.5'))
  t.same(rules.chains.get('policies-egress'), {
    base: { type: 'filter', hook: 'forward', priority: -30 },
    rules: [
      'ct state established,related accept',
      'ip saddr . ip daddr @policy-self accept',
      'ip saddr vmap @egress-pods',
    ],
  })
  t.match(rules.chains.get('policies-ingress'), { base: { priority: -20 } })
  t.same(elements(rules, 'policy-self'), [['10.244.1.5 . 10.244.1.5', '']])
  t.end()
})

test('pods of a namespace whose policies are not known have no connections, unless they are static', (t) => {
  const rules = made(
    [],
    pod('new', '10.244.1.5', { namespace: 'new' }),
    pod('static', '10.244.1.6', { namespace: 'new', isStatic: true }),
    pod('web', '10.244.1.7'),
  )
  t.same(elements(rules, 'ingress-pods'), [['10.244.1.5', 'drop']])
  t.same(elements(rules, 'egress-pods'), [['10.244.1.5', 'drop']])
  t.same(
    [...rules.pods.values()].map(({ state }) => state),
    ['closed', 'open', 'open'],
  )
  t.end()
})

const ingressOf = (rule: PolicyRuleState, ...pods: readonly LocalPod[]) => {
  const rules = made([policy('p', { ingress: [rule] })], pod('web', '10.244.1.5'), ...pods)
  return rules.chains.get('ingress-policy/shop/p')?.rules
}

test('peers and ports of a rule are pairs of matches', (t) => {
  const cases: readonly [PolicyRuleState, readonly string[]][] = [
    [{}, ['accept']],
    [{ peers: { sets: [], ranges: [] } }, []],
    [{ ports: [] }, []],
    [{ peers: { sets: ['ab'], ranges: [] } }, ['ip saddr @policy-peers-ab accept']],
    [
      {
        peers: { sets: ['ab', 'cd'], ranges: ['10.0.0.0-10.0.0.9', '10.0.1.1-10.0.1.1'] },
        ports: [{ protocol: 'TCP', port: 80 }],
      },
      [
        'ip saddr @policy-peers-ab tcp dport { 80 } accept',
        'ip saddr @policy-peers-cd tcp dport { 80 } accept',
        'ip saddr { 10.0.0.0-10.0.0.9, 10.0.1.1 } tcp dport { 80 } accept',
      ],
    ],
    [{ peers: { sets: ['ab'], ranges: ['0.0.0.0-255.255.255.255'] } }, ['accept']],
    [{ ports: [{ protocol: 'UDP' }, { protocol: 'UDP', port: 53 }] }, ['meta l4proto udp accept']],
    [
      {
        ports: [
          { protocol: 'TCP', port: 8000, endPort: 8010 },
          { protocol: 'TCP', port: 8005, endPort: 8020 },
          { protocol: 'TCP', port: 8021 },
          { protocol: 'TCP', port: 80 },
          { protocol: 'SCTP', port: 9 },
        ],
      },
      ['tcp dport { 80, 8000-8021 } accept', 'sctp dport { 9 } accept'],
    ],
    [
      { ports: [{ protocol: 'TCP', name: 'http' }] },
      ['ip daddr . meta l4proto . th dport @policy-port-tcp-http accept'],
    ],
  ]
  for (const [rule, expected] of cases) t.same(ingressOf(rule), expected)
  t.end()
})

test('egress looks at destinations, and a named port at the addresses that have it', (t) => {
  const rule: PolicyRuleState = {
    ...{ peers: { sets: ['ab'], ranges: [] }, ports: [{ protocol: 'UDP', port: 53 }] },
    destinations: ['ef'],
  }
  const rules = policyRules(
    message(
      [policy('p', { egress: [rule] })],
      [
        { name: 'ab', kind: 'address', elements: ['10.244.2.1'] },
        { name: 'ef', kind: 'port', elements: ['10.244.2.1 . tcp . 8080'] },
        { name: '99', kind: 'address', elements: ['10.244.2.9'] },
      ],
    ),
    new Map([['web', pod('web', '10.244.1.5')]]),
    ipv4Rules,
  )
  t.same(rules.chains.get('egress-policy/shop/p')?.rules, [
    'ip daddr @policy-peers-ab udp dport { 53 } accept',
    'ip daddr . meta l4proto . th dport @policy-peers-ef accept',
  ])
  t.same(elements(rules, 'policy-peers-ab'), [['10.244.2.1', '']])
  t.same(elements(rules, 'policy-peers-ef'), [['10.244.2.1 . tcp . 8080', '']])
  t.notOk(rules.sets.has('policy-peers-99'), 'a set that no rule names')
  t.end()
})

test('a set that the message does not have allows no address', (t) => {
  const rules = made([policy('p', { ingress: [{ peers: { sets: ['ab'], ranges: [] } }] })], pod('web', '10.244.1.5'))
  t.same(elements(rules, 'policy-peers-ab'), [])
  t.ok(rules.sets.has('policy-peers-ab'))
  t.end()
})

test('a named port of ingress has the number that each pod gives it', (t) => {
  const rule: PolicyRuleState = { ports: [{ protocol: 'TCP', name: 'http' }] }
  const port = (number: number) => ({ ports: [{ name: 'http', protocol: 'TCP', port: number }] })
  const rules = made(
    [policy('p', { ingress: [rule] })],
    pod('one', '10.244.1.5', port(80)),
    pod('two', '10.244.1.6', port(8080)),
    pod('three', '10.244.1.7', { ports: [{ name: 'http', protocol: 'UDP', port: 80 }] }),
  )
  t.same(elements(rules, 'policy-port-tcp-http'), [
    ['10.244.1.5 . tcp . 80', ''],
    ['10.244.1.6 . tcp . 8080', ''],
  ])
  t.end()
})

test('a peer that comes or goes changes one element', (t) => {
  const rule: PolicyRuleState = { peers: { sets: ['ab'], ranges: [] } }
  const of = (...ips: readonly string[]) =>
    policyRules(
      message([policy('p', { ingress: [rule] })], [{ name: 'ab', kind: 'address', elements: [...ips] }]),
      new Map([['web', pod('web', '10.244.1.5')]]),
      ipv4Rules,
    )
  const { commands } = ruleChanges(
    [{ before: of('10.244.2.1', '10.244.2.2'), after: of('10.244.2.2', '10.244.2.3') }],
    ipv4Rules,
  )
  t.same(commands.trim().split('\n'), [
    'delete element ip bramble policy-peers-ab { 10.244.2.1 }',
    'add element ip bramble policy-peers-ab { 10.244.2.3 }',
  ])
  t.end()
})

test('a pod that starts or ends leaves the chains of policies as they are', (t) => {
  const all = message([policy('deny', { ingress: [] })])
  const parts = noParts()
  const one = new Map([['web', pod('web', '10.244.1.5')]])
  const two = new Map([...one, ['db', pod('db', '10.244.1.6')]])
  const [before, after] = [policyRules(all, one, ipv4Rules, parts), policyRules(all, two, ipv4Rules, parts)]
  t.equal(before.chains.get('ingress-policy/shop/deny'), after.chains.get('ingress-policy/shop/deny'))
  const { commands } = ruleChanges([{ before, after }], ipv4Rules)
  t.same(commands.trim().split('\n'), [
    'add chain ip bramble ingress-pod/shop/db',
    'add element ip bramble policy-self { 10.244.1.6 . 10.244.1.6 }',
    'add element ip bramble ingress-pods { 10.244.1.6 : goto ingress-pod/shop/db }',
    'add rule ip bramble ingress-pod/shop/db jump ingress-policy/shop/deny',
    'add rule ip bramble ingress-pod/shop/db drop',
  ])
  t.match(
    ruleChanges([{ before: noRules, after }], ipv4Rules).commands,
    /add chain ip bramble policies-egress \{ type filter hook/,
  )
  t.end()
})

test('two pods of one name each have the policies that select them', (t) => {
  const rules = policyRules(
    message([
      policy('deny', { ingress: [] }),
      policy('open', { podSelector: { matchLabels: { app: 'new' } }, ingress: [{}] }),
    ]),
    new Map([
      ['uid-1', pod('db', '10.244.1.5')],
      ['uid-2', pod('db', '10.244.1.6', { labels: { app: 'new' } })],
    ]),
    ipv4Rules,
  )
  const rulesOf = (ip: string) => {
    const verdict = rules.sets.get('ingress-pods')?.elements?.get(ip) ?? ''
    return rules.chains.get(verdict.replace('goto ', ''))?.rules
  }
  t.same(rulesOf('10.244.1.5'), ['jump ingress-policy/shop/deny', 'drop'])
  t.same(rulesOf('10.244.1.6'), ['jump ingress-policy/shop/deny', 'jump ingress-policy/shop/open', 'drop'])
  t.end()
})

test('many peers with many ports have a chain of ports, not a rule for each pair', (t) => {
  const count = 1_000
  const ports = Array.from({ length: count }, (_, index) => ({ protocol: 'TCP' as const, name: `p${index}` }))
  const sets = Array.from({ length: count }, (_, index) => index.toString(16))
  const rules = made([policy('p', { ingress: [{ peers: { sets, ranges: [] }, ports }] })], pod('web', '10.244.1.5'))
  const own = rules.chains.get('ingress-policy/shop/p')?.rules ?? []
  t.equal(own.length, count)
  t.equal(own[10], 'ip saddr @policy-peers-a jump ingress-policy/shop/p/ports-0')
  const ofPorts = rules.chains.get('ingress-policy/shop/p/ports-0')?.rules ?? []
  t.equal(ofPorts.length, count)
  t.equal(ofPorts[0], 'ip daddr . meta l4proto . th dport @policy-port-tcp-p0 accept')
  t.end()
})

test('IPv6 rules are for the pods that have such an address, with the addresses and IPv6 ranges', (t) => {
  const sets: PoliciesMessage['sets'] = [
    { name: 'ab', kind: 'address', elements: ['10.244.2.7'], ipv6Elements: ['fd00:10:244:2::7'] },
    { name: 'cd', kind: 'port', elements: ['10.244.2.7 . tcp . 80'], ipv6Elements: ['fd00:10:244:2::7 . tcp . 80'] },
  ]
  const web = policy('web', {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [
      { peers: { sets: ['ab'], ranges: ['10.0.0.0-10.0.0.255'], ipv6Ranges: ['fd00::-fd00::ff', 'fd01::1-fd01::1'] } },
      { ports: [{ name: 'http', protocol: 'TCP' }] },
      { peers: { sets: [], ranges: ['0.0.0.0-255.255.255.255'] } },
    ],
    egress: [{ peers: { sets: [], ranges: [] }, destinations: ['cd'] }],
  })
  const pods = new Map(
    [
      pod('web', '10.244.1.5', {
        ipv6: 'fd00:10:244:1::5',
        ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      }),
      pod('old', '10.244.1.6', { labels: { app: 'web' } }),
    ].map((one) => [one.name, one]),
  )
  const rules = policyRules(message([web], sets), pods, ipv6Rules)
  const { chains } = rules
  t.same([...rules.pods.keys()], ['web'])
  t.same(chains.get('policies-ingress')?.rules, [
    'ct state established,related accept',
    'ip6 hoplimit 255 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept',
    'ip6 saddr . ip6 daddr @policy-self accept',
    'ip6 daddr vmap @ingress-pods',
  ])
  t.same(chains.get('ingress-policy/shop/web')?.rules, [
    'ip6 saddr @policy-peers-ab accept',
    'ip6 saddr { fd00::-fd00::ff, fd01::1 } accept',
    'ip6 daddr . meta l4proto . th dport @policy-port-tcp-http accept',
  ])
  t.same(chains.get('egress-policy/shop/web')?.rules, ['ip6 daddr . meta l4proto . th dport @policy-peers-cd accept'])
  t.same(
    [...rules.sets].map(([name, { type, elements: present = [] }]) => [name, type, [...present].map(([key]) => key)]),
    [
      ['policy-self', 'ipv6_addr . ipv6_addr', ['fd00:10:244:1::5 . fd00:10:244:1::5']],
      ['ingress-pods', 'ipv6_addr : verdict', ['fd00:10:244:1::5']],
      ['egress-pods', 'ipv6_addr : verdict', ['fd00:10:244:1::5']],
      ['policy-peers-ab', 'ipv6_addr', ['fd00:10:244:2::7']],
      ['policy-peers-cd', 'ipv6_addr . inet_proto . inet_service', ['fd00:10:244:2::7 . tcp . 80']],
      ['policy-port-tcp-http', 'ipv6_addr . inet_proto . inet_service', ['fd00:10:244:1::5 . tcp . 8080']],
    ],
  )
  const everywhere = policy('all', {
    ingress: [{ peers: { sets: [], ranges: [], ipv6Ranges: ['::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'] } }],
  })
  const open = policyRules(message([everywhere]), pods, ipv6Rules)
  t.same(open.chains.get('ingress-policy/shop/all')?.rules, ['accept'])
  t.same(policyRules(message([everywhere]), pods, ipv4Rules).chains.get('ingress-policy/shop/all')?.rules, [])
  t.end()
})

test('a pod whose policies are not known has no connections by IPv6, and a second one of its name has its own chain', (t) => {
  const twice = [pod('a', '10.244.1.5', { ipv6: 'fd00::5' }), pod('b', '10.244.1.6', { ipv6: 'fd00::6', name: 'a' })]
  const pods = new Map(twice.map((one, index) => [String(index), one]))
  const closed = policyRules({ ...message([]), namespaces: [] }, pods, ipv6Rules)
  t.same([...(closed.sets.get('egress-pods')?.elements ?? [])].at(0), ['fd00::5', 'drop'])
  const { sets } = policyRules(message([policy('deny', { ingress: [] })]), pods, ipv6Rules)
  t.same(
    [...(sets.get('ingress-pods')?.elements ?? [])],
    [
      ['fd00::5', 'goto ingress-pod/shop/a'],
      ['fd00::6', 'goto ingress-pod/shop/a/10.244.1.6'],
    ],
  )
  t.end()
})
