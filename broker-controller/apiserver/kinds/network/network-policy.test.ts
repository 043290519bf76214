import { test } from 'tap'
import type { NetworkPolicy } from '../../../../api/network/network-policy.ts'
import { create } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'

const policy = (spec?: NetworkPolicy['spec'], name = 'web'): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: 'default' },
  ...(spec && { spec }),
})
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
