import { test } from 'tap'
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { Event } from '../../../api/event.ts'
import type { AnyObject, OwnerReference } from '../../../api/meta.ts'
import { learntFromAnnotation } from '../../../api/node/node-checkpoint.ts'
import type { Pod, PodSpec } from '../../../api/pod.ts'
import type { BuiltInName } from '../../../api/resources.ts'
import { aLease, aNode, aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { aStoredClaim } from '../../testing/volume-objects.ts'
import type { NodeRestrictionFacts } from '../handlers/strategy.ts'
import { nodeTokenProblem } from './node-restriction.ts'

const nodeRestriction = (
  node: string,
  resource: BuiltInName,
  object: AnyObject,
  previous: AnyObject | undefined,
  facts: NodeRestrictionFacts = {},
) => builtInKinds.get(resource)?.nodeRestriction?.problem(node, object, previous, facts)

test('a node creates itself and no other', async (t) => {
  t.equal(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01' }), undefined), undefined)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-02' }), undefined), /not allowed to modify node "pi-02"/)
  const configured = aNode({ name: 'pi-01', spec: { configSource: {} } })
  t.match(nodeRestriction('pi-01', 'nodes', configured, undefined), /configSource/)
  t.match(nodeRestriction('pi-01', 'nodes', configured, aNode({ name: 'pi-01' })), /configSource/, 'nor later')
  t.equal(nodeRestriction('pi-01', 'nodes', configured, configured), undefined, 'it may stay')
  t.equal(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01' }), configured), undefined, 'and go')
})

test('a node takes no range of addresses, and writes nothing that controllers keep on it', async (t) => {
  const before = aNode({ name: 'pi-01' })
  for (const spec of [{ podCIDR: '10.244.7.0/24' }, { podCIDRs: ['10.244.7.0/24'] }]) {
    const ranged = aNode({ name: 'pi-01', spec })
    t.match(nodeRestriction('pi-01', 'nodes', ranged, undefined), /podCIDRs/)
    t.match(nodeRestriction('pi-01', 'nodes', ranged, before), /podCIDRs/)
    t.equal(nodeRestriction('pi-01', 'nodes', ranged, ranged), undefined)
  }
  for (const key of [
    'learnt-by',
    'expected-back',
    'goodbye-reason',
    'suspected-link',
    'reboot-status',
    'agent-release',
    'maintenance',
    'cordoned-by',
    'relay',
  ]) {
    const annotated = aNode({ name: 'pi-01', annotations: { [`bramble.dev/${key}`]: 'x' } })
    t.match(nodeRestriction('pi-01', 'nodes', annotated, before), new RegExp(key))
    t.match(nodeRestriction('pi-01', 'nodes', before, annotated), new RegExp(key), 'nor removes it')
  }
})

test('a node writes of a claim only what comes of the expansion of its volume', async (t) => {
  const before = aStoredClaim('data')
  const of = (status: object, more: object = {}) =>
    nodeRestriction(
      'pi-01',
      'persistentvolumeclaims',
      { ...before, ...more, status: { ...before.status, ...status } },
      before,
    )
  const conditions = [{ type: 'NodeResizeError', status: 'True' }]
  const [capacity, allocatedResourceStatuses] = [{ storage: '9Gi' }, { storage: 'NodeResizeInProgress' }]
  t.equal(of({ capacity, conditions, allocatedResourceStatuses, allocatedResources: capacity }), undefined)
  t.match(of({ phase: 'Lost' }), /not allowed to update fields other than status.quantity and status.conditions/)
  t.match(of({}, { metadata: { ...before.metadata, labels: { a: 'b' } } }), /not allowed/)
  t.match(of({}, { spec: { ...before.spec, volumeName: 'other' } }), /not allowed/)
  t.match(nodeRestriction('pi-01', 'persistentvolumeclaims', before, undefined), /not allowed/)
})

test('a node may register with taints, but not change them later', async (t) => {
  const before = aNode({ taints: [{ key: 'fenced', effect: 'NoExecute' }] })
  t.equal(nodeRestriction('pi-01', 'nodes', before, undefined), undefined)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ taints: [] }), before), /taints/)
  const owned = aNode({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] } })
  t.match(nodeRestriction('pi-01', 'nodes', owned, aNode()), /ownerReferences/)
})

test('a node may not change its own finalizers', async (t) => {
  const held = aNode({ metadata: { finalizers: ['example.com/stay'] } })
  t.match(nodeRestriction('pi-01', 'nodes', held, undefined), /finalizers/)
  t.match(nodeRestriction('pi-01', 'nodes', held, aNode()), /finalizers/)
  t.match(nodeRestriction('pi-01', 'nodes', aNode(), held), /finalizers/)
  t.equal(nodeRestriction('pi-01', 'nodes', held, held), undefined)
})

