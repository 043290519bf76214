/** What the provisioners of shares do for a claim that asks one for a volume: a folder of its own on the share. Pure. */
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import {
  onDeleteAnnotation,
  shareClassProblem,
  shareKindOf,
  shareRootAnnotation,
  smbDriver,
  storeAnnotation,
} from '../../../api/storage/shares.ts'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { withoutEnd } from '../../../api/text/without-end.ts'
import type { StoredClaim } from './bind-writes.ts'
import type { ProvisionFacts, ProvisionPlan } from './local-provision-plan.ts'

const longestFolder = 512

type Parameters = { readonly [name: string]: string }
type Made = Pick<NonNullable<PersistentVolume['spec']>, 'nfs' | 'csi'> & { readonly root: string }

/** `store`: in which the volume is made. */
export function planShareProvision(
  { claim, storageClass }: Pick<ProvisionFacts, 'claim' | 'storageClass'>,
  store: string,
): ProvisionPlan {
  const { annotations = {}, deletionTimestamp } = claim.metadata
  const provisioner = annotations[volumeAnnotations.provisioner] ?? ''
  const kind = shareKindOf(provisioner)
  if (kind === undefined || deletionTimestamp !== undefined || claim.spec?.volumeName) return { plan: 'nothing' }
  if (storageClass?.provisioner !== provisioner) return { plan: 'nothing' }
  const refuse = (message: string): ProvisionPlan => ({ plan: 'refuse', message, chooseAgain: false })
  const { parameters = {} } = storageClass
  const problem = claimProblem(provisioner, claim) ?? shareClassProblem(kind, parameters)
  if (problem !== undefined) return refuse(problem)
  const folder = folderFor(claim, parameters['subDir'])
  if (!isFolder(folder)) return refuse(`the subDir ${JSON.stringify(folder)} is not a folder below the share`)
  const made = kind === 'nfs' ? onNFS(parameters, folder) : onSMB(parameters, folder, claim)
  const { onDelete = 'retain' } = parameters
  const fate: Parameters = onDelete === 'retain' ? {} : { [onDeleteAnnotation]: onDelete, [storeAnnotation]: store }
  return { plan: 'create', volume: volumeOn(made, claim, storageClass, fate) }
}

function claimProblem(provisioner: string, { spec = {} }: StoredClaim): string | undefined {
  if (spec.dataSource !== undefined || spec.dataSourceRef !== undefined) {
    return `plugin "${provisioner}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`
  }
  if (spec.selector !== undefined) return 'claim.Spec.Selector is not supported'
  return spec.volumeMode === 'Block' ? 'volumes of a share are folders: volumeMode Block is not supported' : undefined
}

function folderFor(claim: StoredClaim, subDir: string | undefined): string {
  const { namespace = '', name } = claim.metadata
  return subDir ? filledIn(subDir, claim) : `${namespace}/${name}`
}

/** Names of csi-driver-nfs, and shorter ones. A name that is not one of these stays, and is refused. */
function filledIn(template: string, { metadata: { namespace = '', name, uid } }: StoredClaim): string {
  return template
    .replaceAll(/\$\{pvc\.(metadata\.)?namespace\}/g, () => namespace)
    .replaceAll(/\$\{pvc\.(metadata\.)?name\}/g, () => name)
    .replaceAll(/\$\{pv\.(metadata\.)?name\}/g, () => `pvc-${uid}`)
}

/** Names that begin with a dot are kept for records. */
function isFolder(folder: string): boolean {
  const isPlain = /^[\w-][\w. -]*(\/[\w-][\w. -]*)*$/.test(folder)
  return isPlain && folder.length <= longestFolder
}

function onNFS({ server = '', share = '' }: Parameters, folder: string): Made {
  const root = withoutEnd(share, '/')
  return { root: root || '/', nfs: { server, path: `${root}/${folder}` } }
}

function onSMB({ source: given = '', ...parameters }: Parameters, folder: string, claim: StoredClaim): Made {
  const source = withoutEnd(given, '/')
  const [name, namespace] = ['name', 'namespace'].map((part) =>
    filledIn(parameters[`csi.storage.k8s.io/node-stage-secret-${part}`] ?? '', claim),
  )
  return {
    root: source.replace(/^\/\/[^/]+/, ''),
    csi: {
      ...{ driver: smbDriver, volumeHandle: `${source}/${folder}`, volumeAttributes: { source, subDir: folder } },
      ...(name && { nodeStageSecretRef: { name, namespace: namespace || (claim.metadata.namespace ?? '') } }),
    },
  }
}

function volumeOn(
  { root, ...source }: Made,
  claim: StoredClaim,
  storageClass: StorageClass,
  annotations: Parameters,
): PersistentVolume {
  const { namespace = '', name, uid } = claim.metadata
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: `pvc-${uid}`,
      annotations: {
        [volumeAnnotations.provisionedBy]: storageClass.provisioner,
        [shareRootAnnotation]: root,
        ...annotations,
      },
    },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.['storage'] ?? '0' },
      accessModes: claim.spec?.accessModes ?? [],
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      storageClassName: storageClass.metadata.name ?? '',
      volumeMode: 'Filesystem',
      ...(storageClass.mountOptions && { mountOptions: storageClass.mountOptions }),
      ...source,
    },
  }
}
