import { test } from 'tap'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { aStorageClass, aStoredClaim } from '../../testing/volume-objects.ts'
import { planShareProvision } from './share-provision-plan.ts'

const nfsClass = aStorageClass('nas', {
  ...{ provisioner: 'bramble.dev/nfs', mountOptions: ['nfsvers=4.1'] },
  parameters: { server: '10.0.0.5', share: '/export/' },
})
const variable = (name: string) => `$${`{${name}}`}`
const claimOf = (provisioner: string, spec: object = {}) =>
  aStoredClaim('data', { metadata: { annotations: { 'volume.kubernetes.io/storage-provisioner': provisioner } }, spec })
const plan = (storageClass: StorageClass = nfsClass, spec: object = {}) =>
  planShareProvision({ claim: claimOf(storageClass.provisioner, spec), storageClass }, 'store-1')
const withParameters = (parameters: { readonly [name: string]: string }) =>
  plan({ ...nfsClass, parameters: { ...nfsClass.parameters, ...parameters } })

test('a claim gets a folder of its own on an NFS share', async (t) => {
  t.match(plan(), {
    plan: 'create',
    volume: {
      metadata: {
        name: 'pvc-uid-data',
        annotations: { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs', 'bramble.dev/share-root': '/export' },
      },
      spec: {
        claimRef: { namespace: 'default', name: 'data', uid: 'uid-data' },
        mountOptions: ['nfsvers=4.1'],
        nfs: { server: '10.0.0.5', path: '/export/default/data' },
      },
    },
  })
  const named = withParameters({
    subDir: ['pvc.metadata.namespace', 'pvc.metadata.name', 'pv.name'].map(variable).join('-'),
  })
  t.match(named, { volume: { spec: { nfs: { path: '/export/default-data-pvc-uid-data' } } } })
  t.match(withParameters({ share: '/' }), {
    volume: { metadata: { annotations: { 'bramble.dev/share-root': '/' } }, spec: { nfs: { path: '/default/data' } } },
  })
})

test('a claim gets a folder of its own on an SMB share, with the Secret of the class', async (t) => {
  const secret = 'csi.storage.k8s.io/node-stage-secret-'
  const parameters = {
    source: '//nas/photos',
    [`${secret}name`]: 'nas',
    [`${secret}namespace`]: variable('pvc.namespace'),
  }
  t.match(plan(aStorageClass('nas', { provisioner: 'bramble.dev/smb', parameters })), {
    volume: {
      metadata: { annotations: { 'bramble.dev/share-root': '/photos' } },
      spec: {
        csi: {
          driver: 'smb.bramble.dev',
          volumeAttributes: { source: '//nas/photos', subDir: 'default/data' },
          nodeStageSecretRef: { name: 'nas', namespace: 'default' },
        },
      },
    },
  })
})

test('a volume remembers what becomes of its folder, and the store that may order it', async (t) => {
  for (const onDelete of ['trash', 'delete']) {
    t.match(withParameters({ onDelete }), {
      volume: { metadata: { annotations: { 'bramble.dev/on-delete': onDelete, 'bramble.dev/store': 'store-1' } } },
    })
  }
  for (const kept of [plan(), withParameters({ onDelete: 'retain' })]) {
    const annotations = kept.plan === 'create' ? (kept.volume.metadata.annotations ?? {}) : {}
    t.same(Object.keys(annotations), ['pv.kubernetes.io/provisioned-by', 'bramble.dev/share-root'])
  }
  const smb = plan(
    aStorageClass('nas', { provisioner: 'bramble.dev/smb', parameters: { source: '//nas/a', onDelete: 'trash' } }),
  )
  t.match(smb, { plan: 'refuse', message: 'onDelete "trash" is for NFS: a folder of an SMB share stays (retain)' })
})

test('what a share cannot do is refused with the reason', async (t) => {
  const message = (of: ReturnType<typeof plan>) => (of.plan === 'refuse' ? of.message : of.plan)
  t.equal(message(withParameters({ archive: 'x' })), 'invalid parameter "archive" in storage class')
  t.match(message(withParameters({ onDelete: 'erase' })), /^onDelete "erase" is not one of trash, delete, retain$/)
  t.match(message(withParameters({ server: '' })), /server is missing/)
  t.match(message(withParameters({ share: 'export' })), /not an absolute path/)
  for (const subDir of [
    '../x',
    '/x',
    'a/../b',
    '.bramble',
    'a/.b',
    variable('pvc.labels'),
    'a,b',
    'a//b',
    'x'.repeat(600),
  ]) {
    t.match(message(withParameters({ subDir })), /is not a folder below the share$/, subDir)
  }
  t.match(message(plan(nfsClass, { volumeMode: 'Block' })), /Block is not supported/)
  t.match(message(plan(nfsClass, { dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } })), /datasource$/)
  t.equal(message(plan(nfsClass, { volumeName: 'pv' })), 'nothing')
  t.equal(message(plan(aStorageClass('other', { provisioner: 'toString' }))), 'nothing')
  t.equal(
    message(plan(aStorageClass('nas', { provisioner: 'bramble.dev/smb', parameters: { source: 'nas' } }))),
    'the parameter source is not //SERVER/SHARE',
  )
})
