import { test } from 'tap'
import { aLease, aNode, aPod } from '../../api/testing/builders.ts'
import { nodeRestriction } from './node-restriction.ts'

test('a node creates itself and no other', async (t) => {
  t.equal(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-01' }), undefined), undefined)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ name: 'pi-02' }), undefined), /not allowed to modify node "pi-02"/)
})

test('a node may come with taints, but not change them afterwards', async (t) => {
  const before = aNode({ taints: [{ key: 'fenced', effect: 'NoExecute' }] })
  t.equal(nodeRestriction('pi-01', 'nodes', before, undefined), undefined)
  t.match(nodeRestriction('pi-01', 'nodes', aNode({ taints: [] }), before), /taints/)
  const owned = aNode({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'b' }] } })
  t.match(nodeRestriction('pi-01', 'nodes', owned, aNode()), /ownerReferences/)
})

test('labels that say where a node stands are not its own to write', async (t) => {
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
})

test('a node keeps its own lease only', async (t) => {
  t.equal(nodeRestriction('pi-01', 'leases', aLease({ name: 'pi-01' }), undefined), undefined)
  t.match(nodeRestriction('pi-02', 'leases', aLease({ name: 'pi-01' }), undefined), /its own lease/)
})