test('a node may not set the labels of its topology, nor those of pools', async (t) => {
  const labelled = (key: string) => nodeRestriction('pi-01', 'nodes', aNode({ labels: { [key]: 'x' } }), aNode())
  for (const key of [
    'site',
    'example.com/site',
    'kubernetes.io/hostname',
    'topology.kubernetes.io/zone',
    'node.kubernetes.io/anything',
    'x.kubelet.kubernetes.io/anything',
  ]) {
    t.equal(labelled(key), undefined, key)
  }
  for (const key of [
    'node-role.kubernetes.io/control-plane',
    'node-restriction.kubernetes.io/tenant',
    'x.node-restriction.kubernetes.io/tenant',
    'a.k8s.io/b',
    'pool.bramble.dev/11111111-1111-4111-8111-111111111111',
  ]) {
    t.match(labelled(key), new RegExp(`not allowed to modify labels: ${key}`))
  }
  const placed = aNode({ labels: { 'node-restriction.kubernetes.io/tenant': 'a' } })
  t.match(nodeRestriction('pi-01', 'nodes', aNode(), placed), /labels/, 'nor to remove')
  t.equal(nodeRestriction('pi-01', 'nodes', placed, placed), undefined, 'but they may stay')
})

test('a node reports on the pods bound to it without relabelling them', async (t) => {
  const pod = aPod({ nodeName: 'pi-01' })
  t.equal(nodeRestriction('pi-01', 'pods', aPod({ nodeName: 'pi-01', phase: 'Running' }), pod), undefined)
  t.match(nodeRestriction('pi-02', 'pods', pod, pod), /bound to it/)
  t.match(nodeRestriction('pi-01', 'pods', aPod({ nodeName: 'pi-01', labels: { a: 'b' } }), pod), /labels/)
  const claimed = aPod({ nodeName: 'pi-01', metadata: { annotations: { 'bramble.dev/learnt-from': 'pi-01' } } })
  t.match(nodeRestriction('pi-01', 'pods', pod, claimed), /annotations: bramble.dev\/learnt-from/)
  const held = aPod({ nodeName: 'pi-01', metadata: { finalizers: ['example.com/stay'] } })
  t.match(nodeRestriction('pi-01', 'pods', held, pod), /finalizers/)
})

const mirror = (over: PodOverrides = {}) =>
  aPod({
    nodeName: 'pi-01',
    annotations: { 'kubernetes.io/config.mirror': 'hash' },
    metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid: 'u-1', controller: true }] },
    ...over,
  })
const owned = (over: Partial<OwnerReference>, ...others: readonly OwnerReference[]) => {
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'pi-01', uid: 'u-1', controller: true, ...over }
  return mirror({ metadata: { ownerReferences: [owner, ...others] } })
}

test('a node creates mirror pods of its static pods, and no other pods', async (t) => {
  const created = (pod: Pod) => nodeRestriction('pi-01', 'pods', pod, undefined, { nodeUid: 'u-1' })
  t.equal(created(mirror()), undefined)
  t.match(created(aPod({ nodeName: 'pi-01' })), /can only create mirror pods/)
  t.match(created(mirror({ nodeName: 'pi-02' })), /spec.nodeName set to itself/)
  t.match(created(mirror({ metadata: {} })), /an owner reference set to itself/)
  t.match(created(owned({ name: 'pi-02' })), /an owner reference set to itself/)
  t.match(created(owned({ kind: 'Pod' })), /an owner reference set to itself/)
  t.match(created(owned({}, { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' })), /a single owner reference/)
  t.match(created(owned({ uid: 'of the Node before' })), /UID mismatch: expected u-1/)
  t.match(created(owned({ controller: false })), /a controller owner reference/)
  t.match(created(owned({ blockOwnerDeletion: true })), /must not set blockOwnerDeletion/)
})

test('a mirror pod may not refer to Secrets, ConfigMaps or other API objects', async (t) => {
  const created = (spec: Partial<PodSpec>) =>
    nodeRestriction('pi-01', 'pods', mirror({ spec: { nodeName: 'pi-01', ...spec } }), undefined, { nodeUid: 'u-1' })
  t.match(created({ serviceAccountName: 'robot' }), /reference a service account/)
  t.match(created({ imagePullSecrets: [{ name: 'registry' }] }), /reference secrets/)
  t.match(created({ volumes: [{ name: 'v', configMap: { name: 'settings' } }] }), /reference configmaps/)
  t.match(created({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'disk' } }] }), /persistentvolumeclaims/)
  t.match(created({ resourceClaims: [{ name: 'gpu' }] }), /resourceclaims/)
  const projected = { sources: [{ clusterTrustBundle: { path: 'ca' } }] }
  t.match(created({ volumes: [{ name: 'v', projected }] }), /clustertrustbundles/)
  t.equal(created({ volumes: [{ name: 'v', hostPath: { path: '/srv' } }] }), undefined)
})

test('a node asks for certificates in its own name only', async (t) => {
  const csr = (signerName: string): CertificateSigningRequest => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr' },
    spec: { request: '', signerName, usages: ['client auth'] },
  })
  const asked = (commonName: string | undefined, signerName = 'kubernetes.io/kube-apiserver-client-kubelet') =>
    nodeRestriction('pi-01', 'certificatesigningrequests', csr(signerName), undefined, { commonName })
  t.equal(asked('system:node:pi-01'), undefined)
  t.match(asked('system:node:pi-02'), /CN=system:node:pi-01, not "system:node:pi-02"/)
  t.match(asked(undefined), /CN=system:node:pi-01/)
  t.match(asked('system:node:pi-02', 'kubernetes.io/kubelet-serving'), /CN=system:node:pi-01/)
  t.equal(asked('anything', 'example.com/other'), undefined, 'other signers have their own rules')
})

