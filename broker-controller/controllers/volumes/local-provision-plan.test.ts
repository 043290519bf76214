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
  const facts = { nodes: () => [node], freeBytes: () => undefined }
  const found = (name: string) => (name === 'pi-1' ? node : undefined)
  return planProvision({ claim: of, storageClass, node: found, ...facts, ...over })
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
  t.same(plan(claim({}, noNode)), { plan: 'nothing' }, 'the scheduler selects a node')
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

const other = '22222222-2222-4222-8222-222222222222'
const named = (name: string, one: string, more: object = {}) => ({ id: one, path: `/mnt/${name}`, name, ...more })
const withPools = (name: string, ...some: readonly { readonly id: string }[]) =>
  aNode({
    ...{ name, annotations: pools(...some) },
    labels: { room: name, ...Object.fromEntries(some.map((one) => [`pool.bramble.dev/${one.id}`, ''])) },
  })
const inPool = (parameters: { readonly [name: string]: string } | undefined, place: ReturnType<typeof aNode>) => {
  const made = plan(claim(), {
    storageClass: { ...storageClass, ...(parameters && { parameters }) },
    node: () => place,
  })
  return made.plan === 'create' ? made.volume.spec?.local?.path?.split('/')[2] : made.plan
}

test('the class names the pool of a machine, and without it the default one is used, and no other', async (t) => {
  const both = withPools('pi-1', named('card', id), named('ssd', other, { default: true }))
  t.equal(inPool(undefined, both), 'ssd')
  t.equal(inPool({ pool: 'card' }, both), 'card')
  t.equal(inPool({ pool: id }, both), 'card')
  t.equal(inPool({ pool: `pool.bramble.dev/${id}` }, both), 'card')
  t.equal(inPool({ pool: 'nvme' }, both), 'refuse')
  t.equal(inPool(undefined, withPools('pi-1', named('card', id))), 'refuse', 'the disk of the default one is missing')
  const full = withPools('pi-1', named('card', id), named('ssd', other, { default: true, full: true }))
  t.equal(inPool(undefined, full), 'refuse')
  const place = () => full
  t.match(plan(claim(), { node: place }), { message: /has no pool for volumes with more free than its reserve$/ })
  t.equal(inPool({ pool: 'a b' }, both), 'refuse')
  t.equal(inPool(undefined, withPools('pi-1', { ...pool, default: false } as typeof pool)), 'refuse')
})

test('a class that binds at once gets the pool with the most free space of the nodes that it allows', async (t) => {
  const third = '33333333-3333-4333-8333-333333333333'
  const nodes = [
    withPools('pi-1', named('ssd', id, { default: true })),
    withPools('pi-2', named('ssd', other, { default: true })),
    { ...withPools('pi-3', named('ssd', third, { default: true })), status: { conditions: [] } },
  ]
  const free = new Map([
    [id, 10],
    [other, 20],
    [third, 30],
  ])
  const noNode = { 'volume.kubernetes.io/storage-provisioner': 'bramble.dev/local-path' }
  const chosen = (more: Partial<typeof storageClass> = {}) => {
    const atOnce = { ...storageClass, volumeBindingMode: 'Immediate' as const, ...more }
    const facts = { storageClass: atOnce, nodes: () => nodes, freeBytes: (_: string, one: string) => free.get(one) }
    const made = plan(claim({}, noNode), facts)
    return made.plan === 'create' ? made.volume.metadata.annotations?.['bramble.dev/pool'] : made
  }
  t.equal(chosen(), other, 'pi-3 is not ready')
  const inRoom = (...values: string[]) => ({
    allowedTopologies: [{ matchLabelExpressions: [{ key: 'room', values }] }],
  })
  t.equal(chosen(inRoom('pi-1')), id)
  t.match(chosen(inRoom('cellar')), {
    plan: 'refuse',
    chooseAgain: false,
    message: /^no ready node that the class allows/,
  })
  t.match(chosen({ parameters: { pool: 'nvme' } }), { message: /has a pool "nvme"/ })
  free.set(other, 5)
  t.equal(chosen(), id)
})
