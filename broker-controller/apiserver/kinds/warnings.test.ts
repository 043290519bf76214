import { test } from 'tap'
import { anApi, type Document, patchTypes } from '../../testing/api-in-memory.ts'

const label = { 'beta.kubernetes.io/os': 'linux' }
const containers = [{ name: 'c', image: 'i' }]
const labels = { app: 'a' }
const template = { metadata: { labels }, spec: { containers, nodeSelector: label } }
const selector = { matchLabels: labels }
const deprecated = (at: string) =>
  `${at}.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`
const named = (usedIn = 'Pod names and hostnames') =>
  `metadata.name: this is used in ${usedIn}, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]`
const jobTemplate = { metadata: { labels }, spec: { ...template.spec, restartPolicy: 'Never' } }

/** By the path of the collection: the object, and the warnings for who creates it. */
const created: { readonly [path: string]: readonly [object: Document, warnings: readonly string[]] } = {
  '/apis/apps/v1/namespaces/default/deployments': [
    { apiVersion: 'apps/v1', kind: 'Deployment', spec: { selector, template } },
    [named(), deprecated('spec.template')],
  ],
  '/apis/apps/v1/namespaces/default/replicasets': [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', spec: { selector, template } },
    [named(), deprecated('spec.template')],
  ],
  '/apis/apps/v1/namespaces/default/daemonsets': [
    { apiVersion: 'apps/v1', kind: 'DaemonSet', spec: { selector, template } },
    [deprecated('spec.template')],
  ],
  '/api/v1/namespaces/default/replicationcontrollers': [
    { apiVersion: 'v1', kind: 'ReplicationController', spec: { selector: labels, template } },
    [named(), deprecated('spec.template')],
  ],
  '/api/v1/namespaces/default/podtemplates': [
    { apiVersion: 'v1', kind: 'PodTemplate', template },
    [deprecated('template')],
  ],
  '/apis/batch/v1/namespaces/default/jobs': [
    { apiVersion: 'batch/v1', kind: 'Job', spec: { template: jobTemplate } },
    [named(), deprecated('spec.template')],
  ],
  '/apis/batch/v1/namespaces/default/cronjobs': [
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: jobTemplate } } },
    },
    [named(), deprecated('spec.jobTemplate.spec.template')],
  ],
  '/api/v1/namespaces/default/pods': [
    { apiVersion: 'v1', kind: 'Pod', spec: template.spec },
    [named("the Pod's hostname"), deprecated('.').slice(2)],
  ],
  '/apis/node.k8s.io/v1/runtimeclasses': [
    { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', handler: 'h', scheduling: { nodeSelector: label } },
    ['scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead'],
  ],
}

for (const [path, [object, warnings]] of Object.entries(created)) {
  test(`a new ${object['kind']} is created with warnings`, async (t) => {
    const { ask } = await anApi(t)
    const { code, warnings: got } = await ask('POST', path, { body: { ...object, metadata: { name: 'a.b' } } })
    t.equal(code, 201)
    t.same(got, warnings)
  })
}

test('a StatefulSet warns about its template when it is created, and when its specification changes', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/statefulsets'
  const spec = { selector, template, serviceName: 's' }
  const body = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'set' }, spec }
  const patch = async (change: object) =>
    (await ask('PATCH', `${path}/set`, { body: change, type: patchTypes.merge })).warnings
  t.same((await ask('POST', path, { body })).warnings, [deprecated('spec.template')])
  t.same(await patch({ metadata: { annotations: { a: 'b' } } }), [])
  t.same(await patch({ spec: { replicas: 2 } }), [deprecated('spec.template')])
})

test('a DaemonSet warns again where its template changes only', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/daemonsets'
  const [object] = created[path] ?? []
  await ask('POST', path, { body: { ...object, metadata: { name: 'set' } } })
  const patch = async (spec: object) =>
    (await ask('PATCH', `${path}/set`, { body: { spec }, type: patchTypes.merge })).warnings
  t.same(await patch({ minReadySeconds: 5 }), [])
  t.same(await patch({ template: { metadata: { annotations: { a: 'b' } } } }), [deprecated('spec.template')])
})

