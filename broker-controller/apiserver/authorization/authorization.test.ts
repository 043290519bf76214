import { test } from 'tap'
import { administrator, anonymous, type Identity, lapsedNodesGroup, nodeIdentity } from '../../../api/identity.ts'
import { controlPlaneGroup } from '../../../api/node/bootstrap-token.ts'
import { builtInResources } from '../../../api/resources.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { Attributes } from '../handlers/authorizer.ts'
import { dependsOnPods, forbiddenMessage, isAllowedToSystem, needsForPod } from './authorization.ts'

type Asked = Partial<Attributes & { kind: 'resource' }>

const about = (more: Asked): Attributes => ({
  kind: 'resource',
  verb: 'get',
  group: builtInResources.get(more.resource ?? 'nodes')?.group ?? '',
  resource: 'nodes',
  subresource: '',
  namespace: '',
  name: '',
  fields: new Map(),
  ...more,
})
const path = (path: string, verb = 'get'): Attributes => ({ kind: 'path', verb, path })
const may = (identity: Identity, attributes: Attributes) => isAllowedToSystem(identity, attributes, [boundPod])

const node = nodeIdentity('pi-01')
const bootstrapper: Identity = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
const stranger: Identity = { user: 'eve', groups: ['system:authenticated'] }
const boundPod = aPod({
  name: 'web',
  nodeName: 'pi-01',
  spec: {
    serviceAccountName: 'reader',
    imagePullSecrets: [{ name: 'registry' }],
    volumes: [
      { name: 'a', secret: { secretName: 'tls' } },
      { name: 'b', projected: { sources: [{ configMap: { name: 'site' } }] } },
      { name: 'c', csi: { driver: 'disk.example.com', nodePublishSecretRef: { name: 'disk' } } },
    ],
    containers: [
      {
        name: 'main',
        envFrom: [{ configMapRef: { name: 'settings' } }],
        env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'api-key', key: 'key' } } }],
      },
    ],
  },
})

test('the rules of nodes and joining machines are for the built-in groups', async (t) => {
  const elsewhere = (more: Asked) => about({ ...more, group: 'example.com' })
  t.notOk(may(node, elsewhere({ verb: 'update', name: 'pi-01' })), 'nodes')
  t.notOk(may(node, elsewhere({ verb: 'create', resource: 'pods', namespace: 'default' })), 'pods')
  t.notOk(may(bootstrapper, elsewhere({ verb: 'create', resource: 'certificatesigningrequests' })), 'requests')
  const info = { resource: 'configmaps', namespace: 'kube-public', name: 'cluster-info' }
  t.notOk(may(anonymous, elsewhere(info)), 'cluster-info')
  t.ok(may(administrator, elsewhere({ verb: 'delete' })), 'administrators')
})

test('the holder of a token for a controller requests no certificate of a node', async (t) => {
  const request = (verb: string) => about({ verb, resource: 'certificatesigningrequests', name: 'x' })
  const holder: Identity = { ...bootstrapper, groups: [...bootstrapper.groups, controlPlaneGroup] }
  for (const verb of ['create', 'get']) {
    t.ok(may(bootstrapper, request(verb)), verb)
    t.notOk(may(holder, request(verb)), verb)
  }
  t.ok(may(holder, about({ resource: 'configmaps', namespace: 'kube-public', name: 'cluster-info' })))
})

test('administrators may do everything', async (t) => {
  t.ok(may(administrator, about({ verb: 'delete', resource: 'secrets', namespace: 'kube-system', name: 'x' })))
  t.ok(may(administrator, path('/metrics')))
})

test('anonymous users may read liveness, the version and cluster-info', async (t) => {
  for (const open of ['/healthz', '/livez', '/readyz', '/version']) t.ok(may(anonymous, path(open)), open)
  const clusterInfo = { resource: 'configmaps', namespace: 'kube-public', name: 'cluster-info' }
  t.ok(may(anonymous, about(clusterInfo)))
  t.notOk(may(anonymous, about({ ...clusterInfo, verb: 'update' })))
  t.notOk(may(anonymous, about({ ...clusterInfo, name: '', verb: 'list' })))
  t.notOk(may(anonymous, path('/metrics')))
  t.notOk(may(anonymous, path('/api')))
  t.notOk(may(anonymous, path('/healthz', 'post')))
})

