import { test } from 'tap'
import type { PodSpec, Volume } from '../../../api/pod.ts'
import type { NodeClaim, NodeVolume } from '../../../api/storage/node-claim.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeVolumes } from '../../testing/fake-volumes.ts'
import { containerMounts } from './container-mounts.ts'
import { wantedVolume } from './wanted-volumes.ts'

const others = { hostIP: undefined, podIP: undefined, allocatable: {}, configMaps: [], secrets: [] }
const local: NodeVolume = { name: 'pv', uid: 'uid-pv', source: 'local', path: '/mnt/disk' }
const bound = (volume: Partial<NodeVolume> = {}, more: Partial<NodeClaim> = {}): NodeClaim => ({
  ...{ namespace: 'default', name: 'data', uid: 'uid-data', accessModes: ['ReadWriteOnce'] },
  volume: { ...local, ...volume },
  ...more,
})
const persistentVolumeClaim = { claimName: 'data' }

function wanted(
  claims: readonly NodeClaim[],
  volume: Partial<Volume> = { persistentVolumeClaim },
  spec: Partial<PodSpec> = {},
) {
  return wantedVolume(aPod({ name: 'db-0', uid: 'u', spec }), { name: 'v', ...volume }, { ...others, claims })
}

function eventOf(claims: readonly NodeClaim[], volume?: Partial<Volume>) {
  const answer = wanted(claims, volume)
  return answer.ok ? undefined : answer.event
}

const processing = (why: string) =>
  `Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: ${why}: timed out waiting for the condition`

test('the volume of a bound claim is found by the name of the claim', async (t) => {
  const value = {
    name: 'v',
    kind: 'claim',
    uid: 'uid-pv',
    volume: 'pv',
    source: 'local',
    path: '/mnt/disk',
    type: '',
    claim: 'default/data',
    claimUID: 'uid-data',
  }
  t.same(wanted([bound()]), { ok: true, value: { ...value, isForOnePod: false } })
  const folder: Partial<NodeVolume> = { source: 'hostPath', path: '/srv', type: 'DirectoryOrCreate' }
  t.match(wanted([bound(folder)]), { value: { source: 'hostPath', path: '/srv', type: 'DirectoryOrCreate' } })
  t.match(wanted([bound({ pool: 'p', hasData: true })]), { value: { pool: 'p', hasData: true } })
  t.match(wanted([bound({ fsType: 'xfs' })]), { value: { fsType: 'xfs', isReadOnly: undefined } })
  t.match(wanted([bound({ mountOptions: ['ro'] })]), { value: { isReadOnly: true } })
  const single = bound({}, { accessModes: ['ReadWriteOncePod'], pod: 'u' })
  t.match(wanted([single]), { value: { isForOnePod: true } })
})

test('the fsGroup of the pod is for local volumes that it may write', async (t) => {
  const spec = { securityContext: { fsGroup: 2000, fsGroupChangePolicy: 'OnRootMismatch' } }
  const group = (claim: NodeClaim, readOnly = false, from: Partial<PodSpec> = spec) => {
    const answer = wanted([claim], { persistentVolumeClaim: { claimName: 'data', readOnly } }, from)
    return answer.ok && answer.value.kind === 'claim' ? [answer.value.group, answer.value.groupOnMismatch] : answer
  }
  t.same(group(bound()), [2000, true])
  t.same(group(bound(), false, { securityContext: { fsGroup: 2000 } }), [2000, false])
  t.same(group(bound(), true), [undefined, undefined])
  t.same(group(bound({ mountOptions: ['ro'] })), [undefined, undefined])
  t.same(group(bound({ source: 'hostPath' })), [undefined, undefined])
})

