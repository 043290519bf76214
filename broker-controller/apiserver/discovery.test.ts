import { test } from 'tap'
import { registrationName } from '../../api/registration/api-service.ts'
import { resources } from '../../api/resources.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { type ApiServices, isOfExtension, type StoredApiService } from './aggregator/api-services.ts'
import type { ExtensionDiscovery } from './aggregator/discovery-needs.ts'
import { discoveryAnswer, discoveryPaths } from './discovery.ts'
import { reviewKinds } from './reviews/review-kinds.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
const bodyAt = (path: string) => {
  const answer = discoveryAnswer(path, undefined, { kinds: builtInKinds })
  return answer?.kind === 'object' ? answer.body : undefined
}

test('the plain lists lead from the groups to every kind', async (t) => {
  t.match(bodyAt('/api'), { kind: 'APIVersions', versions: ['v1'] })
  t.match(bodyAt('/apis'), {
    kind: 'APIGroupList',
    groups: [
      { name: 'apiregistration.k8s.io' },
      { name: 'apps' },
      { name: 'events.k8s.io' },
      { name: 'authentication.k8s.io' },
      { name: 'authorization.k8s.io' },
      { name: 'autoscaling', preferredVersion: { groupVersion: 'autoscaling/v2' } },
      { name: 'batch' },
      { name: 'certificates.k8s.io', preferredVersion: { groupVersion: 'certificates.k8s.io/v1', version: 'v1' } },
      { name: 'networking.k8s.io' },
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
  const stored = core.resources.filter(({ name }) => !name.includes('/') && name !== 'componentstatuses')
  for (const { name, verbs } of stored) {
    t.ok(verbs.includes('list') && verbs.includes('get') && verbs.includes('watch'), name)
  }
})

test('each kind has the hash of the version in which it is stored', (t) => {
  const entriesAt = (path: string) =>
    (bodyAt(path) as { resources: { name: string; storageVersionHash?: string }[] }).resources
  const hashAt = (path: string, kind: string) => entriesAt(path).find(({ name }) => name === kind)?.storageVersionHash
  // As a kube-apiserver answers.
  t.equal(hashAt('/api/v1', 'pods'), 'xPOwRZ+Yhw8=')
  t.equal(hashAt('/apis/apps/v1', 'deployments'), '8aSe+NMegvE=')
  t.equal(hashAt('/apis/apps/v1', 'deployments/status'), undefined)
  t.equal(
    hashAt('/apis/autoscaling/v1', 'horizontalpodautoscalers'),
    hashAt('/apis/autoscaling/v2', 'horizontalpodautoscalers'),
  )
  t.end()
})

test('the aggregated lists describe the same resources in two answers', async (t) => {
  const answers = [
    discoveryAnswer('/api', aggregated, { kinds: builtInKinds }),
    discoveryAnswer('/apis', aggregated, { kinds: builtInKinds }),
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
    [
      ...Object.keys(resources),
      ...reviews,
      'componentstatuses',
      'nodes',
      'pods',
      'events',
      'horizontalpodautoscalers',
    ].sort(),
    'nodes and pods have metrics, too; events are in two groups, autoscalers in two versions',
  )
})

test('a group with two versions prefers the newer one', async (t) => {
  const versions = ['v2', 'v1'].map((version) => ({ groupVersion: `autoscaling/${version}`, version }))
  t.same(bodyAt('/apis/autoscaling'), {
    name: 'autoscaling',
    versions,
    preferredVersion: versions[0],
    kind: 'APIGroup',
    apiVersion: 'v1',
  })
  for (const version of ['v1', 'v2']) {
    t.match(bodyAt(`/apis/autoscaling/${version}`), {
      groupVersion: `autoscaling/${version}`,
      resources: [
        { name: 'horizontalpodautoscalers', shortNames: ['hpa'], categories: ['all'] },
        { name: 'horizontalpodautoscalers/status', kind: 'HorizontalPodAutoscaler' },
      ],
    })
    t.ok(discoveryPaths({ kinds: builtInKinds }).includes(`/apis/autoscaling/${version}`))
  }
  const answer = discoveryAnswer('/apis', aggregated, { kinds: builtInKinds })
  const { items } = (answer?.kind === 'object' ? answer.body : {}) as {
    items: { metadata: { name: string }; versions: { version: string; resources: unknown[] }[] }[]
  }
  t.match(items.find(({ metadata }) => metadata.name === 'autoscaling')?.versions, [
    { version: 'v2', resources: [{ responseKind: { version: 'v2' } }] },
    { version: 'v1', resources: [{ responseKind: { version: 'v1' } }] },
  ])
})

const objectVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

// As `kubectl get --raw /api/v1` prints them of Kubernetes 1.32.
test('an entry of a list has the fields of its kind and no empty ones', async (t) => {
  const { resources: entries } = bodyAt('/api/v1') as { resources: { name: string }[] }
  const entry = (name: string) => entries.find((one) => one.name === name)
  const pods = { namespaced: true, kind: 'Pod' }
  t.same(entry('pods'), {
    ...pods,
    name: 'pods',
    singularName: 'pod',
    verbs: objectVerbs,
    shortNames: ['po'],
    categories: ['all'],
    storageVersionHash: 'xPOwRZ+Yhw8=',
  })
  t.same(entry('secrets'), {
    name: 'secrets',
    singularName: 'secret',
    namespaced: true,
    kind: 'Secret',
    verbs: objectVerbs,
    storageVersionHash: 'S6u1pOWzb84=',
  })
  t.same(entry('pods/status'), {
    ...pods,
    name: 'pods/status',
    singularName: '',
    verbs: ['get', 'patch', 'update'],
  })
  t.same(entry('pods/log'), { ...pods, name: 'pods/log', singularName: '', verbs: ['get'] })
  t.same(entry('pods/exec'), {
    name: 'pods/exec',
    singularName: '',
    namespaced: true,
    kind: 'PodExecOptions',
    verbs: ['create', 'get'],
  })
  t.same(entry('pods/eviction'), {
    name: 'pods/eviction',
    singularName: '',
    namespaced: true,
    group: 'policy',
    version: 'v1',
    kind: 'Eviction',
    verbs: ['create'],
  })
})

test('reviews are discovered as what can only be created', async (t) => {
  t.same(bodyAt('/apis/authentication.k8s.io/v1'), {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: 'authentication.k8s.io/v1',
    resources: ['SelfSubjectReview', 'TokenReview'].map((kind) => ({
      name: `${kind.toLowerCase()}s`,
      singularName: kind.toLowerCase(),
      namespaced: false,
      kind,
      verbs: ['create'],
    })),
  })
})

test('the core group has one version, a named group its preferred one', async (t) => {
  t.same(bodyAt('/api'), { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] })
  const version = { groupVersion: 'apps/v1', version: 'v1' }
  t.same(bodyAt('/apis/apps'), {
    kind: 'APIGroup',
    apiVersion: 'v1',
    name: 'apps',
    versions: [version],
    preferredVersion: version,
  })
})

// As Kubernetes 1.32 answers the same request of kubectl.
test('an aggregated resource names its responses and its subresources', async (t) => {
  const answer = discoveryAnswer('/api', aggregated, { kinds: builtInKinds })
  const { items } = (answer?.kind === 'object' ? answer.body : {}) as {
    items: { metadata: object; versions: { resources: { resource: string; subresources: object[] }[] }[] }[]
  }
  t.same(
    items.map(({ metadata }) => metadata),
    [{}],
    'the core group has no name',
  )
  const resource = (name: string) =>
    items[0]?.versions[0]?.resources.find(({ resource: one }) => one === name) ?? { subresources: [] }
  const core = { group: '', version: 'v1' }
  const { subresources, ...pods } = resource('pods')
  t.same(pods, {
    resource: 'pods',
    responseKind: { ...core, kind: 'Pod' },
    scope: 'Namespaced',
    singularResource: 'pod',
    verbs: objectVerbs,
    shortNames: ['po'],
    categories: ['all'],
  })
  const row = (name: string) => subresources.find((one) => 'subresource' in one && one.subresource === name)
  t.same(row('status'), {
    subresource: 'status',
    responseKind: { ...core, kind: 'Pod' },
    verbs: ['get', 'patch', 'update'],
  })
  t.same(row('exec'), {
    subresource: 'exec',
    responseKind: { ...core, kind: 'PodExecOptions' },
    verbs: ['create', 'get'],
  })
  t.same(row('eviction'), {
    subresource: 'eviction',
    responseKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    verbs: ['create'],
  })
  t.same(resource('secrets'), {
    resource: 'secrets',
    responseKind: { ...core, kind: 'Secret' },
    scope: 'Namespaced',
    singularResource: 'secret',
    verbs: objectVerbs,
    subresources: [],
  })
})

test('an aggregated group has its name and its own resources only', async (t) => {
  const answer = discoveryAnswer('/apis', aggregated, { kinds: builtInKinds })
  const { items } = (answer?.kind === 'object' ? answer.body : {}) as {
    items: { metadata: { name: string }; versions: object[] }[]
  }
  const usage = items.find(({ metadata }) => metadata.name === 'metrics.k8s.io')
  t.same(usage?.versions, [
    {
      version: 'v1beta1',
      freshness: 'Current',
      resources: ['Node', 'Pod'].map((kind) => ({
        resource: `${kind.toLowerCase()}s`,
        responseKind: { group: 'metrics.k8s.io', version: 'v1beta1', kind: `${kind}Metrics` },
        scope: kind === 'Pod' ? 'Namespaced' : 'Cluster',
        singularResource: '',
        verbs: ['get', 'list'],
      })),
    },
  ])
})

test('every path of discovery has an answer', async (t) => {
  const paths = discoveryPaths({ kinds: builtInKinds })
  t.ok(
    ['/api', '/api/v1', '/apis', '/apis/apps', '/apis/apps/v1', '/apis/metrics.k8s.io/v1beta1'].every((path) =>
      paths.includes(path),
    ),
  )
  for (const path of paths) t.ok(bodyAt(path), path)
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
    '/apis/metrics.k8s.io/v1',
    '/apis/authentication.k8s.io/v2',
    '/apis/coordination.k8s.io/v1/leases/x',
  ]) {
    t.equal(discoveryAnswer(path, undefined, { kinds: builtInKinds }), undefined, path)
  }
})

