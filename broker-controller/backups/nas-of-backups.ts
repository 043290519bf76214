/** Which node mounts the NAS of a folder for backups, and with which user. */
import { type BackupTarget, targetText } from '../../api/backups/backup-target.ts'
import { folderOfClass, type NasShare, shareOfVolume } from '../../api/storage/shares.ts'
import type { BackupPlace } from '../sessions/backup-place.ts'
import type { Store } from '../store/store.ts'
import type { StorageBoard } from '../usage/storage-board.ts'

export type BackupPlaceNeeds = {
  readonly store: Pick<Store, 'get' | 'list'>
  /** What nodes report; undefined: none do. */
  readonly storage?: Pick<StorageBoard, 'reportOf'>
}

/** `waits`: it may be there later, without a person. */
export type NoBackupPlace = { readonly problem: string; readonly waits: boolean }

/** On the share of a class, beside the folders of claims, which have no names that begin with a dot. */
const folderOnClass = '.bramble/backups'
const packages: { readonly [kind in NasShare['kind']]: string } = { nfs: 'nfs-common', smb: 'cifs-utils' }

/** `near`: the node that mounts the NAS if it can. The user of the NAS is read now. */
export async function backupPlace(
  target: BackupTarget,
  near: string | undefined,
  { store, storage }: BackupPlaceNeeds,
): Promise<BackupPlace | NoBackupPlace> {
  if ('node' in target) return target
  const path = targetText(target)
  const share = await shareOfTarget(target, store)
  if ('problem' in share) return { problem: share.problem, waits: false }
  const { items } = await store.list('nodes')
  const able = items
    .filter(({ status }) => status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'))
    .map(({ metadata }) => metadata.name)
    .flatMap((name) => (name !== undefined && storage?.reportOf(name)?.shares.includes(share.kind) ? [name] : []))
  const node = able.find((name) => name === near) ?? able.sort()[0]
  if (node === undefined) {
    const problem = `no node that is ready can mount ${path}: install the package ${packages[share.kind]} on one`
    return { problem, waits: true }
  }
  const { secret, ...mounted } = share
  if (secret === undefined) return { node, path, nas: { share: mounted } }
  const found = await store.get('secrets', secret)
  if (found === undefined)
    return { problem: `secret "${secret.namespace}/${secret.name}" of ${path} not found`, waits: false }
  const { username, password, domain } = found.data ?? {}
  const user = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(domain !== undefined && { domain }),
  }
  return { node, path, nas: { share: mounted, secret: user } }
}

async function shareOfTarget(
  target: Exclude<BackupTarget, { readonly node: string }>,
  store: BackupPlaceNeeds['store'],
): Promise<NasShare | { readonly problem: string }> {
  if ('volume' in target) {
    const volume = await store.get('persistentvolumes', { namespace: '', name: target.volume })
    const share = volume && shareOfVolume(volume)
    if (share !== undefined) return share
    const what = volume === undefined ? 'does not exist' : 'is not on a NAS: it has neither nfs nor an SMB share'
    return { problem: `the PersistentVolume "${target.volume}" for backups ${what}` }
  }
  const name = target.storageClass
  const storageClass = await store.get('storageclasses', { namespace: '', name })
  const share = storageClass && folderOfClass(storageClass, folderOnClass)
  if (share !== undefined && !('problem' in share)) return share
  return { problem: `the StorageClass "${name}" for backups ${share === undefined ? 'does not exist' : share.problem}` }
}

/** Rejects with the reason where there is none. */
export async function expectBackupPlace(
  target: BackupTarget,
  near: string | undefined,
  needs: BackupPlaceNeeds,
): Promise<BackupPlace> {
  const place = await backupPlace(target, near, needs)
  if ('problem' in place) throw new Error(place.problem)
  return place
}
