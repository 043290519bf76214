import { test } from 'tap'
import type { StoredObject } from '../../store/store.ts'
import { aClusterWithVolumes, storedClass } from '../../testing/pods-with-claims.ts'
import type { ClusterChange } from '../hints.ts'
import { csiObservers } from './csi-observers.ts'

const provisioner = 'disk.example.com'
const metadata = (name: string) => ({ name, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '' })
const driver = (storageCapacity: boolean, name = provisioner): StoredObject<'csidrivers'> => ({
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: metadata(name) },
  spec: { storageCapacity },
})
const room = (capacity: string | undefined, storageClassName = 'late'): StoredObject<'csistoragecapacities'> => ({
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSIStorageCapacity', storageClassName },
  metadata: { ...metadata('room'), namespace: 'default' },
  ...(capacity !== undefined && { capacity }),
})
const node: StoredObject<'csinodes'> = {
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: metadata('a') },
  spec: { drivers: [{ name: provisioner, nodeID: 'a', allocatable: { count: 3 } }] },
}

function observed() {
  const late = storedClass('late', { provisioner })
  const known = aClusterWithVolumes({ classes: [late, storedClass('other', {}), storedClass('fast', { provisioner })] })
  const changes: ClusterChange[] = []
  const classes = () => changes.map((one) => (one.change === 'storage class' ? one.storageClass.metadata.name : one))
  return { csi: known.volumes.csi, classes, changes, observe: csiObservers(known.volumes, (one) => changes.push(one)) }
}

test('a driver that begins or ends to report its capacity wakes the pods of its classes', async (t) => {
  const cases: readonly (readonly [string, ...Parameters<ReturnType<typeof csiObservers>['observeCsiDriver']>])[] = [
    ['begins', driver(true), driver(false)],
    ['ends', driver(false), driver(true)],
    ['is installed', driver(true), undefined],
    ['is removed', undefined, driver(true)],
  ]
  for (const [title, present, previous] of cases) {
    const { classes, observe } = observed()
    observe.observeCsiDriver(present, previous)
    t.same(classes(), ['late', 'fast'], title)
  }
  const { classes, observe } = observed()
  observe.observeCsiDriver(driver(true), driver(true))
  observe.observeCsiDriver(driver(true, 'tape.example.com'), undefined)
  observe.observeCsiDriver(undefined, undefined)
  t.same(classes(), [], 'no change, and a driver without classes')
})

test('the limits of a node are kept until its CSINode is gone', async (t) => {
  const { csi, changes, observe } = observed()
  observe.observeCsiNode(node, undefined)
  t.equal(csi.limitOf('a', provisioner), 3)
  observe.observeCsiNode(undefined, node)
  t.equal(csi.limitOf('a', provisioner), undefined)
  observe.observeCsiNode(undefined, undefined)
  t.same(
    changes,
    ['a', 'a'].map((nodeName) => ({ change: 'node', nodeName })),
  )
})

test('room that has grown wakes the pods of its class', async (t) => {
  const wakes = (...[present, previous]: readonly (StoredObject<'csistoragecapacities'> | undefined)[]) => {
    const { classes, observe } = observed()
    observe.observeCapacity(present, previous)
    return classes()
  }
  t.same(wakes(room('1Gi'), undefined), ['late'], 'new')
  t.same(wakes(room('2Gi'), room('1Gi')), ['late'], 'more')
  t.same(wakes(room('1Gi'), room(undefined)), ['late'], 'it is known now')
  t.same(wakes(room('1Gi'), room('1024Mi')), [], 'as much')
  t.same(wakes(room('1Gi'), room('2Gi')), [], 'less')
  t.same(wakes(room(undefined), room('1Gi')), [], 'unknown')
  t.same(wakes(undefined, room('1Gi')), [], 'gone')
  t.same(wakes(room('1Gi', 'unknown'), undefined), [], 'of a class that does not exist')
})
