import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { aClusterWithVolumes, onNodes, storedClass, using, type VolumeObjects } from '../../testing/pods-with-claims.ts'
import { refusalsOf } from '../../testing/scheduling.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { decide } from '../decision.ts'
import type { KnownClaim } from './volume-cache.ts'

const { bindCompleted, selectedNode, boundByController } = volumeAnnotations
const conflict = ['node(s) had volume node affinity conflict']
const unbindable = ["node(s) didn't find available persistent volumes to bind"]

const boundTo = (volumeName: string) => ({
  metadata: { annotations: { [bindCompleted]: 'yes' } },
  spec: { volumeName },
})
const delayed = (name: string, storageClassName: string, storage = '1Gi'): KnownClaim =>
  aStoredClaim(name, { spec: { storageClassName, resources: { requests: { storage } } } })
const free = (name: string, storage: string, ...nodes: readonly string[]) =>
  aStoredVolume(name, {
    spec: { storageClassName: 'fixed', capacity: { storage }, ...(nodes.length > 0 && onNodes(...nodes)) },
  })

/** The reasons by node, for a pod that uses `data`. */
const refused = (objects: VolumeObjects, over: PodOverrides = {}) =>
  refusalsOf(aPod({ spec: using('data'), ...over }), aClusterWithVolumes(objects))

const decided = (objects: VolumeObjects, over: PodOverrides = {}) => {
  const pod = aPod({ spec: using('data'), ...over })
  const known = aClusterWithVolumes(objects)
  const facts = {
    *budgets() {
      yield
      return []
    },
    random: () => 0,
  }
  return { known, decision: finished(decide({ key: 'default/a-pod', pod }, known, facts)) }
}

test('a pod runs only where all of its bound volumes are', async (t) => {
  const claims = [aStoredClaim('data', boundTo('disk')), aStoredClaim('logs', boundTo('share'))]
  const disk = aStoredVolume('disk', { spec: onNodes('b') })
  const share = aStoredVolume('share')
  t.same(refused({ claims, volumes: [disk, share] }), { a: conflict })
  t.same(refused({ claims, volumes: [disk, share] }, { spec: using('logs') }), {})
  const apart = aStoredVolume('share', { spec: onNodes('a') })
  t.same(refused({ claims, volumes: [disk, apart] }, { spec: using('data', 'logs') }), { a: conflict, b: conflict })
})

test('a claim that is held for its move takes no pod, and one that is only copied does', async (t) => {
  const claims = [aStoredClaim('data', boundTo('disk'))]
  const inPhase = (phase: string) => {
    const place = { pool: 'p', folder: 'f' }
    const move = JSON.stringify({ id: '0123abcd', phase, round: 1, from: place, to: { ...place, node: 'b' } })
    const disk = aStoredVolume('disk', {
      metadata: { annotations: { 'bramble.dev/move': move } },
      spec: { ...onNodes('a'), claimRef: claimRefTo('data') },
    })
    return refused({ claims, volumes: [disk] })
  }
  const held = ['persistentvolumeclaim "data" is being moved to node "b"']
  for (const phase of ['hold', 'delta', 'place']) t.same(inPhase(phase), { a: held, b: held }, phase)
  for (const phase of ['copy', 'clean', 'rollback']) t.same(inPhase(phase), { b: conflict }, phase)
})

test('a pod whose claims can be on no node is refused as a whole, in the words of Kubernetes', async (t) => {
  const message = (objects: VolumeObjects, over: PodOverrides = {}) => {
    const { decision } = decided(objects, over)
    return decision.decided === 'wait' ? decision.message : decision.decided
  }
  const whole = (reason: string) =>
    `0/2 nodes are available: ${reason}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.`
  const immediate = 'pod has unbound immediate PersistentVolumeClaims'
  t.equal(message({}), whole('persistentvolumeclaim "data" not found'))
  const leaving = aStoredClaim('data', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.equal(message({ claims: [leaving] }), whole('persistentvolumeclaim "data" is being deleted'))
  const lost = aStoredClaim('data', { ...boundTo('gone'), status: { phase: 'Lost' } })
  t.equal(
    message({ claims: [lost] }),
    whole('persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"'),
  )
  t.equal(message({ claims: [aStoredClaim('data')] }), whole(immediate), 'no class')
  t.equal(message({ claims: [delayed('data', 'now')] }), whole(immediate))
  t.equal(message({ claims: [delayed('data', 'unknown')] }), whole(immediate), 'an unknown class delays nothing')
  const chosen = aStoredClaim('data', { spec: { storageClassName: 'late', volumeName: 'disk' } })
  t.equal(message({ claims: [chosen] }), whole(immediate), 'a person chose the volume')
  const bound = aStoredClaim('data', boundTo('gone'))
  t.equal(message({ claims: [bound] }), whole('persistentvolume "gone" not found'))
  const ephemeral = { spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } }
  const awaited = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "a-pod-tmp"'
  t.equal(message({}, ephemeral), whole(awaited))
  const foreign = 'PVC default/a-pod-tmp was not created for pod default/a-pod (pod is not owner)'
  t.equal(message({ claims: [delayed('a-pod-tmp', 'late')] }, ephemeral), whole(foreign))
  t.equal(message({ nodes: [] }), 'no nodes available to schedule pods')
})

