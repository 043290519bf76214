/** What the provisioner of pools does for a claim that asks it for a volume. Pure. */
import { join } from 'node:path/posix'
import type { Node } from '../../../api/node.ts'
import { isTopologyAllowed } from '../../../api/storage/allowed-topologies.ts'
import type { PersistentVolume } from '../../../api/storage/persistent-volume.ts'
import {
  localProvisioner,
  type Pool,
  poolAnnotation,
  poolLabel,
  poolParameter,
  poolProblem,
  poolsForClass,
  poolsOfClass,
  volumeFolder,
} from '../../../api/storage/pools.ts'
import type { StorageClass } from '../../../api/storage/storage-class.ts'
import { trashAnnotation, trashParameter, trashProblem } from '../../../api/storage/trash-time.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { isReady } from '../node-lifecycle/zones.ts'
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
  /** All: a class that binds at once has no node. */
  readonly nodes: () => Iterable<Node>
  /** What is free in a pool of the node, as it was reported; undefined: not since the controller started. */
  readonly freeBytes: (node: string, pool: string) => number | undefined
}

const nothing: ProvisionPlan = { plan: 'nothing' }
const supportedModes = ['ReadWriteOnce', 'ReadWriteOncePod']

/** The binder has asked for a volume by annotation. The scheduler has chosen the node, unless the class binds at once. */
export function planProvision(facts: ProvisionFacts): ProvisionPlan {
  const { claim, storageClass } = facts
  const { annotations = {}, deletionTimestamp } = claim.metadata
  const spec = claim.spec ?? {}
  const isAsked = annotations[volumeAnnotations.provisioner] === localProvisioner
  if (!isAsked || deletionTimestamp !== undefined || (spec.volumeName ?? '') !== '') return nothing
  if (storageClass === undefined || storageClass.provisioner !== localProvisioner) return nothing
  const { parameters = {} } = storageClass
  const problem = claimProblem(spec) ?? trashProblem(parameters) ?? poolProblem(parameters)
  if (problem !== undefined) return { plan: 'refuse', message: problem, chooseAgain: false }
  const selected = annotations[volumeAnnotations.selectedNode] ?? ''
  // Taken back: the scheduler selects another node.
  if (selected === '' && storageClass.volumeBindingMode === 'WaitForFirstConsumer') return nothing
  const pool = selected === '' ? emptiestPool(storageClass, facts) : poolOfNode(selected, storageClass, facts)
  if (pool !== undefined) return { plan: 'create', volume: volumeFor(claim, storageClass, pool) }
  return { plan: 'refuse', message: noPool(selected, storageClass, facts), chooseAgain: selected !== '' }
}

function noPool(selected: string, storageClass: StorageClass, { node }: ProvisionFacts): string {
  const wanted = storageClass.parameters?.[poolParameter]
  const what = wanted === undefined ? 'pool for volumes' : `pool ${JSON.stringify(wanted)}`
  if (selected === '') return `no ready node that the class allows has a ${what} with more free than its reserve`
  const found = node(selected)
  const isFull = found !== undefined && poolsOfClass(found, storageClass).length > 0
  return `node "${selected}" has no ${what}${isFull ? ' with more free than its reserve' : ''}`
}

function poolOfNode(name: string, storageClass: StorageClass, { node }: ProvisionFacts): Pool | undefined {
  const found = node(name)
  return found && poolsForClass(found, storageClass)[0]
}

/** The pool with the most free space on the nodes that the class allows and that accept pods. */
function emptiestPool(storageClass: StorageClass, { nodes, freeBytes }: ProvisionFacts): Pool | undefined {
  let best: { readonly pool: Pool; readonly free: number } | undefined
  for (const node of nodes()) {
    const { name = '', labels = {} } = node.metadata
    if (!isReady(node) || node.spec?.unschedulable || !isTopologyAllowed(storageClass, labels)) continue
    for (const pool of poolsForClass(node, storageClass)) {
      const free = freeBytes(name, pool.id) ?? 0
      if (best === undefined || free > best.free || (free === best.free && pool.id < best.pool.id))
        best = { pool, free }
    }
  }
  return best?.pool
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
