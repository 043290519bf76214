import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod, type PodOverrides } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { aClusterWithVolumes, using, type VolumeObjects } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume } from '../../testing/volume-objects.ts'
import { podVolumes } from './pod-volumes.ts'
import type { KnownClaim, KnownVolume } from './volume-cache.ts'

type ClaimParts = NonNullable<Parameters<typeof aStoredClaim>[1]>
type VolumeParts = Parameters<typeof aStoredVolume>[1]

const { bindCompleted, selectedNode } = volumeAnnotations
const deletionTimestamp = '2026-01-01T00:00:00Z'
const immediate = 'pod has unbound immediate PersistentVolumeClaims'

const inClass = (storageClassName: string, more: ClaimParts['spec'] = {}) => ({ spec: { storageClassName, ...more } })
const bound = (volumeName: string, { metadata, spec, status }: ClaimParts = {}): ClaimParts => ({
  metadata: { ...metadata, annotations: { [bindCompleted]: 'yes' } },
  spec: { volumeName, ...spec },
  ...(status && { status }),
})
const claim = (name: string, parts: ClaimParts = {}): KnownClaim => aStoredClaim(name, parts)
const ephemeral: PodOverrides = { spec: { volumes: [{ name: 'tmp', ephemeral: {} }] } }
const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'a-pod', uid: 'uid-of-a-pod', controller: true }]

const volumesOf = (objects: VolumeObjects, over: PodOverrides = { spec: using('data') }) =>
  finished(podVolumes(aPod(over), aClusterWithVolumes(objects).volumes))

/** What a pod gets that is not refused. */
function accepted(objects: VolumeObjects, over?: PodOverrides) {
  const found = volumesOf(objects, over)
  if (found === undefined || found.refused !== undefined) throw new Error(found?.refused?.reason ?? 'no claims')
  return found
}

const written = (annotation: string, value: object): VolumeParts => ({
  metadata: { annotations: { [annotation]: JSON.stringify(value) } },
})

test('nothing is looked up for a pod without claims', async (t) => {
  const never = () => {
    throw new Error('looked up')
  }
  const view = {
    claim: never,
    volume: never,
    storageClass: never,
    volumesOfClass: never,
    isClaimUsed: never,
    usersOf: never,
    csi: { roomFor: never, limitOf: never },
  }
  const pod = aPod({ spec: { volumes: [{ name: 'tmp', emptyDir: {} }] } })
  t.equal(finished(podVolumes(pod, view)), undefined)
  t.throws(() => finished(podVolumes(aPod({ spec: using('data') }), view)), { message: 'looked up' })
})

test('what keeps a pod from every node is named with its plugin', async (t) => {
  const disk = aStoredVolume('disk')
  const moving = (phase: string) => {
    const place = { pool: 'p', folder: 'f' }
    const state = { id: '0123abcd', phase, round: 1, from: place, to: { ...place, node: 'b' } }
    return aStoredVolume('disk', written('bramble.dev/move', state))
  }
  const backup = (mode: string, phase: string) => {
    const state = { id: '0123abcd', phase, mode, to: 'a:/backups', startedAt: deletionTimestamp }
    return aStoredVolume('disk', written('bramble.dev/backup-state', state))
  }
  const restored = aStoredVolume('disk', written('bramble.dev/restore-from', { id: '0123abcd', from: 'f', name: 'n' }))
  const data = 'persistentvolumeclaim "data"'
  const held = claim('data', bound('disk'))
  const lost = { status: { phase: 'Lost' }, metadata: { deletionTimestamp } }
  const cases: readonly (readonly [string, KnownClaim, KnownVolume | undefined, plugin?: string, reason?: string])[] = [
    ['bound', held, disk],
    ['delayed', claim('data', inClass('late')), undefined],
    ['leaving', claim('data', { metadata: { deletionTimestamp } }), disk, 'VolumeBinding', `${data} is being deleted`],
    [
      'lost and leaving',
      claim('data', bound('gone', lost)),
      undefined,
      'VolumeBinding',
      `${data} bound to non-existent persistentvolume "gone"`,
    ],
    ['without a class', claim('data'), undefined, 'VolumeBinding', immediate],
    ['of class ""', claim('data', inClass('')), undefined, 'VolumeBinding', immediate],
    ['immediate', claim('data', inClass('now')), undefined, 'VolumeBinding', immediate],
    ['of an unknown class', claim('data', inClass('unknown')), undefined, 'VolumeBinding', immediate],
    ['prebound', claim('data', inClass('late', { volumeName: 'disk' })), disk, 'VolumeBinding', immediate],
    ['without its volume', held, undefined, 'VolumeZone', 'persistentvolume "disk" not found'],
    ['restored', held, restored, 'VolumeBinding', `${data} is being restored from a backup`],
    ['backed up at rest', held, backup('stopped', 'begin'), 'VolumeBinding', `${data} is being backed up`],
    ['being written at rest', held, backup('stopped', 'write'), 'VolumeBinding', `${data} is being backed up`],
    ['backed up, at its end', held, backup('stopped', 'end')],
    ['backed up live', held, backup('live', 'write')],
    ['backed up with hooks', held, backup('hooks', 'write')],
    ['held for a move', held, moving('hold'), 'VolumeBinding', `${data} is being moved to node "b"`],
    ['copied for a move', held, moving('copy')],
  ]
  for (const [title, one, volume, plugin, reason] of cases) {
    const found = volumesOf({ claims: [one], volumes: volume === undefined ? [] : [volume] })
    t.same(found?.refused, plugin === undefined ? undefined : { plugin, reason }, title)
  }
})

