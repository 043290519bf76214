import { test } from 'tap'
import type { FleetTrash, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { aStorageClass, aStoredClaim } from '../../testing/volume-objects.ts'
import { adoption, chosenEntry, claimOfFolder, type ForClaim, undeletion } from './restored-volume.ts'

const id = '11111111-1111-4111-8111-111111111111'
const entry: FleetTrash = {
  ...{ uid: 'u-1', pool: id, node: 'pi-1', path: '/mnt/ssd', volume: 'pvc-1', folder: 'default_db_pvc-1' },
  ...{ claim: 'default/db', capacity: '5Gi', storageClass: 'disks', leftSeconds: 3600 },
}
const fleet = (over: Partial<FleetVolumes> = {}): FleetVolumes => ({ pools: [], volumes: [], trash: [entry], ...over })
const wanted = (over: Partial<ForClaim> = {}): ForClaim => ({
  ...{ namespace: 'default', name: 'db', present: undefined, size: undefined },
  classOf: (name) => (name === 'disks' ? aStorageClass('disks') : undefined),
  ...over,
})
const problemOf = (made: object) => ('problem' in made ? made.problem : undefined)

test('an entry of the trash is found by its claim or its uid', async (t) => {
  t.equal(chosenEntry('default/db', fleet()), entry)
  t.equal(chosenEntry('db', fleet()), entry)
  t.equal(chosenEntry('u-1', fleet()), entry)
  t.match(
    chosenEntry('shop/db', fleet()),
    /^Nothing of the claim shop\/db is in the trash: 'bramble-controller volumes trash'/,
  )
  const two = fleet({ trash: [entry, { ...entry, uid: 'u-2' }] })
  t.match(
    chosenEntry('db', two),
    /has 2 volumes of the claim default\/db\. Give the UID of one: u-1 on pi-1, .*; u-2 on/,
  )
  t.equal(chosenEntry('u-2', two), two.trash[1])
  const silent = fleet({ trash: [], pools: [{ id, node: 'pi-2', state: 'NodeNotReady', volumes: 0 }] })
  t.match(chosenEntry('db', silent), /Nodes that have not reported yet: pi-2$/)
})

test('data from the trash gets its volume and its claim as they were', async (t) => {
  t.same(undeletion(entry, wanted()), {
    volume: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: 'pvc-1',
        annotations: {
          'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path',
          'bramble.dev/pool': id,
          'bramble.dev/has-data': 'true',
        },
        finalizers: ['bramble.dev/volume-data'],
      },
      spec: {
        capacity: { storage: '5Gi' },
        accessModes: ['ReadWriteOnce'],
        claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'db' },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'disks',
        volumeMode: 'Filesystem',
        local: { path: '/mnt/ssd/default_db_pvc-1' },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: `pool.bramble.dev/${id}`, operator: 'Exists' }] }],
          },
        },
      },
    },
    claim: {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'default', name: 'db' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '5Gi' } },
        volumeName: 'pvc-1',
        storageClassName: 'disks',
      },
    },
  })
})