const anApiService = (version: string, group: string, groupPriorityMinimum: number, service?: object) =>
  ({
    metadata: { name: `${version}.${group}` },
    spec: { group, version, groupPriorityMinimum, versionPriority: 10, ...(service && { service }) },
  }) as StoredApiService
const registered = (...all: readonly StoredApiService[]): ApiServices => ({
  all: () => all,
  remotes: () => all.filter(isOfExtension),
  remoteAt: (one) => all.find((service) => isOfExtension(service) && service.metadata.name === registrationName(one)),
  onChange: () => () => {},
})

test('groups are in the order of the priorities that APIServices state', async (t) => {
  const apiServices = registered(
    anApiService('v1', 'batch', 19_000),
    anApiService('v1', 'wardle.example.com', 17_900, { namespace: 'a', name: 'b' }),
  )
  const answer = discoveryAnswer('/apis', undefined, { kinds: builtInKinds, apiServices })
  const { groups } = (answer?.kind === 'object' ? answer.body : {}) as { groups: { name: string }[] }
  t.same(
    groups.slice(0, 4).map(({ name }) => name),
    ['apiregistration.k8s.io', 'batch', 'wardle.example.com', 'apps'],
  )
  t.match(discoveryAnswer('/apis/wardle.example.com', undefined, { kinds: builtInKinds, apiServices }), {
    body: { kind: 'APIGroup', preferredVersion: { groupVersion: 'wardle.example.com/v1' } },
  })
})

