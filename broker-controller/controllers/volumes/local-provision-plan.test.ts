import { test } from 'tap'
import { reportedPools, volumeFolder } from '../../../api/storage/pools.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { aStorageClass, aStoredClaim } from '../../testing/volume-objects.ts'
import { planProvision } from './local-provision-plan.ts'
import { poolLabels, withPoolLabels } from './pool-labels.ts'

const id = '11111111-1111-4111-8111-111111111111'
const label = `pool.bramble.dev/${id}`
const pools = (...some: readonly object[]) => ({ 'bramble.dev/pools': JSON.stringify(some) })
const pool = { id, path: '/var/lib/bramble-agent/volumes' }
const node = aNode({ name: 'pi-1', labels: { [label]: '' }, annotations: pools(pool) })
const storageClass = aStorageClass('local-path', {
  provisioner: 'bramble.dev/local-path',
  volumeBindingMode: 'WaitForFirstConsumer',
})
const asked = {
  'volume.kubernetes.io/storage-provisioner': 'bramble.dev/local-path',
  'volume.kubernetes.io/selected-node': 'pi-1',
}
const claim = (spec: object = {}, annotations: object = asked) =>
  aStoredClaim('data', {
    metadata: { annotations: { ...annotations } },
    spec: { storageClassName: 'local-path', ...spec },
  })

function plan(of = claim(), over: Partial<Parameters<typeof planProvision>[0]> = {}) {
  return planProvision({ claim: of, storageClass, node: (name) => (name === 'pi-1' ? node : undefined), ...over })
}

test('a claim gets a volume in the pool of the node that was selected for it', async (t) => {
  t.same(plan(), {
    plan: 'create',
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: 'pvc-uid-data',
        finalizers: ['bramble.dev/volume-data'],
        annotations: { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': id },
      },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          namespace: 'default',
          name: 'data',
          uid: 'uid-data',
        },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'local-path',
        volumeMode: 'Filesystem',
        local: { path: '/var/lib/bramble-agent/volumes/default_data_pvc-uid-data' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: label, operator: 'Exists' }] }] } },
      },
    },
  })
})

test('what is not asked of this provisioner is left alone', async (t) => {
  t.same(plan(claim({}, {})), { plan: 'nothing' })
  t.same(plan(claim({ volumeName: 'pv' })), { plan: 'nothing' })
  t.same(plan(claim(), { storageClass: undefined }), { plan: 'nothing' })
  t.same(plan(claim({}, { ...asked, 'volume.kubernetes.io/storage-provisioner': 'other' })), { plan: 'nothing' })
})

test('a claim that no pool can have is refused, and one of a node without a pool is placed again', async (t) => {
  const refused = (spec: object) => plan(claim(spec))
  t.match(refused({ accessModes: ['ReadWriteMany'] }), { plan: 'refuse', chooseAgain: false, message: /ReadWriteMany/ })
  t.match(refused({ volumeMode: 'Block' }), { plan: 'refuse', chooseAgain: false })
  t.match(refused({ selector: {} }), { message: 'claim.Spec.Selector is not supported' })
  t.match(refused({ dataSource: { kind: 'PersistentVolumeClaim', name: 'a' } }), { message: /is not a CSI plugin/ })
  const noNode = { ...asked, 'volume.kubernetes.io/selected-node': '' }
  t.match(plan(claim({}, noNode)), { chooseAgain: false, message: /WaitForFirstConsumer/ })
  const elsewhere = { ...asked, 'volume.kubernetes.io/selected-node': 'pi-2' }
  t.match(plan(claim({}, elsewhere)), { chooseAgain: true, message: 'node "pi-2" has no pool for volumes' })
  const unlabelled = aNode({ name: 'pi-1', annotations: pools(pool) })
  t.match(plan(claim(), { node: () => unlabelled }), { chooseAgain: true }, 'another node may have that pool')
})

test('what a node reports is bounded, and a path cannot lead elsewhere', async (t) => {
  const reported = (...some: readonly object[]) => reportedPools(aNode({ annotations: pools(...some) }))
  t.same(reported(pool), [pool])
  t.same(reported({ id: '../x', path: '/a' }, { id, path: 'a' }, { id, path: '/a/../b' }), [])
  t.equal(reported(...Array.from({ length: 100 }, () => pool)).length, 16)
  t.same(reportedPools(aNode({ annotations: { 'bramble.dev/pools': '{' } })), [])
  t.equal(Buffer.byteLength(volumeFolder('n'.repeat(63), 'c'.repeat(253), `pvc-${id}`)), 255)
  t.match(volumeFolder('n', 'c'.repeat(253), `pvc-${id}`), new RegExp(`^n_c+_pvc-${id}$`))
})

test('a node is labelled with its pools, and a pool that another node has stays there', async (t) => {
  const unlabelled = aNode({ name: 'pi-1', labels: { a: 'b' }, annotations: pools(pool) })
  t.same([...poolLabels(unlabelled, () => false)], [label])
  t.same([...poolLabels(unlabelled, () => true)], [], 'a copy of the disk of another node')
  t.same([...poolLabels(node, () => true)], [label], 'it has the label already')
  t.equal(withPoolLabels(node, new Set([label])), undefined)
  t.match(withPoolLabels(unlabelled, new Set([label]))?.metadata.labels, { a: 'b', [label]: '' })
  t.notOk(label in (withPoolLabels(node, new Set())?.metadata.labels ?? {}))
})

test('the class decides how long deleted data stays in the trash, and is refused if it gives no time', async (t) => {
  const withTrash = (trash: string) => plan(claim(), { storageClass: { ...storageClass, parameters: { trash } } })
  t.match(withTrash('30d'), { volume: { metadata: { annotations: { 'bramble.dev/trash': '30d' } } } })
  t.match(withTrash('0'), { volume: { metadata: { annotations: { 'bramble.dev/trash': '0' } } } })
  t.match(withTrash('never'), {
    plan: 'refuse',
    chooseAgain: false,
    message: 'invalid value "never" for the parameter trash: use days or hours, like 30d or 12h, or 0',
  })
})