test('a node keeps its own lease only', async (t) => {
  t.equal(nodeRestriction('pi-01', 'leases', aLease({ name: 'pi-01' }), undefined), undefined)
  t.match(nodeRestriction('pi-02', 'leases', aLease({ name: 'pi-01' }), undefined), /its own lease/)
})

test('a refusal names what was changed, in order, and nothing else', async (t) => {
  const before = aNode({ name: 'pi-01' })
  const annotations = { note: 'mine', 'bramble.dev/learnt-by': 'x', 'bramble.dev/expected-back': 'y' }
  t.equal(
    nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01', annotations }), before),
    'node "pi-01" is not allowed to modify annotations: bramble.dev/expected-back, bramble.dev/learnt-by',
  )
  t.equal(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01', annotations: { note: 'mine' } }), before), undefined)
  const pod = aPod({ nodeName: 'pi-01' })
  const noted = aPod({ nodeName: 'pi-01', annotations: { note: 'mine', 'bramble.dev/b': '1', 'bramble.dev/a': '1' } })
  t.equal(
    nodeRestriction('pi-01', 'pods', noted, pod),
    'node "pi-01" is not allowed to modify annotations: bramble.dev/a, bramble.dev/b',
  )
})

test('an object without a spec is judged like one with an empty spec', async (t) => {
  const { spec: _, ...bare } = aNode({ name: 'pi-01' })
  t.equal(nodeRestriction('pi-01', 'nodes', bare, undefined), undefined)
  t.equal(nodeRestriction('pi-01', 'nodes', bare, bare), undefined)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01', spec: { configSource: {} } }), bare), /configSource/)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ taints: [{ key: 'a', effect: 'NoExecute' }] }), bare), /taints/)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ spec: { podCIDR: '10.244.7.0/24' } }), bare), /podCIDRs/)
})

test('a node creates events, and modifies its own', async (t) => {
  const event = (source?: Event['source']): Event => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web.1', namespace: 'default' },
    involvedObject: { kind: 'Pod', name: 'web' },
    ...(source && { source }),
  })
  const own = event({ component: 'kubelet', host: 'pi-01' })
  t.equal(nodeRestriction('pi-01', 'events', event({ host: 'pi-02' }), undefined), undefined)
  t.equal(nodeRestriction('pi-01', 'events', own, own), undefined)
  t.equal(
    nodeRestriction('pi-01', 'events', own, event({ host: 'pi-02' })),
    'node "pi-01" is only allowed to modify its own events, not one of source.host "pi-02"',
  )
  for (const sourceless of [event(), event({ component: 'scheduler' })]) {
    t.match(nodeRestriction('pi-01', 'events', own, sourceless), /not one of source.host ""$/)
  }
})

