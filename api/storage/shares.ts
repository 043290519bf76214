/** Folders of a NAS, as PersistentVolumes and pods name them and nodes mount them. */
import { bool, type Described, list, object, oneOf, optional, text } from '../schema.ts'
import { withoutEnd } from '../text/without-end.ts'
import type { PersistentVolume } from './persistent-volume.ts'
import type { StorageClass } from './storage-class.ts'
import { volumeAnnotations } from './volume-names.ts'

const ShareSecretSchema = object({ namespace: text, name: text })

export const ShareSchema = object({
  kind: oneOf('nfs', 'smb'),
  server: text,
  /** Absolute. The first part of an SMB share is its name. */
  path: text,
  /** The part of the path that must be there. The folders below it are made at the first mount. */
  root: optional(text),
  readOnly: optional(bool),
  mountOptions: optional(list(text)),
  /** The user of an SMB share is in this Secret. */
  secret: optional(ShareSecretSchema),
})
export type NasShare = Described<typeof ShareSchema>

/**
 * The driver of PersistentVolumes on an SMB share. Nodes mount them by themselves: there is no CSI driver to install. Attributes and Secret are
 * those of csi-driver-smb.
 */
export const smbDriver = 'smb.bramble.dev'
/** Provisioners of classes that give each claim a folder on a share. */
export const shareProvisioners: { readonly [provisioner: string]: NasShare['kind'] } = {
  'bramble.dev/nfs': 'nfs',
  'bramble.dev/smb': 'smb',
}
/** On a PersistentVolume of such a class: the path of the share. */
export const shareRootAnnotation = 'bramble.dev/share-root'
/** The same: what becomes of its folder when the volume is deleted. */
export const onDeleteAnnotation = 'bramble.dev/on-delete'
/** The same: the store in which it was made. Nothing is deleted for another one, such as a backup that was restored for a trial. */
export const storeAnnotation = 'bramble.dev/store'
/** On one that is being deleted: the node that moves or deletes its folder. */
export const deletingNodeAnnotation = 'bramble.dev/deleting-node'
export const onDeleteValues = ['trash', 'delete', 'retain'] as const
export type OnDelete = (typeof onDeleteValues)[number]
/** Parameters of classes: those of csi-driver-nfs and csi-driver-smb. */
const secretParameters = ['csi.storage.k8s.io/node-stage-secret-name', 'csi.storage.k8s.io/node-stage-secret-namespace']
const classParameters: { readonly [Kind in NasShare['kind']]: readonly string[] } = {
  nfs: ['server', 'share', 'subDir', 'onDelete'],
  smb: ['source', 'subDir', 'onDelete', ...secretParameters],
}
const mountOptionsAnnotation = 'volume.beta.kubernetes.io/mount-options'

/** The volume was made for a claim by one of the provisioners of shares. */
export function isOnClassShare({ metadata }: Pick<PersistentVolume, 'metadata'>): boolean {
  return Object.hasOwn(shareProvisioners, metadata.annotations?.[volumeAnnotations.provisionedBy] ?? '')
}

/** undefined: it has no provisioner of shares. */
export function shareKindOf(provisioner: string): NasShare['kind'] | undefined {
  return Object.hasOwn(shareProvisioners, provisioner) ? shareProvisioners[provisioner] : undefined
}

/** undefined: the parameters of a class of this kind name a share. */
export function shareClassProblem(
  kind: NasShare['kind'],
  parameters: NonNullable<StorageClass['parameters']>,
): string | undefined {
  const unknown = Object.keys(parameters).find((name) => !classParameters[kind].includes(name))
  if (unknown !== undefined) return `invalid parameter "${unknown}" in storage class`
  const { onDelete = 'retain', server = '', share = '', source = '' } = parameters
  if (!onDeleteValues.some((value) => value === onDelete))
    return `onDelete "${onDelete}" is not one of ${onDeleteValues.join(', ')}`
  if (kind === 'smb' && onDelete !== 'retain')
    return `onDelete "${onDelete}" is for NFS: a folder of an SMB share stays (retain)`
  if (kind === 'smb') return /^\/\/[^/]+\/[^/]/.test(source) ? undefined : 'the parameter source is not //SERVER/SHARE'
  if (server === '') return 'the parameter server is missing'
  return share.startsWith('/') ? undefined : 'the parameter share is not an absolute path'
}

