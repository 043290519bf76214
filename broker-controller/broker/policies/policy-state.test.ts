import { test } from 'tap'
import type { NetworkPolicySpec } from '../../../api/network/network-policy.ts'
import type { PolicyState } from '../../../api/network/node-policies.ts'
import { peerSelector } from './peer-selector.ts'
import { policyState } from './policy-state.ts'

const made = (spec: NetworkPolicySpec) =>
  policyState({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { namespace: 'shop', name: 'db' },
    spec,
  })
const both = ['Ingress', 'Egress']
const web = { matchLabels: { app: 'web' } }
const team = { matchLabels: { team: 'a' } }
const ownWeb = peerSelector('shop', web).name
const teamWeb = peerSelector(team, web).name
const teamAll = peerSelector(team, {}).name

/** Spec → what nodes are sent; by hand from the documentation of the fields (networking/v1). */
const cases: readonly [string, NetworkPolicySpec, Pick<PolicyState, 'ingress' | 'egress'>][] = [
  ['deny all ingress', { policyTypes: ['Ingress'] }, { ingress: [] }],
  ['deny all egress', { policyTypes: ['Egress'] }, { egress: [] }],
  ['rules of a direction that is not named do not count', { policyTypes: ['Egress'], ingress: [{}] }, { egress: [] }],
  [
    'an empty rule allows anything',
    { policyTypes: both, ingress: [{}], egress: [{}] },
    { ingress: [{}], egress: [{}] },
  ],
  [
    'empty lists restrict nothing',
    { policyTypes: both, ingress: [{ from: [], ports: [] }], egress: [{ to: [], ports: [] }] },
    { ingress: [{}], egress: [{}] },
  ],
  [
    'a podSelector means pods of the own namespace',
    { policyTypes: ['Ingress'], ingress: [{ from: [{ podSelector: web }] }] },
    { ingress: [{ peers: { sets: [ownWeb], ranges: [] } }] },
  ],
  [
    'a namespaceSelector means all pods of those namespaces, with a podSelector some of them',
    {
      policyTypes: ['Egress'],
      egress: [{ to: [{ namespaceSelector: team }, { namespaceSelector: team, podSelector: web }] }],
    },
    { egress: [{ peers: { sets: [teamAll, teamWeb], ranges: [] } }] },
  ],
  [
    'equal peers are one set, and blocks are ranges',
    {
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [
            { podSelector: web },
            { podSelector: { matchExpressions: [], matchLabels: { app: 'web' } } },
            { ipBlock: { cidr: '10.0.0.0/30', except: ['10.0.0.0/31'] } },
            { ipBlock: { cidr: '2001:db8::/32' } },
          ],
        },
      ],
    },
    { ingress: [{ peers: { sets: [ownWeb], ranges: ['10.0.0.2-10.0.0.3'] } }] },
  ],
  [
    'a peer that is not an IPv4 address allows no connection, and not all of them',
    { policyTypes: ['Ingress'], ingress: [{ from: [{ ipBlock: { cidr: '2001:db8::/32' } }] }] },
    { ingress: [{ peers: { sets: [], ranges: [] } }] },
  ],
  [
    'ports with numbers, ranges and names, and a protocol as a whole',
    {
      policyTypes: ['Ingress'],
      ingress: [
        {
          ports: [
            { port: 80, protocol: 'TCP' },
            { port: 8000, endPort: 8010, protocol: 'UDP' },
            { port: 'http', protocol: 'TCP' },
            { protocol: 'SCTP' },
          ],
        },
      ],
    },
    {
      ingress: [
        {
          ports: [
            { protocol: 'TCP', port: 80 },
            { protocol: 'UDP', port: 8000, endPort: 8010 },
            { protocol: 'TCP', name: 'http' },
            { protocol: 'SCTP' },
          ],
        },
      ],
    },
  ],
  [
    'a named port of egress is that of each peer, and of any pod without peers',
    {
      policyTypes: ['Egress'],
      egress: [
        {
          to: [{ podSelector: web }],
          ports: [
            { port: 'http', protocol: 'TCP' },
            { port: 53, protocol: 'UDP' },
          ],
        },
        { ports: [{ port: 'http', protocol: 'TCP' }] },
        { to: [{ ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: 'http', protocol: 'TCP' }] },
      ],
    },
    {
      egress: [
        {
          peers: { sets: [ownWeb], ranges: [] },
          ports: [{ protocol: 'UDP', port: 53 }],
          destinations: [peerSelector('shop', web, { name: 'http', protocol: 'TCP' }).name],
        },
        { ports: [], destinations: [peerSelector({}, {}, { name: 'http', protocol: 'TCP' }).name] },
        { ports: [] },
      ],
    },
  ],
]

for (const [title, spec, expected] of cases) {
  test(title, (t) => {
    const { state, isTooLarge } = made(spec)
    t.same(state, { namespace: 'shop', name: 'db', podSelector: {}, ...expected })
    t.notOk(isTooLarge)
    t.end()
  })
}

test('the selectors of a policy are those that its sets are named after', (t) => {
  const { selectors } = made({ policyTypes: ['Ingress'], ingress: [{ from: [{ podSelector: web }] }] })
  t.same([...selectors.keys()], [ownWeb])
  t.ok(selectors.get(ownWeb)?.matchesPod({ app: 'web' }))
  t.notOk(selectors.get(ownWeb)?.matchesPod({ app: 'db' }))
  t.equal(selectors.get(ownWeb)?.namespace, 'shop')
  t.end()
})

test('a policy with more than a thousand peers allows nothing', (t) => {
  const peers = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ podSelector: { matchLabels: { app: `a${index}` } } }))
  const spec = (count: number): NetworkPolicySpec => ({ policyTypes: ['Ingress'], ingress: [{ from: peers(count) }] })
  t.equal(made(spec(1_000)).state.ingress?.[0]?.peers?.sets.length, 1_000)
  const large = made(spec(1_001))
  t.ok(large.isTooLarge)
  t.same(large.state.ingress, [])
  t.equal(large.selectors.size, 0)
  t.end()
})

test('each named port of egress to anyone is a selector, and a block is not', (t) => {
  const ports = Array.from({ length: 1_001 }, (_, index) => ({ port: `p${index}` }))
  t.ok(made({ policyTypes: ['Egress'], egress: [{ ports }] }).isTooLarge)
  const blocks = Array.from({ length: 1_001 }, (_, index) => ({
    ipBlock: { cidr: `10.${index >> 7}.${index % 128}.8/32` },
  }))
  t.notOk(made({ policyTypes: ['Ingress'], ingress: [{ from: blocks }] }).isTooLarge)
  t.end()
})

test('in a fleet with both IP families a rule has the ranges of both, and in another one nothing more', async (t) => {
  const ingress = [{ from: [{ ipBlock: { cidr: '2001:db8::/32' } }, { ipBlock: { cidr: '10.0.0.0/30' } }] }]
  const policy = {
    apiVersion: 'networking.k8s.io/v1' as const,
    kind: 'NetworkPolicy' as const,
    metadata: { namespace: 'shop', name: 'db' },
    spec: { policyTypes: ['Ingress'], ingress },
  }
  const ipv6Ranges = ['2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff']
  const peers = { sets: [], ranges: ['10.0.0.0-10.0.0.3'] }
  t.same(policyState(policy, true).state.ingress, [{ peers: { ...peers, ipv6Ranges } }])
  t.same(policyState(policy).state.ingress, [{ peers }])
})