test('a token may ask for a certificate and look for its answer, and nothing else', async (t) => {
  const csr = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }
  t.ok(may(bootstrapper, about({ ...csr, verb: 'create' })))
  t.ok(may(bootstrapper, about({ ...csr, name: 'node-csr-1' })))
  t.notOk(may(bootstrapper, about({ ...csr, verb: 'update', subresource: 'approval', name: 'node-csr-1' })))
  t.notOk(may(bootstrapper, about({ ...csr, verb: 'list' })))
  t.notOk(may(bootstrapper, about({ resource: 'nodes', verb: 'list' })))
})

test('a node writes itself, its lease and what happens to its pods', async (t) => {
  const lease = { group: 'coordination.k8s.io', resource: 'leases', namespace: 'kube-node-lease' }
  for (const [allowed, attributes] of [
    [true, { verb: 'create' }],
    [true, { name: 'pi-01' }],
    [true, { verb: 'patch', name: 'pi-01' }],
    [true, { verb: 'patch', name: 'pi-01', subresource: 'status' }],
    [true, { verb: 'watch', name: 'pi-01' }],
    [false, { name: 'pi-02' }],
    [false, { verb: 'list' }],
    [false, { verb: 'delete', name: 'pi-01' }],
    [false, { verb: 'patch', name: 'pi-02', subresource: 'status' }],
    [true, { ...lease, verb: 'update', name: 'pi-01' }],
    [false, { ...lease, verb: 'update', name: 'pi-02' }],
    [false, { ...lease, verb: 'update', name: 'pi-01', namespace: 'default' }],
    [true, { resource: 'events', namespace: 'default', verb: 'create' }],
    [false, { resource: 'events', namespace: 'default', verb: 'list' }],
    [true, { resource: 'events', namespace: 'default', verb: 'update', name: 'web.1' }],
    [true, { resource: 'events', namespace: 'default', verb: 'patch', name: 'web.1' }],
    [false, { resource: 'namespaces', verb: 'list' }],
    [true, { resource: 'csinodes', verb: 'create' }],
    [true, { resource: 'csinodes', verb: 'patch', name: 'pi-01' }],
    [true, { resource: 'csinodes', name: 'pi-01' }],
    [false, { resource: 'csinodes', verb: 'patch', name: 'pi-02' }],
    [false, { resource: 'csinodes', verb: 'list' }],
    [false, { resource: 'csidrivers', verb: 'create' }],
    [true, { ...lease, verb: 'create' }],
    [true, { ...lease, verb: 'get', name: 'pi-01' }],
    [true, { ...lease, verb: 'delete', name: 'pi-01' }],
    [false, { ...lease, verb: 'get', name: 'pi-02' }],
    [false, { ...lease, verb: 'watch', name: 'pi-01' }],
    [false, { ...lease, verb: 'list' }],
    [false, { verb: 'get', name: 'pi-01', subresource: 'status' }],
    [true, { verb: 'create', name: 'pi-01', subresource: 'checkpoint' }],
    [false, { verb: 'create', name: 'pi-02', subresource: 'checkpoint' }],
    [false, { verb: 'get', name: 'pi-01', subresource: 'checkpoint' }],
    [false, { verb: 'get', name: 'pi-01', subresource: 'proxy' }],
    [true, { resource: 'certificatesigningrequests', verb: 'create' }],
    [true, { resource: 'certificatesigningrequests', name: 'node-csr-1' }],
    [false, { resource: 'certificatesigningrequests', verb: 'list' }],
    [false, { resource: 'widgets', verb: 'get', name: 'a' }],
  ] satisfies [boolean, Asked][]) {
    t.equal(may(node, about(attributes)), allowed, JSON.stringify(attributes))
  }
})

test('a node requests tokens of the accounts of its pods', async (t) => {
  const token = { resource: 'serviceaccounts', subresource: 'token', verb: 'create', namespace: 'default' }
  for (const [allowed, attributes] of [
    [true, { ...token, name: 'reader' }],
    [false, { ...token, name: 'default' }],
    [false, { ...token, name: '' }],
    [false, { ...token, name: 'reader', namespace: 'kube-system' }],
    [false, { ...token, name: 'reader', verb: 'get' }],
    [false, { ...token, name: 'reader', subresource: '' }],
    [false, { ...token, name: 'reader', subresource: '', verb: 'get' }],
  ] satisfies [boolean, Asked][]) {
    t.equal(may(node, about(attributes)), allowed, JSON.stringify(attributes))
  }
  t.ok(dependsOnPods(node, about(token)))
  const [asked, annotations] = [about({ ...token, name: 'reader' }), { 'bramble.dev/learnt-from': 'pi-01' }]
  const claimed = aPod({ nodeName: 'pi-01', annotations, spec: { serviceAccountName: 'reader' } })
  t.notOk(isAllowedToSystem(node, asked, [claimed]), 'a pod that the node claims opens no account')
  const nameless = aPod({ nodeName: 'pi-01', spec: { serviceAccountName: '' } })
  t.notOk(isAllowedToSystem(node, about({ ...token, name: '' }), [nameless]))
})