test('a node creates a bounded number of mirror pods of a bounded size', async (t) => {
  const created = (pod: Pod, count: number) =>
    nodeRestriction('pi-01', 'pods', pod, undefined, { nodeUid: 'u-1', mirrors: { count, most: 3 } })
  t.equal(created(mirror(), 2), undefined)
  t.equal(created(mirror(), 3), 'node "pi-01" can not create more than 3 mirror pods')
  const padded = (length: number) => mirror({ labels: { a: 'x'.repeat(length) } })
  const room = 64 * 1024 - JSON.stringify(padded(0)).length
  t.equal(created(padded(room), 0), undefined, '64 KiB')
  t.equal(created(padded(room + 1), 0), 'node "pi-01" can not create mirror pods over 65536 bytes')
})

test('a lease of the name of a node in another namespace is not its own', async (t) => {
  const other = aLease({ name: 'pi-01', metadata: { name: 'pi-01', namespace: 'default' } })
  t.equal(
    nodeRestriction('pi-01', 'leases', other, undefined),
    'node "pi-01" is only allowed to write its own lease in kube-node-lease, not "default/pi-01"',
  )
})

test('a request that exists is judged by its approval, not by its author', async (t) => {
  const csr: CertificateSigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr' },
    spec: { request: '', signerName: 'kubernetes.io/kubelet-serving', usages: [] },
  }
  t.equal(nodeRestriction('pi-01', 'certificatesigningrequests', csr, csr, { commonName: 'other' }), undefined)
})

test('a node gets tokens of the pods that are assigned to it, for the audiences of their volumes', async (t) => {
  const projected = { sources: [{ serviceAccountToken: { path: 'token', audience: 'vault' } }] }
  const stored = aPod({ name: 'web', uid: 'u', nodeName: 'pi-01', spec: { volumes: [{ name: 'v', projected }] } })
  const metadata = { ...stored.metadata, name: 'web', namespace: 'default', uid: 'u', resourceVersion: '1' }
  const pod = { ...stored, metadata: { ...metadata, creationTimestamp: '2026-01-01T00:00:00Z' } }
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'u' }
  const problem = (spec: Parameters<typeof nodeTokenProblem>[2], of: typeof pod | undefined = pod, node = 'pi-01') =>
    nodeTokenProblem(`system:node:${node}`, node, spec, of)
  t.equal(problem({ audiences: ['vault'], boundObjectRef: bound }), undefined)
  const unbound = 'node requested token not bound to a pod'
  t.equal(
    nodeTokenProblem('system:node:pi-01', 'pi-01', { audiences: ['vault'], boundObjectRef: bound }, undefined),
    unbound,
  )
  t.equal(problem({ audiences: ['vault'] }), unbound)
  t.equal(problem({ audiences: ['vault'], boundObjectRef: { ...bound, kind: 'Secret' } }), unbound)
  t.equal(problem({ audiences: ['vault'], boundObjectRef: { ...bound, apiVersion: 'v2' } }), unbound)
  const { uid: _, ...withoutUid } = bound
  t.match(problem({ audiences: ['vault'], boundObjectRef: withoutUid }), /with a pod binding without a uid$/)
  t.match(
    problem({ audiences: ['vault'], boundObjectRef: { ...bound, uid: 'older' } }),
    /reference \(older\) does not match/,
  )
  const request = { audiences: ['vault'], boundObjectRef: bound }
  t.match(problem(request, pod, 'pi-02'), /bound to a pod scheduled on a different node$/)
  const claimed = { ...pod, metadata: { ...pod.metadata, annotations: { [learntFromAnnotation]: 'pi-01' } } }
  t.match(problem(request, claimed), /a pod of its own checkpoint$/)
  t.match(problem({ audiences: ['vault', 'other'], boundObjectRef: bound }), /may only request 0 or 1 audiences$/)
  for (const audiences of [['other'], [], undefined]) {
    t.equal(
      problem({ ...(audiences && { audiences }), boundObjectRef: bound }),
      `audience "${audiences?.[0] ?? ''}" not found in pod spec volume, system:node:pi-01 is not authorized to request tokens for this audience`,
    )
  }
})

test('a node keeps the ranges of addresses that a controller gave it', async (t) => {
  const ranged = aNode({ name: 'pi-01', spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'] } })
  t.equal(nodeRestriction('pi-01', 'nodes', ranged, ranged), undefined)
  const other = aNode({ name: 'pi-01', spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.2.0/24'] } })
  t.match(nodeRestriction('pi-01', 'nodes', other, ranged), /podCIDRs/)
})

test('a node writes the CSINode of its own name', async (t) => {
  const named = (name: string) => ({ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name } })
  t.equal(nodeRestriction('pi-01', 'csinodes', named('pi-01'), undefined), undefined)
  t.match(
    nodeRestriction('pi-01', 'csinodes', named('pi-02'), undefined),
    /same name as the requesting node, not "pi-02"/,
  )
})