test('a Service, an Ingress, an EndpointSlice and a ServiceAccount have their own warnings', async (t) => {
  const { ask } = await anApi(t)
  const post = async (path: string, body: Document) => (await ask('POST', path, { body })).warnings
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's' },
    spec: { externalName: 'x', ports: [{ port: 1 }] },
  }
  t.same(await post('/api/v1/namespaces/default/services', service), [
    'spec.externalName is ignored when spec.type is not "ExternalName"',
  ])
  const ingress = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'i', annotations: { 'kubernetes.io/ingress.class': 'x' } },
    spec: { defaultBackend: { service: { name: 's', port: { number: 1 } } } },
  }
  t.same(await post('/apis/networking.k8s.io/v1/namespaces/default/ingresses', ingress), [
    'annotation "kubernetes.io/ingress.class" is deprecated, please use \'spec.ingressClassName\' instead',
  ])
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'e' },
    addressType: 'FQDN',
    endpoints: [],
  }
  t.same(await post('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', slice), [
    'spec.addressType: FQDN endpoints are deprecated',
  ])
  const account = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'a', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } },
  }
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  t.match(await post(accounts, account), [
    /^metadata\.annotations\[kubernetes\.io\/enforce-mountable-secrets\]: deprecated in v1\.32/,
  ])
  const change = { body: { metadata: { labels } }, type: patchTypes.merge }
  t.same((await ask('PATCH', `${accounts}/a`, change)).warnings, [], 'it was there before')
})

test('the deletion of a Job that names no policy warns that its pods stay', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/batch/v1/namespaces/default/jobs'
  const [object] = created[path] ?? []
  const stay = [
    /^child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set/,
  ]
  const remove = async (query = '') => {
    await ask('POST', path, { body: { ...object, metadata: { name: 'job' } } })
    return (await ask('DELETE', `${path}/job${query}`)).warnings
  }
  t.same(await remove('?propagationPolicy=Background'), [])
  t.match(await remove(), stay)
  t.match((await ask('DELETE', path)).warnings, stay)
})

test('volumes, claims and their classes', async (t) => {
  const { ask } = await anApi(t)
  const post = async (path: string, body: Document) => {
    const { code, warnings } = await ask('POST', path, { body })
    t.equal(code, 201)
    return warnings
  }
  const annotation = 'volume.beta.kubernetes.io/storage-class'
  const deprecatedClass = `metadata.annotations[${annotation}]: deprecated since v1.8; use "storageClassName" attribute instead`
  const term = { matchExpressions: [{ key: 'beta.kubernetes.io/arch', operator: 'Exists' }] }
  const volume = {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'v', annotations: { [annotation]: 'c' } } },
    spec: {
      ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Recycle' },
      ...{ hostPath: { path: '/data' }, nodeAffinity: { required: { nodeSelectorTerms: [term] } } },
    },
  }
  t.match(await post('/api/v1/persistentvolumes', volume), [
    deprecatedClass,
    /^spec\.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated\./,
    /^spec\.nodeAffinity\.required\.nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.key: beta\.kubernetes\.io\/arch is deprecated/,
  ])
  const { hostPath: _, nodeAffinity: __, ...rest } = volume.spec
  const gone = {
    ...rest,
    persistentVolumeReclaimPolicy: 'Retain',
    storageos: { volumeName: 'x', volumeNamespace: 'y' },
  }
  t.same(await post('/api/v1/persistentvolumes', { ...volume, metadata: { name: 'w' }, spec: gone }), [
    'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
  ])
  const claim = {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c', annotations: { [annotation]: 'c' } } },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1500m' } } },
  }
  t.same(await post('/api/v1/namespaces/default/persistentvolumeclaims', claim), [
    deprecatedClass,
    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
  ])
  const topologies = [{ matchLabelExpressions: [{ key: 'failure-domain.beta.kubernetes.io/zone', values: ['a'] }] }]
  const storageClass = {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 's' }, provisioner: 'a/b' },
    allowedTopologies: topologies,
  }
  t.same(await post('/apis/storage.k8s.io/v1/storageclasses', storageClass), [
    'allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  ])
})

test('an owner that is named twice is kept once, and the UID of the other is in a warning', async (t) => {
  const { ask } = await anApi(t)
  const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u1' }
  const body = (ownerReferences: readonly object[]) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owned', ownerReferences } },
  })
  const path = '/api/v1/namespaces/default/configmaps'
  const other = { ...owner, name: 'p' }
  const made = await ask('POST', path, { body: body([owner, other, { ...owner }]) })
  t.match(made, { code: 201, body: { metadata: { ownerReferences: [owner, other] } } })
  t.match(made.warnings, [/^\.metadata\.ownerReferences contains duplicate entries; .*observed: u1$/])
  const replaced = await ask('PUT', `${path}/owned`, { body: body([owner, owner, owner]) })
  t.match(replaced, { code: 200, body: { metadata: { ownerReferences: [owner] } } })
  t.match(replaced.warnings, [/observed: u1, u1$/])
  t.same((await ask('PUT', `${path}/owned`, { body: body([owner]) })).warnings, [])
})