test('a node reads and writes the status of claims that pods assigned to it use', async (t) => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  const pod = aPod({ name: 'db', nodeName: 'pi-01', spec: { volumes } })
  const claim = { resource: 'persistentvolumeclaims', namespace: 'default', name: 'data' }
  for (const [allowed, attributes] of [
    [true, claim],
    [true, { ...claim, subresource: 'status', verb: 'patch' }],
    [false, { ...claim, verb: 'patch' }],
    [false, { ...claim, verb: 'list', name: '' }],
    [false, { ...claim, name: 'other' }],
    [false, { ...claim, namespace: 'other' }],
    [false, { ...claim, subresource: 'status', verb: 'delete' }],
  ] satisfies [boolean, Asked][]) {
    t.equal(isAllowedToSystem(node, about(attributes), [pod]), allowed, JSON.stringify(attributes))
  }
  t.ok(dependsOnPods(node, about(claim)))
  const claimed = { ...pod, metadata: { ...pod.metadata, annotations: { 'bramble.dev/learnt-from': 'pi-01' } } }
  t.notOk(isAllowedToSystem(node, about(claim), [claimed]), 'a pod that the node claims opens no claim')
})

test('a node sees the pods that are bound to it, and what these name', async (t) => {
  const fields = new Map([['spec.nodeName', 'pi-01']])
  const here = { namespace: 'default' }
  for (const [allowed, attributes] of [
    [true, { resource: 'pods', verb: 'watch', fields }],
    [false, { resource: 'pods', verb: 'watch' }],
    [false, { resource: 'pods', verb: 'list', fields: new Map([['spec.nodeName', 'pi-02']]) }],
    [true, { ...here, resource: 'pods', name: 'web' }],
    [false, { ...here, resource: 'pods', name: 'other' }],
    [true, { ...here, resource: 'pods', name: 'web', subresource: 'status', verb: 'patch' }],
    [false, { ...here, resource: 'pods', name: 'web', verb: 'update' }],
    [true, { ...here, resource: 'pods', name: 'web', verb: 'delete' }],
    [false, { ...here, resource: 'pods', name: 'other', verb: 'delete' }],
    [true, { ...here, resource: 'pods', name: 'web', subresource: 'eviction', verb: 'create' }],
    [false, { ...here, resource: 'pods', name: 'other', subresource: 'eviction', verb: 'create' }],
    [false, { ...here, resource: 'pods', name: 'web', subresource: 'binding', verb: 'create' }],
    [true, { ...here, resource: 'pods', verb: 'create' }],
    [true, { resource: 'pods', verb: 'list', fields }],
    [true, { ...here, resource: 'pods', name: 'web', subresource: 'status' }],
    [false, { ...here, resource: 'pods', name: 'web', subresource: 'status', verb: 'delete' }],
    [false, { ...here, resource: 'pods', name: 'web', subresource: 'eviction' }],
    [false, { ...here, resource: 'pods', name: 'web', subresource: 'log' }],
    [false, { namespace: 'other', resource: 'pods', name: 'web' }],
    [true, { ...here, resource: 'secrets', name: 'tls', verb: 'list' }],
    [true, { ...here, resource: 'secrets', name: 'registry' }],
    [true, { ...here, resource: 'secrets', name: 'disk' }],
    [true, { ...here, resource: 'secrets', name: 'tls' }],
    [true, { ...here, resource: 'secrets', name: 'api-key', verb: 'watch' }],
    [true, { ...here, resource: 'configmaps', name: 'settings' }],
    [true, { ...here, resource: 'configmaps', name: 'site' }],
    [false, { ...here, resource: 'secrets', name: 'settings' }],
    [false, { ...here, resource: 'secrets', verb: 'list' }],
    [false, { namespace: 'other', resource: 'secrets', name: 'tls' }],
    [false, { ...here, resource: 'secrets', name: 'tls', verb: 'update' }],
  ] satisfies [boolean, Asked][]) {
    t.equal(may(node, about(attributes)), allowed, JSON.stringify(attributes))
  }
  t.ok(dependsOnPods(node, about({ resource: 'secrets' })))
  t.notOk(dependsOnPods(administrator, about({ resource: 'secrets' })))
  t.notOk(dependsOnPods(node, about({ resource: 'nodes' })))
})

