import { test } from 'tap'
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../../api/network/network-policy.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'

const policy = (spec?: NetworkPolicy['spec'], name = 'web'): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: 'default' },
  ...(spec && { spec }),
})
const problemsOf = (spec: NetworkPolicy['spec']) => causes(() => create('networkpolicies', policy(spec)))
const ofPort = (port: NetworkPolicyPort) => problemsOf({ ingress: [{ ports: [port] }] })
const ofPeer = (...to: readonly NetworkPolicyPeer[]) => problemsOf({ egress: [{ to }] })
const path = '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies'

test('a policy is created with its defaults, counted and listed', async (t) => {
  const { ask } = await anApi(t)
  const isolated = await ask('POST', path, { body: policy(undefined, 'all') })
  t.match(isolated, { code: 201, body: { spec: { podSelector: {}, policyTypes: ['Ingress'] } } })
  const body = policy({
    podSelector: {
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'tier', operator: 'In', values: ['b', 'a'] }],
    },
    egress: [{ ports: [{ port: 53, protocol: 'UDP' }, { port: 'dns' }] }],
  })
  const made = await ask('POST', path, { body })
  const ports = [
    { port: 53, protocol: 'UDP' },
    { port: 'dns', protocol: 'TCP' },
  ]
  t.match(made, { code: 201, body: { metadata: { generation: 1 } } })
  t.match(made.body, { spec: { policyTypes: ['Ingress', 'Egress'], egress: [{ ports }] } })
  const patch = { body: { spec: { policyTypes: ['Egress'] } }, type: 'application/merge-patch+json' }
  t.match(await ask('PATCH', `${path}/web`, patch), { code: 200, body: { metadata: { generation: 2 } } })
  const { body: table } = await ask('GET', path, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.match(table, {
    columnDefinitions: ['Name', 'Pod-Selector', 'Age'].map((name) => ({ name })),
    rows: [{ cells: ['all', '<none>'] }, { cells: ['web', 'app=web,tier in (a,b)'] }],
  })
})

test('policyTypes default to Egress, too, only where there are rules of it', (t) => {
  const typesOf = (spec: NetworkPolicy['spec']) => create('networkpolicies', policy(spec))
  t.match(typesOf({ egress: [] }), { spec: { policyTypes: ['Ingress'] } })
  t.match(typesOf({ egress: [{}] }), { spec: { policyTypes: ['Ingress', 'Egress'] } })
  t.match(typesOf({ egress: [{}], policyTypes: ['Egress'] }), { spec: { policyTypes: ['Egress'] } })
  t.end()
})

test('what the ports of a policy must not be', (t) => {
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
  t.end()
})

test('what the peers and types of a policy must not be', (t) => {
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
  t.end()
})
