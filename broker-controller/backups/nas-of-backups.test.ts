import { test } from 'tap'
import { smbDriver } from '../../api/storage/shares.ts'
import type { StorageClass } from '../../api/storage/storage-class.ts'
import { aNode } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { placeText } from '../sessions/backup-place.ts'
import { memoryStore } from '../store/memory-store.ts'
import { aStorageClass, aStoredVolume } from '../testing/volume-objects.ts'
import { boundedStorage } from '../usage/storage-board.ts'
import { backupPlace, expectBackupPlace } from './nas-of-backups.ts'

const variable = (name: string) => `$${`{${name}}`}`
const target = { volume: 'nas' }
const secret = { namespace: 'storage', name: 'nas' }
const nfs = { nfs: { server: '10.0.0.5', path: '/backups' } }
const smb = {
  csi: {
    ...{ driver: smbDriver, volumeHandle: 'x', volumeAttributes: { source: '//nas/backups' } },
    nodeStageSecretRef: secret,
  },
}

/** Nodes with the kinds of shares that they mount. `away` is not ready. */
async function fleet(spec: object | undefined, shares: { readonly [node: string]: readonly string[] }) {
  const store = memoryStore({ clock: fakeClock() })
  for (const name of Object.keys(shares))
    await store.create('nodes', aNode({ name, ready: name === 'away' ? 'False' : 'True' }))
  if (spec !== undefined) {
    const { metadata: _, spec: usual, ...volume } = aStoredVolume('nas')
    const { hostPath: __, ...rest } = usual ?? {}
    await store.create('persistentvolumes', { ...volume, metadata: { name: 'nas' }, spec: { ...rest, ...spec } })
  }
  const reportOf = (node: string) => boundedStorage({ done: [], refused: [], shares: [...(shares[node] ?? [])] }).report
  return { store, storage: { reportOf } }
}

test('a folder of a node is where it is', async (t) => {
  const place = { node: 'pi-2', path: '/mnt' }
  t.same(await backupPlace(place, 'pi-1', await fleet(undefined, {})), place)
  t.equal(placeText(place), 'pi-2:/mnt')
})

test('the node of the volume mounts the NAS if it can, else another one that is ready', async (t) => {
  const shares = { 'pi-1': ['nfs'], 'pi-2': ['nfs', 'smb'], 'pi-0': ['smb'], away: ['nfs'] }
  const needs = await fleet(nfs, shares)
  const share = { kind: 'nfs', server: '10.0.0.5', path: '/backups' }
  t.same(await backupPlace(target, 'pi-2', needs), { node: 'pi-2', path: 'pv/nas', nas: { share } })
  t.match(await backupPlace(target, 'pi-0', needs), { node: 'pi-1' })
  t.match(await backupPlace(target, 'away', needs), { node: 'pi-1' })
  t.match(await backupPlace(target, undefined, needs), { node: 'pi-1' })
  t.equal(placeText(await expectBackupPlace(target, undefined, needs)), 'pv/nas')
})

test('the user of a share goes with the session, and with nothing that is kept', async (t) => {
  const needs = await fleet(smb, { 'pi-1': ['smb'] })
  const missing = 'secret "storage/nas" of pv/nas not found'
  t.same(await backupPlace(target, undefined, needs), { problem: missing, waits: false })
  const data = { username: 'YWRh', password: 'eA==', other: 'bm8=' }
  await needs.store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: secret, data })
  t.same(await backupPlace(target, undefined, needs), {
    ...{ node: 'pi-1', path: 'pv/nas' },
    nas: {
      share: { kind: 'smb', server: 'nas', path: '/backups' },
      secret: { username: 'YWRh', password: 'eA==' },
    },
  })
})

test('a volume that is not there, is not on a NAS, or that no node can mount has no place', async (t) => {
  const problem = async (spec: object | undefined, shares: { readonly [node: string]: readonly string[] }) => {
    const needs = await fleet(spec, shares)
    await t.rejects(expectBackupPlace(target, undefined, needs))
    return backupPlace(target, undefined, needs)
  }
  t.match(await problem(undefined, { 'pi-1': ['nfs'] }), { problem: /"nas" for backups does not exist/, waits: false })
  t.match(await problem({ hostPath: { path: '/x' } }, { 'pi-1': ['nfs'] }), {
    problem: /is not on a NAS/,
    waits: false,
  })
  t.match(await problem(nfs, { 'pi-1': ['smb'], away: ['nfs'] }), {
    problem: 'no node that is ready can mount pv/nas: install the package nfs-common on one',
    waits: true,
  })
})

test('the folder of a class is on its share, where no claim can have one', async (t) => {
  const needs = await fleet(undefined, { 'pi-1': ['nfs', 'smb'] })
  const placeOf = async (name: string, made: Pick<StorageClass, 'provisioner'> & Partial<StorageClass>) => {
    const { metadata: _, ...rest } = aStorageClass(name, made)
    await needs.store.create('storageclasses', { ...rest, metadata: { name } })
    return backupPlace({ storageClass: name }, 'pi-1', needs)
  }
  const parameters = { server: '10.0.0.5', share: '/export/', subDir: variable('pvc.name'), onDelete: 'trash' }
  const nfsClass = { provisioner: 'bramble.dev/nfs', mountOptions: ['nfsvers=4.1'], parameters }
  t.same(await placeOf('nas', nfsClass), {
    ...{ node: 'pi-1', path: 'class/nas' },
    nas: {
      share: {
        ...{ kind: 'nfs', server: '10.0.0.5', root: '/export', path: '/export/.bramble/backups' },
        mountOptions: ['nfsvers=4.1'],
      },
    },
  })
  t.match(await placeOf('whole', { ...nfsClass, parameters: { ...parameters, share: '/' } }), {
    nas: { share: { root: '/', path: '/.bramble/backups' } },
  })
  const smbParameters = (namespace: string) => ({
    ...{ source: '//nas/fleet', 'csi.storage.k8s.io/node-stage-secret-name': 'nas' },
    'csi.storage.k8s.io/node-stage-secret-namespace': namespace,
  })
  const data = { username: 'YWRh', password: 'eA==' }
  await needs.store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: secret, data })
  t.match(await placeOf('smb', { provisioner: 'bramble.dev/smb', parameters: smbParameters('storage') }), {
    nas: {
      share: { kind: 'smb', server: 'nas', root: '/fleet', path: '/fleet/.bramble/backups' },
      secret: data,
    },
  })
  const perClaim = { provisioner: 'bramble.dev/smb', parameters: smbParameters(variable('pvc.namespace')) }
  const problems = [
    [await placeOf('per-claim', perClaim), /"per-claim" for backups has a Secret for each claim/],
    [await placeOf('local', { provisioner: 'bramble.dev/local-path' }), /"local" for backups is not on a NAS/],
    [await placeOf('wrong', { provisioner: 'bramble.dev/nfs' }), /cannot be used: the parameter server is missing/],
    [await backupPlace({ storageClass: 'none' }, undefined, needs), /"none" for backups does not exist/],
  ] as const
  for (const [found, problem] of problems) t.match(found, { problem, waits: false })
})