test('a block volume is a device of the containers that ask for one', async (t) => {
  const block = [bound({ volumeMode: 'Block', path: '/dev/disk/by-id/a' })]
  const container = { name: 'main', volumeDevices: [{ name: 'v', devicePath: '/dev/data' }] }
  const device = (claims: readonly NodeClaim[], readOnly = false) => {
    const volume = { name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly } }
    const pod = aPod({ name: 'db-0', uid: 'u', spec: { containers: [container], volumes: [volume] } })
    return containerMounts(pod, container, { ...others, apiServer: undefined, services: [], claims }, fakeVolumes())
  }
  t.match(wanted(block), { value: { source: 'local', path: '/dev/disk/by-id/a', isBlock: true, group: undefined } })
  t.match(await device(block), { ok: true, mounts: [], devices: [{ target: '/dev/data', readOnly: undefined }] })
  t.match(await device(block, true), { devices: [{ target: '/dev/data', readOnly: true }] })
  t.match(await device([bound()]), {
    event: processing('volume v has volumeMode Filesystem, but is specified in volumeDevices'),
  })
  const noMapper = 'MapVolume.FindMapperPluginBySpec failed to find BlockVolumeMapper plugin'
  t.match(await device([bound({ volumeMode: 'Block', source: 'hostPath' })]), {
    event: `${noMapper} for volume "pv" : Volume plugin is nil.`,
  })
  t.match(await device([bound({ volumeMode: 'Block', elsewhere: true })]), { event: /^MapVolume.NodeAffinity check/ })
})

test('a claim that cannot be mounted is reported in the words of the kubelet', async (t) => {
  const missing = 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found'
  t.equal(eventOf([]), processing(`error processing PVC default/data: ${missing}`))
  t.equal(eventOf([{ ...bound(), namespace: 'other' }]), processing(`error processing PVC default/data: ${missing}`))
  const unbound = { namespace: 'default', name: 'data', uid: 'uid-data', refusal: 'PVC is not bound' }
  t.equal(eventOf([unbound]), processing('error processing PVC default/data: PVC is not bound'))
  const main = { name: 'main', volumeMounts: [{ name: 'v', mountPath: '/data' }] }
  t.match(wanted([bound({ volumeMode: 'Block' })], undefined, { containers: [main] }), {
    event: processing('volume v has volumeMode Block, but is specified in volumeMounts'),
  })
  t.equal(
    eventOf([bound({ elsewhere: true })]),
    'MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms',
  )
  t.equal(eventOf([bound({ source: 'other' })]), 'MountVolume.SetUp failed for volume "pv" : no volume plugin matched')
  const unsupported = 'Mount options are not supported for this volume type: noatime'
  t.equal(
    eventOf([bound({ mountOptions: ['ro', 'noatime'] })]),
    `MountVolume.MountOptionSupport check failed for volume "pv" : ${unsupported}`,
  )
  const inUse = 'volume uses the ReadWriteOncePod access mode and is already in use by another pod'
  t.equal(eventOf([bound({}, { pod: 'other' })]), `MountVolume.SetUp failed for volume "pv" : ${inUse}`)
})

test('a claim on a share is mounted with the user in its Secret', async (t) => {
  const nfs = { kind: 'nfs', server: 'nas', path: '/export', mountOptions: ['soft'] } as const
  const onShare = (share: NodeVolume['share'], more: Partial<NodeClaim> = {}) => {
    const { path: _, ...rest } = local
    return { ...bound({}, more), volume: { ...rest, source: 'other' as const, ...(share && { share }) } }
  }
  t.match(wanted([onShare(nfs)]), { ok: true, value: { kind: 'claim', source: 'share', uid: 'uid-pv', share: nfs } })
  t.match(eventOf([onShare(nfs, { pod: 'other' })]), /already in use by another pod$/)
  const secret = { namespace: 'storage', name: 'nas' }
  const smb = { kind: 'smb', server: 'nas', path: '/photos', secret } as const
  const missing = 'MountVolume.SetUp failed for volume "pv" : secret "storage/nas" not found'
  t.equal(eventOf([onShare(smb)]), missing)
  const data = { username: 'YWRh', password: 'eA==' }
  const sources = (namespace: string) => ({
    ...others,
    claims: [onShare(smb)],
    secrets: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'nas', namespace }, data } as const],
  })
  const pod = aPod({ name: 'db-0', uid: 'u', spec: { securityContext: { fsGroup: 2000 } } })
  const volume = { name: 'v', persistentVolumeClaim }
  const { secret: _, ...plain } = smb
  t.match(wantedVolume(pod, volume, sources('storage')), {
    value: { share: { ...plain, group: 2000, user: { username: 'ada', password: 'x' } } },
  })
  t.match(wantedVolume(pod, volume, sources('default')), { event: missing }, 'of another namespace')
})