test('a claim that is missing is refused before one that cannot be used', async (t) => {
  const leaving = claim('data', { metadata: { deletionTimestamp } })
  t.same(volumesOf({ claims: [leaving] }, { spec: using('data', 'logs') })?.refused, {
    plugin: 'VolumeRestrictions',
    reason: 'persistentvolumeclaim "logs" not found',
  })
})

test('an ephemeral claim is awaited, and taken only if it was made for the pod', async (t) => {
  const reason = (...claims: readonly KnownClaim[]) => volumesOf({ claims }, ephemeral)?.refused
  t.same(reason(), {
    plugin: 'VolumeBinding',
    reason: 'waiting for ephemeral volume controller to create the persistentvolumeclaim "a-pod-tmp"',
  })
  const foreign = {
    plugin: 'VolumeBinding',
    reason: 'PVC default/a-pod-tmp was not created for pod default/a-pod (pod is not owner)',
  }
  const late = inClass('late')
  t.same(reason(claim('a-pod-tmp', late)), foreign)
  const [owner] = ownerReferences
  const earlier = [{ ...owner, kind: 'Pod', apiVersion: 'v1', name: 'a-pod', uid: 'uid-of-an-earlier-pod' }]
  t.same(reason(claim('a-pod-tmp', { ...late, metadata: { ownerReferences: earlier } })), foreign, 'an earlier pod')
  t.equal(reason(claim('a-pod-tmp', { ...late, metadata: { ownerReferences } })), undefined)
})

test('bound claims have their volumes, and delayed ones are decided on, the smallest first', async (t) => {
  const sized = (name: string, storage: string) =>
    claim(name, inClass('late', { resources: { requests: { storage } } }))
  const claims = [sized('large', '2Gi'), claim('data', bound('disk')), sized('small', '1500Mi'), sized('tiny', '1G')]
  const disk = aStoredVolume('disk')
  const found = accepted({ claims, volumes: [disk] }, { spec: using('large', 'data', 'small', 'tiny', 'large') })
  t.same(found.bound, [disk])
  t.same(
    found.delayed.map(({ claim: { metadata }, storageClass }) => [metadata.name, storageClass.metadata.name]),
    ['tiny', 'small', 'large'].map((name) => [name, 'late']),
    'a claim that is named twice counts once',
  )
})

test('a claim that has its node already gets no volume that exists', async (t) => {
  const free = aStoredVolume('free', { spec: { storageClassName: 'fixed' } })
  const [node] = [...aClusterWithVolumes({}).from(0)]
  if (node === undefined) throw new Error('no node')
  const found = (annotations: { readonly [name: string]: string }) =>
    accepted({ claims: [claim('data', { ...inClass('fixed'), metadata: { annotations } })], volumes: [free] }).delayed
  const [[open], [chosen]] = [found({}), found({ [selectedNode]: 'b' })]
  t.same([open?.selectedNode, open?.free.smallestOn(node, new Set())?.metadata.name], [undefined, 'free'])
  t.same([chosen?.selectedNode, chosen?.free.smallestOn(node, new Set())], ['b', undefined])
})

test('a claim for one pod alone is taken while a pod on a node uses it', async (t) => {
  const alone = { accessModes: ['ReadWriteOncePod'] }
  const user = { name: 'other', nodeName: 'a', spec: { ...using('data'), nodeName: 'a' } }
  const isTaken = (spec: ClaimParts['spec'], used: boolean) =>
    accepted({
      claims: [claim('data', bound('disk', { spec }))],
      volumes: [aStoredVolume('disk')],
      bound: used ? [user] : [],
    }).isTaken()
  t.same([isTaken(alone, true), isTaken(alone, false), isTaken({}, true)], [true, false, false])
})

test('zones count for volumes of claims that the pod shares, as VolumeZone reads no ephemeral ones', async (t) => {
  const labels = { 'topology.kubernetes.io/zone': 'attic' }
  const volumes = [aStoredVolume('disk', { metadata: { labels } })]
  const shared = accepted({ claims: [claim('data', bound('disk'))], volumes })
  t.same(shared.zones, [{ label: 'topology.kubernetes.io/zone', values: new Set(['attic']) }])
  const own = claim('a-pod-tmp', bound('disk', { metadata: { ownerReferences } }))
  t.same(accepted({ claims: [own], volumes }, ephemeral).zones, [])
})