/** A folder on the share of a class beside those of claims, or why there is none. */
export function folderOfClass(
  {
    provisioner,
    parameters = {},
    mountOptions = [],
  }: Pick<StorageClass, 'provisioner' | 'parameters' | 'mountOptions'>,
  folder: string,
): NasShare | { readonly problem: string } {
  const kind = shareKindOf(provisioner)
  if (kind === undefined)
    return { problem: `is not on a NAS: its provisioner is not ${Object.keys(shareProvisioners).join(' or ')}` }
  const problem = shareClassProblem(kind, parameters)
  if (problem !== undefined) return { problem: `cannot be used: ${problem}` }
  const { server: nfsServer = '', share = '', source = '' } = parameters
  const [, smbServer = '', smbPath = ''] = /^\/\/([^/]+)(\/.*)$/.exec(source) ?? []
  const [server, path] = kind === 'nfs' ? [nfsServer, share] : [smbServer, smbPath]
  const [name = '', namespace = ''] = secretParameters.map((parameter) => parameters[parameter])
  if (name !== '' && (namespace === '' || `${name}${namespace}`.includes('$')))
    return { problem: 'has a Secret for each claim: give its name and namespace without variables' }
  const root = withoutEnd(path, '/')
  return {
    ...{ kind, server, root: root || '/', path: `${root}/${folder}` },
    ...(mountOptions.length > 0 && { mountOptions }),
    ...(name !== '' && { secret: { namespace, name } }),
  }
}

/** What becomes of the folder of a volume on the share of a class. Without the annotation it stays. */
export function onDeleteOf(volume: Pick<PersistentVolume, 'metadata'>): OnDelete {
  const asked = volume.metadata.annotations?.[onDeleteAnnotation]
  const known = isOnClassShare(volume) ? onDeleteValues.find((value) => value === asked) : undefined
  return known ?? 'retain'
}

/**
 * The folders of the share that are made at the first mount: below `root`, which is mounted for that as a share of its own. undefined: the
 * share must be there as it is.
 */
export function madeFolder<Share extends Pick<NasShare, 'path' | 'root'>>({
  root,
  ...share
}: Share): { readonly root: Omit<Share, 'root'> & { readonly path: string }; readonly folder: string } | undefined {
  const start = root && withoutEnd(root, '/')
  if (root === undefined || start === undefined || !share.path.startsWith(`${start}/`)) return undefined
  return { root: { ...share, path: root }, folder: share.path.slice(start.length + 1) }
}

/** Both are on the same share, and one is the folder of the other, or has it. */
export function haveCommonFolder(one: NasShare, other: NasShare): boolean {
  const [a, b] = [one, other].map(({ path }) => `${withoutEnd(path, '/')}/`)
  const isSameServer = one.kind === other.kind && one.server.toLowerCase() === other.server.toLowerCase()
  return isSameServer && a !== undefined && b !== undefined && (a.startsWith(b) || b.startsWith(a))
}

/** undefined: the volume is not on a share. What is wrong with it is found by the node (`share-mount.ts`). */
export function shareOfVolume({ metadata, spec = {} }: PersistentVolume): NasShare | undefined {
  const { annotations = {} } = metadata
  const annotated = annotations[mountOptionsAnnotation]
  const root = isOnClassShare({ metadata }) ? annotations[shareRootAnnotation] : undefined
  const made = root !== undefined && { root }
  const mountOptions = annotated === undefined ? (spec.mountOptions ?? []) : annotated.split(',')
  const options = mountOptions.length > 0 && { mountOptions }
  const { nfs, csi } = spec
  if (nfs !== undefined) {
    const { server, path, readOnly } = nfs
    return { kind: 'nfs', server, path, ...made, ...(readOnly && { readOnly }), ...options }
  }
  if (csi?.driver !== smbDriver) return undefined
  const { readOnly, volumeAttributes = {}, nodeStageSecretRef: secret } = csi
  const [, server = '', share = ''] = /^\/\/([^/]*)(\/.*)?$/.exec(volumeAttributes['source'] ?? '') ?? []
  const { subDir = '' } = volumeAttributes
  return {
    ...{ kind: 'smb', server, path: `${share}${subDir === '' ? '' : `/${subDir}`}` },
    ...made,
    ...(readOnly && { readOnly }),
    ...options,
    ...(secret?.name && { secret: { namespace: secret.namespace ?? '', name: secret.name } }),
  }
}
