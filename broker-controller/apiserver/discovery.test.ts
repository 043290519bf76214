import { test } from 'tap'
import { resources } from '../../api/resources.ts'
import { builtInKinds } from '../control-plane.ts'
import { discoveryAnswer } from './discovery.ts'
import { reviewKinds } from './reviews/review-kinds.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
const bodyAt = (path: string) => {
  const answer = discoveryAnswer(path, undefined, builtInKinds)
  return answer?.kind === 'object' ? answer.body : undefined
}

test('the plain lists lead from the groups to every kind', async (t) => {
  t.match(bodyAt('/api'), { kind: 'APIVersions', versions: ['v1'] })
  t.match(bodyAt('/apis'), {
    kind: 'APIGroupList',
    groups: [
      { name: 'apps' },
      { name: 'authentication.k8s.io' },
      { name: 'authorization.k8s.io' },
      { name: 'certificates.k8s.io', preferredVersion: { groupVersion: 'certificates.k8s.io/v1', version: 'v1' } },
      { name: 'coordination.k8s.io' },
    ],
  })
  t.match(bodyAt('/apis/coordination.k8s.io'), { kind: 'APIGroup', name: 'coordination.k8s.io' })
  t.match(bodyAt('/apis/coordination.k8s.io/v1'), {
    kind: 'APIResourceList',
    groupVersion: 'coordination.k8s.io/v1',
    resources: [{ name: 'leases', kind: 'Lease', namespaced: true, singularName: 'lease' }],
  })
  const core = bodyAt('/api/v1') as { resources: { name: string; kind: string; verbs: string[] }[] }
  t.match(
    core.resources.find(({ name }) => name === 'nodes'),
    { kind: 'Node', shortNames: ['no'] },
  )
  t.match(
    core.resources.find(({ name }) => name === 'pods'),
    { categories: ['all'] },
  )
  t.match(
    core.resources.find(({ name }) => name === 'pods/binding'),
    { kind: 'Binding', verbs: ['create'] },
  )
  t.match(
    core.resources.find(({ name }) => name === 'pods/status'),
    { kind: 'Pod', verbs: ['get', 'patch', 'update'] },
  )
  for (const { name, verbs } of core.resources.filter(({ name }) => !name.includes('/'))) {
    t.ok(verbs.includes('list') && verbs.includes('get') && verbs.includes('watch'), name)
  }
})

test('the aggregated lists describe the same resources in two answers', async (t) => {
  const answers = [
    discoveryAnswer('/api', aggregated, builtInKinds),
    discoveryAnswer('/apis', aggregated, builtInKinds),
  ]
  const found = answers.flatMap((answer) => {
    if (answer?.kind !== 'object') return []
    t.equal(answer.contentType, 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    const { items } = answer.body as { items: { versions: { resources: { resource: string }[] }[] }[] }
    return items.flatMap(({ versions }) =>
      versions.flatMap(({ resources }) => resources.map(({ resource }) => resource)),
    )
  })
  const reviews = Object.values(reviewKinds).map(({ name }) => name)
  t.same(
    found.sort(),
    [...Object.keys(resources), ...reviews, 'nodes', 'pods'].sort(),
    'nodes and pods have metrics, too',
  )
})

test('usage kinds are discovered with read verbs only', async (t) => {
  t.match(bodyAt('/apis/metrics.k8s.io'), { name: 'metrics.k8s.io', preferredVersion: { version: 'v1beta1' } })
  t.match(bodyAt('/apis/metrics.k8s.io/v1beta1'), {
    kind: 'APIResourceList',
    groupVersion: 'metrics.k8s.io/v1beta1',
    resources: [
      { name: 'nodes', kind: 'NodeMetrics', namespaced: false, verbs: ['get', 'list'] },
      { name: 'pods', kind: 'PodMetrics', namespaced: true },
    ],
  })
})

test('nothing is discovered elsewhere', async (t) => {
  for (const path of [
    '/',
    '/apix',
    '/apis/example.com',
    '/apis/example.com/v1',
    '/api/v2',
    '/apis/coordination.k8s.io/v1/leases/x',
  ]) {
    t.equal(discoveryAnswer(path, undefined, builtInKinds), undefined, path)
  }
})
