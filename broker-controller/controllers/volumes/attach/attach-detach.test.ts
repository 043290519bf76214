import { test } from 'tap'
import type { NodeStatus } from '../../../../api/node.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import { attachmentName } from '../../../store/attachment-name.ts'
import type { RestoreHold } from '../../../store/checkpoints/restore-hold.ts'
import { removeObject } from '../../../store/object-removal.ts'
import { rewrite } from '../../../store/rewrite.ts'
import { claimRefTo } from '../../../testing/volume-objects.ts'
import { volumeWorld } from '../../../testing/volume-world.ts'

const driver = 'disk.example.com'
const inUse = [`kubernetes.io/csi/${driver}^h`]
const nameFor = (node: string) => attachmentName({ driver, handle: 'h', node })
const ready = [{ type: 'Ready' as const, status: 'True' as const }]

/** Nodes `a` and `b`, and a claim `data` with the volume `pv`. The test plays the external-attacher and the nodes. */
async function aWorld(
  t: Parameters<typeof volumeWorld>[0],
  given: { hold?: RestoreHold; attachRequired?: boolean } = {},
) {
  const world = volumeWorld(t, given.hold === undefined ? {} : { hold: given.hold })
  const { store, clock } = world
  for (const name of ['a', 'b']) {
    const { metadata, ...node } = aNode({ name })
    await store.create('nodes', { ...node, metadata: { name: metadata.name }, status: { conditions: ready } })
  }
  if (given.attachRequired !== undefined) {
    const { attachRequired } = given
    const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver' } as const
    await store.create('csidrivers', { ...kind, metadata: { name: driver }, spec: { attachRequired } })
  }
  const accessModes = ['ReadWriteOnce']
  const claim = { accessModes, resources: { requests: { storage: '1Gi' } }, storageClassName: '', volumeName: 'pv' }
  const spec = {
    accessModes,
    capacity: { storage: '1Gi' },
    csi: { driver, volumeHandle: 'h' },
    claimRef: claimRefTo('data', ''),
  }
  await world.add('persistentvolumes', { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec })
  const metadata = { namespace: 'default', name: 'data' }
  await world.add('persistentvolumeclaims', { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: claim })
  const end = world.start()
  await world.settle(500)
  const attachment = (node: string) => store.get('volumeattachments', { namespace: '', name: nameFor(node) })
  return {
    ...world,
    end,
    attachment,
    async removePod(name: string) {
      const pod = await store.get('pods', { namespace: 'default', name })
      if (pod !== undefined) await store.delete('pods', { namespace: 'default', name })
      await world.settle(500)
    },
    async nodeStatus(name: string, status: NodeStatus) {
      await rewrite({ store, clock }, 'nodes', {
        ...{ key: { namespace: '', name }, part: 'status' as const },
        change: (node) => ({ ...node, status: { ...node.status, ...status } }),
      })
      await world.settle(500)
    },
    async attacher(node: string, status: object) {
      await rewrite({ store, clock }, 'volumeattachments', {
        ...{ key: { namespace: '', name: nameFor(node) }, part: 'status' as const },
        change: (found) => ({ ...found, status: { attached: false, ...status } }),
      })
      await world.settle(500)
    },
    async finalizer(node: string, finalizers: readonly string[]) {
      await rewrite({ store, clock }, 'volumeattachments', {
        key: { namespace: '', name: nameFor(node) },
        change: (found) => ({ ...found, metadata: { ...found.metadata, finalizers: [...finalizers] } }),
      })
    },
    async attached() {
      await world.settle(500)
      return (await store.list('volumeattachments')).items.map(({ spec }) => spec.nodeName).sort()
    },
  }
}

test('a volume follows its pod: attached before it starts, detached when the node has unmounted it', async (t) => {
  const world = await aWorld(t)
  t.same(await world.attached(), [])
  await world.addPod('web', 'data', '')
  t.same(await world.attached(), [], 'the pod has no node yet')
  await world.addPod('one', 'data', 'a')
  t.same(await world.attached(), ['a'])
  const spec = { attacher: driver, nodeName: 'a', source: { persistentVolumeName: 'pv' } }
  t.match(await world.attachment('a'), { spec, status: { attached: false } })
  await world.attacher('a', { attached: true })
  t.same(await world.events('one'), ['SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv" '])
  await world.nodeStatus('a', { volumesInUse: inUse })
  await world.removePod('one')
  t.same(await world.attached(), ['a'], 'the node has it mounted')
  await world.nodeStatus('a', { volumesInUse: [] })
  t.same(await world.attached(), [])
})

