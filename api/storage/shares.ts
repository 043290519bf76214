/** Folders of a NAS, as PersistentVolumes and pods name them and nodes mount them. */
import { bool, type Described, list, object, oneOf, optional, text } from '../schema.ts'
import type { PersistentVolume } from './persistent-volume.ts'
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
const mountOptionsAnnotation = 'volume.beta.kubernetes.io/mount-options'

/** The volume was made for a claim by one of the provisioners of shares. */
export function isOnClassShare({ metadata }: Pick<PersistentVolume, 'metadata'>): boolean {
  return Object.hasOwn(shareProvisioners, metadata.annotations?.[volumeAnnotations.provisionedBy] ?? '')
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