test('what one of several pods of a node needs, the node may read', async (t) => {
  const other = aPod({ name: 'db', nodeName: 'pi-01' })
  for (const pods of [
    [boundPod, other],
    [other, boundPod],
  ]) {
    t.ok(isAllowedToSystem(node, about({ namespace: 'default', resource: 'secrets', name: 'tls' }), pods))
    t.ok(isAllowedToSystem(node, about({ namespace: 'default', resource: 'pods', name: 'web' }), pods))
  }
  t.notOk(isAllowedToSystem(node, about({ namespace: 'default', resource: 'secrets', name: 'tls' })), 'no pods')
  t.notOk(
    needsForPod(aPod({ spec: { volumes: [{ name: 'a', secret: {} }] } }), 'secrets', ''),
    'without a name there is no object',
  )
})

test('nodes and joining machines read discovery; sessions and releases are for nodes', async (t) => {
  for (const open of ['/', '/api', '/apis/apps/v1', '/openapi/v2']) {
    t.ok(may(node, path(open)), `node ${open}`)
    t.ok(may(bootstrapper, path(open)), `joining machine ${open}`)
    t.notOk(may(stranger, path(open)), `${open}: others by their roles`)
  }
  t.notOk(may(node, path('/metrics')))
  const session = path('/bramble/v1/sessions/abc')
  t.ok(may(node, session))
  t.notOk(may(bootstrapper, session))
  t.notOk(may(anonymous, session))
  const release = path(`/bramble/v1/releases/${'a'.repeat(64)}/release.json`)
  t.ok(may(node, release))
  t.notOk(may(bootstrapper, release))
  t.notOk(may(anonymous, release))
})

test('cluster-info is this one object, and nothing beside it', async (t) => {
  const clusterInfo = { resource: 'configmaps', namespace: 'kube-public', name: 'cluster-info' }
  for (const more of [
    { resource: 'secrets' },
    { namespace: 'default' },
    { name: 'other' },
    { subresource: 'status' },
  ]) {
    t.notOk(may(anonymous, about({ ...clusterInfo, ...more })), JSON.stringify(more))
  }
})

test('a machine with an expired certificate may ask for a new one as a joining one may', async (t) => {
  const lapsed: Identity = { user: 'system:node:pi-01', groups: [lapsedNodesGroup] }
  const csr = { resource: 'certificatesigningrequests' }
  t.ok(may(lapsed, about({ ...csr, verb: 'create' })))
  t.notOk(may(lapsed, about({ ...csr, verb: 'create', subresource: 'approval' })))
  t.notOk(may(lapsed, about({ name: 'pi-01' })))
  t.notOk(may(lapsed, about({ resource: 'secrets', verb: 'create' })))
})

test('the rights of an unknown user do not depend on pods', async (t) => {
  t.notOk(may(stranger, about({ name: 'pi-01' })))
  t.notOk(dependsOnPods(node, path('/api')))
})

test('the group without a node’s name, or the name without the group, opens nothing', async (t) => {
  t.notOk(may({ user: 'system:node:pi-01', groups: [] }, about({ name: 'pi-01' })))
  t.notOk(may({ user: 'eve', groups: ['system:nodes'] }, about({ name: 'eve' })))
})

test('a denial names the user, the verb and the resource', async (t) => {
  const denialOf = (attributes: Attributes) => (may(stranger, attributes) ? '' : forbiddenMessage(stranger, attributes))
  t.equal(
    denialOf(about({ verb: 'list' })),
    'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope',
  )
  t.equal(
    denialOf(
      about({ group: 'coordination.k8s.io', resource: 'leases', namespace: 'ns', name: 'x', subresource: 'status' }),
    ),
    'leases.coordination.k8s.io "x" is forbidden: User "eve" cannot get resource "leases/status" in API group ' +
      '"coordination.k8s.io" in the namespace "ns"',
  )
  t.equal(denialOf(path('/metrics')), 'forbidden: User "eve" cannot get path "/metrics"')
})