test('an nfs volume of a pod is mounted for this pod, read-only if it is', async (t) => {
  const store = fakeVolumes()
  const container = { name: 'main', volumeMounts: [{ name: 'v', mountPath: '/data' }] }
  const nfs = { server: 'nas', path: '/export', readOnly: true }
  const pod = aPod({ name: 'web', uid: 'u', containers: [container], spec: { volumes: [{ name: 'v', nfs }] } })
  t.match(await containerMounts(pod, container, { ...others, claims: [] }, store), {
    ok: true,
    mounts: [{ target: '/data', readOnly: true }],
  })
  t.match(store.placed.get('u/v'), { uid: 'u.v', source: 'share', share: { kind: 'nfs', ...nfs } })
  store.failNext('nas does not answer on port 2049')
  t.match(await containerMounts(pod, container, { ...others, claims: [] }, store), {
    event: 'MountVolume.SetUp failed for volume "v" : nas does not answer on port 2049',
  })
})

test('a pod takes only the ephemeral claim that was made for it', async (t) => {
  const made = (owner: string) => [bound({}, { name: 'db-0-v', owner })]
  t.match(wanted(made('u'), { ephemeral: {} }), { ok: true })
  const other = 'PVC default/db-0-v was not created for pod default/db-0 (pod is not owner)'
  t.equal(eventOf(made('other'), { ephemeral: {} }), processing(other))
})

test('a container that starts again keeps the volume of a claim that is missing now; a new pod waits for it', async (t) => {
  const store = fakeVolumes()
  const container = { name: 'main', volumeMounts: [{ name: 'v', mountPath: '/data' }] }
  const pod = (uid: string) =>
    aPod({
      ...{ name: 'db-0', uid, containers: [container] },
      spec: { volumes: [{ name: 'v', persistentVolumeClaim: { ...persistentVolumeClaim, readOnly: true } }] },
    })
  const mounts = (uid: string, claims: readonly NodeClaim[]) =>
    containerMounts(pod(uid), container, { ...others, claims }, store)
  const mount = { source: '/mnt/disk', target: '/data', readOnly: true, propagation: 'rprivate' }
  t.same(await mounts('u', [bound()]), { ok: true, mounts: [mount], devices: [] })
  t.same(await mounts('u', []), { ok: true, mounts: [mount], devices: [] })
  t.match(await mounts('new', []), { ok: false, volume: 'v', event: /persistentvolumeclaims "data" not found/ })
  store.failNext('path "/mnt/disk" does not exist')
  t.match(await mounts('u', [bound()]), {
    event: 'MountVolume.SetUp failed for volume "pv" : path "/mnt/disk" does not exist',
  })
})

test('while a volume is not attached the pod waits without an Event of the node', async (t) => {
  const driver = 'disk.example.com'
  const csi = {
    driver,
    handle: 'h',
    attachable: true,
    notAttached: 'volume h is not attached for volume attachment csi-1',
  }
  const { path: _, ...volume } = local
  const claims: readonly NodeClaim[] = [{ ...bound(), volume: { ...volume, source: 'other', csi } }]
  const pod = aPod({ name: 'db-0', uid: 'u', spec: { volumes: [{ name: 'v', persistentVolumeClaim }] } })
  const container = { name: 'main', image: 'i', volumeMounts: [{ name: 'v', mountPath: '/data' }] }
  t.match(await containerMounts(pod, container, { ...others, claims }, fakeVolumes()), {
    ...{ ok: false, isQuiet: true, message: csi.notAttached },
    event: `MountVolume.WaitForAttach failed for volume "pv" : ${csi.notAttached}`,
  })
})