test('a claim that waits gets the volume, which is as large as it requests', async (t) => {
  const waits = (spec: object) => undeletion(entry, wanted({ present: aStoredClaim('db', { spec }) }))
  t.match(waits({ storageClassName: 'other', resources: { requests: { storage: '8Gi' } } }), {
    claim: undefined,
    volume: {
      spec: { capacity: { storage: '8Gi' }, storageClassName: 'other', persistentVolumeReclaimPolicy: 'Retain' },
    },
  })
  t.match(waits({ storageClassName: 'disks' }), {
    volume: { spec: { capacity: { storage: '5Gi' }, persistentVolumeReclaimPolicy: 'Delete' } },
  })
  t.match(
    problemOf(waits({ volumeName: 'pvc-2' })),
    /^The claim default\/db has the volume pvc-2\. Stop its pods and delete/,
  )
  t.equal(problemOf(waits({ volumeName: 'pvc-1' })), undefined, 'the second call')
  t.match(problemOf(waits({ volumeMode: 'Block' })), /has the volumeMode Block/)
  t.match(problemOf(waits({ accessModes: ['ReadWriteMany'] })), /has the access mode ReadWriteMany.*use ReadWriteOnce$/)
  const leaving = aStoredClaim('db', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
  t.match(problemOf(undeletion(entry, wanted({ present: leaving }))), /is being deleted: stop the pods/)
})

test('an entry without what it was is named with the place of its data', async (t) => {
  t.match(
    problemOf(undeletion({ ...entry, folder: '' }, wanted())),
    /^What was in u-1 is not recorded\. Its data is in \/mnt\/ssd\/\.bramble\/trash\/u-1\/data on pi-1$/,
  )
  t.match(problemOf(undeletion({ ...entry, path: '' }, wanted())), /does not report the path of the pool/)
  t.match(undeletion({ ...entry, volume: '' }, wanted()), { volume: { metadata: { name: 'undeleted-u-1' } } })
  const { capacity: _, ...unsized } = entry
  t.match(
    problemOf(undeletion(unsized, wanted())),
    /^Give the size that the claim default\/db requests with --size, like 5Gi/,
  )
  t.match(undeletion(unsized, wanted({ size: '2Gi' })), { volume: { spec: { capacity: { storage: '2Gi' } } } })
})

const annotations = { 'bramble.dev/pools': JSON.stringify([{ id, path: '/mnt/ssd' }]) }
const node = aNode({ name: 'pi-1', labels: { [`pool.bramble.dev/${id}`]: '' }, annotations })
const adopted = (path: string, over: Partial<ForClaim> = {}, of = fleet()) =>
  adoption(node, path, wanted({ size: '1Gi', ...over }), of)

test('a folder outside of the pool becomes a volume of its machine, whose data is never deleted', async (t) => {
  const made = adopted('/var/lib/rancher/k3s/storage/pvc-x_default_db')
  t.match(made, {
    volume: {
      metadata: { name: /^adopted-[0-9a-f]{16}$/ },
      spec: {
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'local-path',
        local: { path: '/var/lib/rancher/k3s/storage/pvc-x_default_db' },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['pi-1'] }] },
            ],
          },
        },
      },
    },
    claim: { spec: { storageClassName: 'local-path', resources: { requests: { storage: '1Gi' } } } },
  })
  t.same(made, adopted('/var/lib/rancher/k3s/storage/pvc-x_default_db'), 'the second call')
  t.notMatch(made, { volume: { metadata: { annotations: {} } } })
})

test('a folder in the pool becomes a volume of the pool', async (t) => {
  t.match(adopted('/mnt/ssd/photos', { present: aStoredClaim('db', { spec: { storageClassName: 'disks' } }) }), {
    volume: {
      metadata: { annotations: { 'bramble.dev/pool': id, 'bramble.dev/has-data': 'true' } },
      spec: { persistentVolumeReclaimPolicy: 'Delete', local: { path: '/mnt/ssd/photos' } },
    },
  })
})

test('what is not a folder of its own is refused, with what to do', async (t) => {
  for (const path of ['photos', '/', '/mnt/../etc', '/mnt//x', '/mnt/x/', '']) {
    t.match(problemOf(adopted(path)), /^Invalid path .*give the absolute path of a folder/, path)
  }
  t.match(
    problemOf(adopted('/mnt/ssd/a/b')),
    /is not a folder of a volume in the pool \/mnt\/ssd: move it to \/mnt\/ssd\/b$/,
  )
  t.match(problemOf(adopted('/mnt/ssd/.bramble')), /move it to \/mnt\/ssd\/bramble$/)
  t.match(problemOf(adopted('/mnt/ssd')), /is not a folder of a volume/)
  const used = fleet({
    volumes: [
      {
        ...{ volume: 'pvc-9', claim: 'shop/web', node: 'pi-1', path: '/srv/web', state: 'Bound' },
        ...{ requestedBytes: 0, pods: [] },
      },
    ],
  })
  t.match(problemOf(adopted('/srv/web', {}, used)), /is the folder of the volume pvc-9 \(claim: shop\/web\)$/)
  t.match(problemOf(adopted('/srv/db', { size: undefined })), /^Give the size/)
})

test('a folder of local-path-provisioner names its claim', async (t) => {
  const folder = 'pvc-3d3f6f0e-6d3c-4c1e-9d0b-0d8e5d8d1f11_home_data-db-0'
  t.equal(claimOfFolder(`/var/lib/rancher/k3s/storage/${folder}`), 'home/data-db-0')
  t.equal(claimOfFolder('/srv/photos'), undefined)
})