test('what an extension server serves is merged, and is stale where that is not known', async (t) => {
  const remote = anApiService('v1', 'wardle.example.com', 2_000, { namespace: 'a', name: 'b' })
  const needs = { kinds: builtInKinds, apiServices: registered(remote) }
  const versionsIn = (extensions?: ExtensionDiscovery) => {
    const answer = discoveryAnswer('/apis', aggregated, { ...needs, ...(extensions && { extensions }) })
    const { items } = (answer?.kind === 'object' ? answer.body : {}) as {
      items: { metadata: { name: string }; versions: object[] }[]
    }
    return items.find(({ metadata }) => metadata.name === 'wardle.example.com')?.versions
  }
  t.same(versionsIn(), [{ version: 'v1', freshness: 'Stale', resources: [] }])
  const resources = [{ resource: 'flunders' }]
  t.same(
    versionsIn({
      versionOf: () => ({ freshness: 'Current', resources }),
      descriptionHash: () => undefined,
      description: () => undefined,
    }),
    [{ version: 'v1', freshness: 'Current', resources }],
  )
})

test('an APIService does not take a group away that the fleet serves', async (t) => {
  const apiServices = registered(anApiService('v1', 'apps', 100, { namespace: 'a', name: 'b' }))
  const answer = discoveryAnswer('/apis', aggregated, { kinds: builtInKinds, apiServices })
  const { items } = (answer?.kind === 'object' ? answer.body : {}) as {
    items: { metadata: { name: string }; versions: { resources: { resource: string }[] }[] }[]
  }
  const apps = items.find(({ metadata }) => metadata.name === 'apps')
  t.ok(apps?.versions[0]?.resources.some(({ resource }) => resource === 'deployments'))
})