test('an ephemeral claim of the pod itself is used, and one whose volume is gone names its reason', async (t) => {
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'a-pod', uid: 'uid-of-a-pod', controller: true }]
  const spec = { volumes: [{ name: 'tmp', ephemeral: {} }] }
  const own = aStoredClaim('a-pod-tmp', { metadata: { ownerReferences }, spec: { storageClassName: 'late' } })
  t.same(refused({ claims: [own] }, { spec }), {})
  const annotations = { [bindCompleted]: 'yes' }
  const bound = aStoredClaim('a-pod-tmp', { metadata: { ownerReferences, annotations }, spec: { volumeName: 'gone' } })
  const missing = ['node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)']
  t.same(refused({ claims: [bound] }, { spec }), { a: missing, b: missing })
})

test('a delayed claim gets the smallest volume that fits on the node', async (t) => {
  const claims = [delayed('data', 'fixed', '2Gi')]
  const chosen = (...volumes: ReturnType<typeof free>[]) => {
    const { decision } = decided({ claims, volumes })
    if (decision.decided !== 'bind') return decision.decided
    return [decision.nodeName, ...(decision.volumes?.bindings ?? []).map(({ volume }) => volume.metadata.name)]
  }
  t.same(chosen(free('small', '1Gi'), free('large', '9Gi'), free('fits', '2Gi')), ['a', 'fits'])
  t.same(chosen(free('fits', '2Gi', 'b'), free('large', '9Gi', 'b')), ['b', 'fits'])
  t.same(chosen(free('small', '1Gi')), 'wait')
  const taken = aStoredVolume('taken', { spec: { storageClassName: 'fixed', claimRef: claimRefTo('other') } })
  const released = aStoredVolume('released', { spec: { storageClassName: 'fixed' }, status: { phase: 'Released' } })
  const block = aStoredVolume('block', { spec: { storageClassName: 'fixed', volumeMode: 'Block' } })
  const other = aStoredVolume('other', { spec: { storageClassName: 'late' } })
  t.same(refused({ claims: [delayed('data', 'fixed')], volumes: [taken, released, block, other] }), {
    a: unbindable,
    b: unbindable,
  })
})

test('a volume that is reserved for a claim is taken before all others, and nowhere else', async (t) => {
  const claims = [delayed('data', 'fixed')]
  const mine = aStoredVolume('mine', {
    spec: {
      storageClassName: 'fixed',
      capacity: { storage: '9Gi' },
      claimRef: claimRefTo('data', ''),
      ...onNodes('b'),
    },
  })
  t.same(refused({ claims, volumes: [free('fits', '1Gi'), mine] }), { a: unbindable })
  const { decision } = decided({ claims, volumes: [free('fits', '1Gi'), mine] })
  t.match(decision, {
    decided: 'bind',
    nodeName: 'b',
    volumes: { bindings: [{ volume: { metadata: { name: 'mine' } } }] },
  })
})

test('the claims of one pod get different volumes on one node', async (t) => {
  const claims = [delayed('data', 'fixed', '5Gi'), delayed('logs', 'fixed', '1Gi')]
  const pair = { spec: using('data', 'logs') }
  const volumes = [free('big', '5Gi', 'a'), free('bigger', '6Gi', 'b'), free('little', '1Gi', 'b')]
  t.same(refused({ claims, volumes }, pair), { a: unbindable })
  const { decision } = decided({ claims, volumes }, pair)
  t.match(decision, { nodeName: 'b' })
  const both = { claims, volumes: [free('big', '5Gi', 'a'), free('bigger', '6Gi', 'a')] }
  const large = decided(both, pair).decision
  const names = large.decided === 'bind' ? large.volumes?.bindings.map(({ volume }) => volume.metadata.name) : []
  t.same(names, ['big', 'bigger'], 'the smaller claim chooses first')
  t.same(
    refused({ claims, volumes: [free('big', '5Gi')] }, { spec: using('data', 'data') }),
    {},
    'one claim, named twice',
  )
})

test('a volume of a pool is made on a node with a pool', async (t) => {
  const claims = [delayed('data', 'late')]
  const classes = [
    storedClass('late', { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'bramble.dev/local-path' }),
  ]
  const full = { a: ['node(s) did not have enough free storage'] }
  const id = '11111111-1111-4111-8111-111111111111'
  const labels = { [`pool.bramble.dev/${id}`]: '' }
  const has = (pool: object) => [
    { name: 'a' },
    { name: 'b', labels, annotations: { 'bramble.dev/pools': JSON.stringify([{ id, path: '/pool', ...pool }]) } },
  ]
  const nodes = has({})
  t.same(refused({ claims, classes, nodes }), full)
  t.match(decided({ claims, classes, nodes }).decision, { decided: 'bind', nodeName: 'b' })
  const nowhere = { ...full, b: ['node(s) did not have enough free storage'] }
  t.same(refused({ claims, classes, nodes: has({ full: true }) }), nowhere)
  t.same(refused({ claims, classes, nodes: has({ name: 'card' }) }), nowhere, 'not the default one')
  const [late] = classes
  const named = late === undefined ? [] : [{ ...late, parameters: { pool: 'card' } }]
  t.same(refused({ claims, classes: named, nodes }), nowhere)
  t.same(refused({ claims, classes: named, nodes: has({ name: 'card' }) }), full)
})