test('a pod on another node waits with an Event that names the pod that has the volume', async (t) => {
  const world = await aWorld(t)
  await world.addPod('one', 'data', 'a')
  await world.attached()
  await world.addPod('two', 'data', 'b')
  t.same(await world.attached(), ['a'])
  const event = 'FailedAttachVolume Multi-Attach error for volume "pv" Volume is already used by pod(s) one'
  t.same(await world.events('two'), [event])
  await world.nodeStatus('a', { volumesInUse: inUse })
  t.same(await world.events('two'), [event], 'once')
  await world.nodeStatus('a', { volumesInUse: [] })
  await world.finalizer('a', ['external-attacher/x'])
  await world.removePod('one')
  t.same(await world.attached(), ['a'])
  t.ok((await world.attachment('a'))?.metadata.deletionTimestamp, 'the attacher detaches it')
  const found = await world.attachment('a')
  await world.finalizer('a', [])
  if (found !== undefined) await removeObject(world, 'volumeattachments', found)
  t.same(await world.attached(), ['b'])
})

test('errors of the attacher, and its silence, are Events of the pod', async (t) => {
  const world = await aWorld(t)
  await world.addPod('one', 'data', 'a')
  await world.attached()
  await world.attacher('a', { attachError: { time: '2026-01-01T00:00:00Z', message: 'rpc error: no room' } })
  const failed = 'FailedAttachVolume AttachVolume.Attach failed for volume "pv" : '
  t.same(await world.events('one'), [`${failed}rpc error: no room`])
  await world.attacher('a', {})
  await world.settle(130_000)
  const late = `${failed}timed out waiting for external-attacher of ${driver} CSI driver to attach volume h`
  t.same((await world.events('one')).slice(1), [late])
})

test('a machine that does not return loses its volume after six minutes, or at once when it is out of service', async (t) => {
  const world = await aWorld(t)
  await world.addPod('one', 'data', 'a')
  await world.attached()
  const away = [{ type: 'Ready' as const, status: 'Unknown' as const }]
  await world.nodeStatus('a', { volumesInUse: inUse, conditions: away })
  await world.removePod('one')
  await world.addPod('two', 'data', 'b')
  await world.settle(5 * 60_000)
  t.same(await world.attached(), ['a'])
  t.match(await world.events('two'), [/exclusively attached to one node and can't be attached to another$/])
  await world.settle(2 * 60_000)
  t.same(await world.attached(), ['b'])

  await world.nodeStatus('b', { volumesInUse: inUse, conditions: away })
  await world.removePod('two')
  t.same(await world.attached(), ['b'])
  await rewrite(world, 'nodes', {
    key: { namespace: '', name: 'b' },
    change: (node) => ({
      ...node,
      spec: { ...node.spec, taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] },
    }),
  })
  t.same(await world.attached(), [])
})

test('a driver that attaches nothing has no attachments', async (t) => {
  const world = await aWorld(t, { attachRequired: false })
  await world.addPod('one', 'data', 'a')
  t.same(await world.attached(), [])
})

test('a restored store detaches nothing until its nodes have returned their pods', async (t) => {
  let isHeld = true
  let release = () => {}
  const hold: RestoreHold = {
    holds: () => isHeld,
    holdsPod: () => false,
    holdsUnbound: () => false,
    describe: () => undefined,
    onRelease(released) {
      const before = release
      release = () => {
        before()
        released()
      }
    },
  }
  const world = await aWorld(t, { hold })
  const spec = { attacher: driver, nodeName: 'a', source: { persistentVolumeName: 'pv' } }
  await world.store.create('volumeattachments', {
    ...{ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: nameFor('a') }, spec },
    status: { attached: true },
  })
  t.same(await world.attached(), ['a'])
  isHeld = false
  release()
  t.same(await world.attached(), [])
})
