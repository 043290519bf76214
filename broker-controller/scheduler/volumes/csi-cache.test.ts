import { test } from 'tap'
import type { CSIStorageCapacity } from '../../../api/storage/csi-storage-capacity.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { StoredObject } from '../../store/store.ts'
import { aClusterWithVolumes, storedClass, using, type VolumeObjects } from '../../testing/pods-with-claims.ts'
import { hostKey, refusalsOf } from '../../testing/scheduling.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { type ClusterChange, mayFit } from '../hints.ts'
import { csiObservers } from './csi-observers.ts'

const provisioner = 'disk.example.com'
const metadata = (name: string) => ({ name, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '' })
const apiVersion = 'storage.k8s.io/v1'
const driver = (storageCapacity: boolean): StoredObject<'csidrivers'> => ({
  ...{ apiVersion, kind: 'CSIDriver', metadata: metadata(provisioner) },
  spec: { storageCapacity },
})
const capacity = (
  name: string,
  room: Pick<CSIStorageCapacity, 'capacity' | 'maximumVolumeSize'>,
): StoredObject<'csistoragecapacities'> => ({
  ...{ apiVersion, kind: 'CSIStorageCapacity', storageClassName: 'late' },
  metadata: { ...metadata(name), namespace: 'default' },
  nodeTopology: { matchLabels: { [hostKey]: name } },
  ...room,
})
const node = (name: string, count?: number): StoredObject<'csinodes'> => ({
  ...{ apiVersion, kind: 'CSINode', metadata: metadata(name) },
  spec: { drivers: [{ name: provisioner, nodeID: name, ...(count !== undefined && { allocatable: { count } }) }] },
})
const classes = [storedClass('late', { provisioner, volumeBindingMode: 'WaitForFirstConsumer' })]

function aWorld(objects: VolumeObjects) {
  const known = aClusterWithVolumes({ classes, ...objects })
  const changes: ClusterChange[] = []
  const observe = csiObservers(known.volumes, (change) => void changes.push(change))
  return { known, changes, observe, refused: (claim: string) => refusalsOf(aPod({ spec: using(claim) }), known) }
}

test('a claim waits for a node where its driver reports enough room', async (t) => {
  const claim = aStoredClaim('data', {
    spec: { storageClassName: 'late', resources: { requests: { storage: '5Gi' } } },
  })
  const { observe, refused, changes } = aWorld({ claims: [claim] })
  const none = ['node(s) did not have enough free storage']
  t.same(refused('data'), {}, 'its driver reports nothing')
  observe.observeCsiDriver(driver(true), undefined)
  t.same(refused('data'), { a: none, b: none })
  const small = capacity('a', { capacity: '4Gi' })
  observe.observeCapacity(small, undefined)
  observe.observeCapacity(capacity('b', { capacity: '100Gi', maximumVolumeSize: '2Gi' }), undefined)
  t.same(refused('data'), { a: none, b: none }, 'too little, and too small volumes')
  changes.length = 0
  const large = capacity('a', { capacity: '5Gi' })
  observe.observeCapacity(large, small)
  t.same(refused('data'), { b: none })
  const pod = aPod({ spec: using('data') })
  const [change] = changes
  t.ok(change && mayFit({ pod, refusedBy: new Set(['VolumeBinding']) }, change, aWorld({ claims: [claim] }).known))
  observe.observeCapacity(small, large)
  t.equal(changes.length, 1, 'less room lets no pod fit')
  observe.observeCapacity(undefined, small)
  t.same(refused('data'), { a: none, b: none })
  observe.observeCsiDriver(driver(false), driver(true))
  t.same(refused('data'), {})
})

test('a node takes as many volumes of a driver as its CSINode states, and one for several pods once', async (t) => {
  const { bindCompleted } = volumeAnnotations
  const claims = ['one', 'two', 'three'].map((name) =>
    aStoredClaim(name, { metadata: { annotations: { [bindCompleted]: 'yes' } }, spec: { volumeName: `pv-${name}` } }),
  )
  const delayed = aStoredClaim('new', { spec: { storageClassName: 'late' } })
  const volumes = ['one', 'two', 'three'].map((name) =>
    aStoredVolume(`pv-${name}`, { spec: { csi: { driver: provisioner, volumeHandle: name } } }),
  )
  const bound = ['one', 'two'].map((name) => ({ name, nodeName: 'a', spec: using(name) }))
  const { observe, refused, changes, known } = aWorld({ claims: [...claims, delayed], volumes, bound })
  const full = ['node(s) exceed max volume count']
  t.same(refused('three'), {}, 'there is no limit')
  observe.observeCsiNode(node('a', 2), undefined)
  observe.observeCsiNode(node('b'), undefined)
  t.same(refused('three'), { a: full })
  t.same(refused('new'), { a: full }, 'also for one that is still to be made')
  t.same(refused('two'), {}, 'it is there already')
  t.same(changes[0], { change: 'node', nodeName: 'a' })
  const gone: ClusterChange = { change: 'pod gone', pod: aPod({ spec: using('one') }), nodeName: 'a' }
  t.ok(mayFit({ pod: aPod({ spec: using('three') }), refusedBy: new Set(['NodeVolumeLimits']) }, gone, known))
  observe.observeCsiNode(node('a', 3), node('a', 2))
  t.same(refused('three'), {})
  observe.observeCsiNode(node('a', 2), node('a', 3))
  observe.observeCsiNode(undefined, node('a', 2))
  t.same(refused('three'), {}, 'the driver is gone')
})
