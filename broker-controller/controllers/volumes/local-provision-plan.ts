/** What the provisioner of pools does for a claim that asks it for a volume. Pure. */
import { join } from 'node:path/posix'
import type { Node } from '../../../api/node.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import {
  labelledPools,
  localProvisioner,
  type Pool,
  poolAnnotation,
  poolLabel,
  reportedPools,
  volumeFolder,
} from '../../../api/storage/pools.ts'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { trashAnnotation, trashParameter, trashProblem } from '../../../api/storage/trash-time.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import type { StoredClaim } from './bind-writes.ts'

export type ProvisionPlan =
  | { readonly plan: 'nothing' }
  | { readonly plan: 'create'; readonly volume: PersistentVolume }
  /** `chooseAgain`: another node may do; the scheduler chooses one. */
  | { readonly plan: 'refuse'; readonly message: string; readonly chooseAgain: boolean }

export type ProvisionFacts = {
  readonly claim: StoredClaim
  readonly storageClass: StorageClass | undefined
  readonly node: (name: string) => Node | undefined
}

const nothing: ProvisionPlan = { plan: 'nothing' }
const supportedModes = ['ReadWriteOnce', 'ReadWriteOncePod']

/** The binder has asked for a volume by annotation, and the scheduler has chosen the node. */
export function planProvision({ claim, storageClass, node }: ProvisionFacts): ProvisionPlan {
  const { annotations = {}, deletionTimestamp } = claim.metadata
  const spec = claim.spec ?? {}
  const isAsked = annotations[volumeAnnotations.provisioner] === localProvisioner
  if (!isAsked || deletionTimestamp !== undefined || (spec.volumeName ?? '') !== '') return nothing
  if (storageClass === undefined || storageClass.provisioner !== localProvisioner) return nothing
  const problem = claimProblem(spec) ?? trashProblem(storageClass.parameters ?? {})
  if (problem !== undefined) return { plan: 'refuse', message: problem, chooseAgain: false }
  const selected = annotations[volumeAnnotations.selectedNode] ?? ''
  if (selected === '') {
    const message = `no node was selected: the class ${storageClass.metadata.name} needs volumeBindingMode WaitForFirstConsumer`
    return { plan: 'refuse', message, chooseAgain: false }
  }
  const place = node(selected)
  const pool = place && poolOf(place)
  if (pool === undefined) {
    return { plan: 'refuse', message: `node "${selected}" has no pool for volumes`, chooseAgain: true }
  }
  return { plan: 'create', volume: volumeFor(claim, storageClass, pool) }
}

function claimProblem({
  accessModes = [],
  dataSource,
  dataSourceRef,
  selector,
  volumeMode,
}: NonNullable<StoredClaim['spec']>) {
  if (dataSource !== undefined || dataSourceRef !== undefined) {
    return `plugin "${localProvisioner}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`
  }
  if (selector !== undefined) return 'claim.Spec.Selector is not supported'
  if (volumeMode === 'Block') return 'volumes of a pool are folders: volumeMode Block is not supported'
  const other = accessModes.find((mode) => !supportedModes.includes(mode))
  return other && `volumes of a pool are on one node: access mode ${other} is not supported`
}

/** Reported by the node, and given to it. */
function poolOf(node: Node): Pool | undefined {
  const given = new Set(labelledPools(node))
  return reportedPools(node).find(({ id }) => given.has(id))
}

function volumeFor(claim: StoredClaim, storageClass: StorageClass, { id, path }: Pool): PersistentVolume {
  const { namespace = '', name, uid } = claim.metadata
  const volumeName = `pvc-${uid}`
  const trash = storageClass.parameters?.[trashParameter]
  const inPool = { key: poolLabel(id), operator: 'Exists' }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: volumeName,
      finalizers: [volumeDataFinalizer],
      annotations: {
        [volumeAnnotations.provisionedBy]: localProvisioner,
        [poolAnnotation]: id,
        ...(trash !== undefined && { [trashAnnotation]: trash }),
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
      local: { path: join(path, volumeFolder(namespace, name, volumeName)) },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [inPool] }] } },
    },
  }
}