test('a volume is made where the class allows it, and where it is being made already', async (t) => {
  const claims = [delayed('data', 'late')]
  t.same(refused({ claims }), {})
  const { decision } = decided({ claims })
  t.match(decision, { decided: 'bind', volumes: { bindings: [], provisions: [{ metadata: { name: 'data' } }] } })
  const zoned = (...values: string[]) => {
    const matchLabelExpressions = [{ key: 'kubernetes.io/hostname', values }]
    const allowedTopologies = [{ matchLabelExpressions }]
    return [storedClass('late', { volumeBindingMode: 'WaitForFirstConsumer', allowedTopologies })]
  }
  t.same(refused({ claims, classes: zoned('b') }), { a: unbindable })
  t.same(refused({ claims, classes: zoned('b', 'a') }), {})
  const annotations = { [selectedNode]: 'b' }
  const selected = aStoredClaim('data', { metadata: { annotations }, spec: { storageClassName: 'late' } })
  t.same(refused({ claims: [selected] }), { a: unbindable })
})

test('what was promised to one pod is taken for others, and meant for those that share the claim', async (t) => {
  const { known, decision } = decided({
    claims: [delayed('data', 'fixed'), delayed('other', 'fixed'), delayed('made', 'late')],
    volumes: [free('only', '1Gi', 'b')],
  })
  t.match(decision, { decided: 'bind', nodeName: 'b' })
  t.same(refusalsOf(aPod({ spec: using('other') }), known), { a: unbindable, b: unbindable })
  t.same(refusalsOf(aPod({ name: 'friend', spec: using('data') }), known), { a: unbindable })
  t.match(known.volumes.volume('only'), {
    metadata: { annotations: { [boundByController]: 'yes' } },
    spec: { claimRef: { name: 'data', namespace: 'default', uid: 'uid-data', kind: 'PersistentVolumeClaim' } },
  })
  known.volumes.release('default/a-pod')
  t.same(refusalsOf(aPod({ spec: using('other') }), known), { a: unbindable })
  const made = known.volumes.claim('default/made')
  if (made === undefined) throw new Error('no claim')
  known.volumes.promise('default/one', { bindings: [], provisions: [made] }, 'a')
  known.volumes.promise('default/two', { bindings: [], provisions: [made] }, 'a')
  known.volumes.release('default/one')
  t.same(refusalsOf(aPod({ spec: using('made') }), known), { b: unbindable }, 'the second pod still holds it')
})

test('a claim for one pod alone keeps a second pod from every node, until that pod is gone', async (t) => {
  const exclusive = { accessModes: ['ReadWriteOncePod'] }
  const claims = [aStoredClaim('data', { ...boundTo('disk'), spec: { ...exclusive, volumeName: 'disk' } })]
  const volumes = [aStoredVolume('disk', { spec: exclusive })]
  const first = { name: 'first', nodeName: 'a', spec: { ...using('data'), nodeName: 'a' } }
  const taken = ['node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode']
  const objects = { claims, volumes, bound: [first] }
  t.same(refused(objects), { a: taken, b: taken })
  t.match(decided(objects).decision, { decided: 'wait' })
  const { decision } = decided(objects, { priority: 10 })
  t.match(decision, { decided: 'preempt', nodeName: 'a', victims: [{ key: 'default/first' }] })
  t.same(
    refused({ claims, volumes, bound: [{ ...first, namespace: 'another' }] }),
    {},
    'a claim of that name elsewhere',
  )
})

test('a node in a zone takes no volume of another zone', async (t) => {
  const zone = 'topology.kubernetes.io/zone'
  const old = 'failure-domain.beta.kubernetes.io/zone'
  const wrong = ['node(s) had no available volume zone']
  const nodes = [{ name: 'a', labels: { [zone]: 'attic' } }, { name: 'b', labels: { [zone]: 'cellar' } }, { name: 'c' }]
  const claims = [aStoredClaim('data', boundTo('disk'))]
  const labelled = (labels: { [key: string]: string }) =>
    refused({ nodes, claims, volumes: [aStoredVolume('disk', { metadata: { labels } })] })
  t.same(labelled({ [zone]: 'attic' }), { b: wrong })
  t.same(labelled({ [old]: 'cellar__garage' }), { a: wrong }, 'old label, several zones')
  t.same(labelled({ [zone]: 'attic__' }), {}, 'a list that cannot be read is ignored')
  t.same(labelled({}), {})
})
