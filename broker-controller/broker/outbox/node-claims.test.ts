import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { type NodeClaimSources, nodeClaims } from './node-claims.ts'

const node = aNode({ name: 'pi-1', labels: { 'kubernetes.io/hostname': 'pi-1' } })
const uses = (name: string, over: Partial<Parameters<typeof aPod>[0]> = {}) =>
  aPod({
    ...{ name: 'db-0', uid: 'db-0', nodeName: 'pi-1', ...over },
    spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
  })
const bound = (spec: object = {}, more: object = {}) =>
  aStoredClaim('data', { spec: { volumeName: 'pv', ...spec }, status: { phase: 'Bound' }, ...more })
const pv = (spec: object = {}) => aStoredVolume('pv', { spec: { claimRef: claimRefTo('data'), ...spec } })

function sent(over: Partial<NodeClaimSources>, pods: readonly Pod[] = [uses('data')]) {
  return nodeClaims(pods, { node, claim: () => bound(), volume: () => pv(), podsUsing: () => [], ...over })
}

test('a node receives where the volume of a bound claim is, once for all its pods', async (t) => {
  const head = { namespace: 'default', name: 'data', uid: 'uid-data', accessModes: ['ReadWriteOnce'] }
  const volume = { name: 'pv', uid: 'uid-pv', source: 'hostPath', path: '/srv/pv' }
  t.same(sent({}, [uses('data'), uses('data', { uid: 'db-1' })]), [{ ...head, volume }])
  const local = { hostPath: undefined, local: { path: '/mnt/disk' } }
  t.same(sent({ volume: () => pv({ ...local, mountOptions: ['noatime'], volumeMode: 'Block' }) }), [
    {
      ...head,
      volume: { ...volume, source: 'local', path: '/mnt/disk', volumeMode: 'Block', mountOptions: ['noatime'] },
    },
  ])
  const device = { hostPath: undefined, local: { path: '/dev/sdb1', fsType: 'xfs' } }
  t.match(sent({ volume: () => pv(device) }), [{ volume: { path: '/dev/sdb1', fsType: 'xfs' } }])
  const nfs = { hostPath: undefined, nfs: { server: 'nas', path: '/export' } }
  const other = { name: 'pv', uid: 'uid-pv', source: 'other' }
  const share = { kind: 'nfs', server: 'nas', path: '/export' }
  t.same(sent({ volume: () => pv(nfs) }), [{ ...head, volume: { ...other, share } }])
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs', 'bramble.dev/share-root': '/' }
  const made = () => aStoredVolume('pv', { metadata: { annotations }, spec: { claimRef: claimRefTo('data'), ...nfs } })
  t.match(sent({ volume: made }), [{ volume: { share: { ...share, root: '/' } } }], 'its folder is made')
  const iscsi = { hostPath: undefined, iscsi: { targetPortal: 'nas', iqn: 'x' } }
  t.same(sent({ volume: () => pv(iscsi) }), [{ ...head, volume: other }])
  t.same(sent({ claim: () => undefined }), [], 'the claim does not exist')
  t.same(sent({}, [aPod({ nodeName: 'pi-1' })]), [])
})

test('a node keeps the record of a claim with its volume, and none of a claim that it cannot mount', async (t) => {
  const recordOf: NodeClaimSources['recordOf'] = ({ claim, volume }) => ({
    text: `${claim.metadata.uid} ${volume.metadata.uid}`,
    proof: 'sent',
  })
  t.match(sent({ recordOf }), [{ record: { text: 'uid-data uid-pv', proof: 'sent' } }])
  for (const claim of [aStoredClaim('data'), bound({ volumeName: '' })])
    t.notOk(sent({ recordOf, claim: () => claim })[0]?.record)
})

test('a volume of a pool is sent with its pool, and whether its data is there already', async (t) => {
  const ofPool = (annotations: object) =>
    sent({
      volume: () => ({
        ...pv({ hostPath: undefined, local: { path: '/mnt/disk/a' } }),
        metadata: {
          ...pv().metadata,
          annotations: {
            'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path',
            'bramble.dev/pool': 'p',
            ...annotations,
          },
        },
      }),
    })[0]?.volume
  t.same(ofPool({}), { name: 'pv', uid: 'uid-pv', source: 'local', path: '/mnt/disk/a', pool: 'p' })
  t.match(ofPool({ 'bramble.dev/has-data': 'true' }), { pool: 'p', hasData: true })
})

test('a claim that cannot be mounted is sent with the reason of the kubelet', async (t) => {
  const refusal = (over: Partial<NodeClaimSources>) => sent(over).map((one) => one.refusal)
  const at = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  t.same(refusal({ claim: () => aStoredClaim('data') }), ['PVC is not bound'])
  t.same(refusal({ claim: () => bound({}, { metadata: at }) }), ['PVC is being deleted'])
  const protectedClaim = bound({}, { metadata: { ...at, finalizers: ['kubernetes.io/pvc-protection'] } })
  t.same(refusal({ claim: () => protectedClaim }), [undefined], 'its pod keeps it, and goes on')
  t.same(refusal({ claim: () => bound({ volumeName: '' }) }), ['PVC has empty pvc.Spec.VolumeName'])
  t.same(refusal({ volume: () => undefined }), [
    'failed to fetch PV pv from API server: persistentvolumes "pv" not found',
  ])
  t.same(refusal({ volume: () => pv({ claimRef: claimRefTo('data', 'other') }) }), [
    'found PV object pv but its pv.Spec.ClaimRef.UID other does not point to claim.UID uid-data',
  ])
})

test('a volume that belongs to another node is marked', async (t) => {
  const on = (name: string) => ({
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] }],
      },
    },
  })
  t.equal(sent({ volume: () => pv(on('pi-1')) })[0]?.volume?.elsewhere, undefined)
  t.equal(sent({ volume: () => pv(on('pi-2')) })[0]?.volume?.elsewhere, true)
})

test('a claim for one pod is for the pod that has begun, or the oldest, wherever it is', async (t) => {
  const claim = () => bound({ accessModes: ['ReadWriteOncePod'] })
  const old = uses('data', { uid: 'old', nodeName: 'pi-2', metadata: { creationTimestamp: '2026-01-01T00:00:00Z' } })
  const young = uses('data', { uid: 'young', metadata: { creationTimestamp: '2026-01-02T00:00:00Z' } })
  const begun: Pod = { ...young, status: { phase: 'Running', startTime: '2026-01-02T00:00:01Z' } }
  const holder = (...pods: Pod[]) => sent({ claim, podsUsing: () => pods })[0]?.pod
  t.equal(holder(young, old), 'old')
  t.equal(holder(old, begun), 'young')
  t.equal(holder({ ...old, status: { phase: 'Succeeded' } }, young), 'young')
  t.equal(sent({ podsUsing: () => [old] })[0]?.pod, undefined, 'other claims have no holder')
})
