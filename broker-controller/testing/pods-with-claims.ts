/** Pods that use claims, and a cluster with volumes as the scheduler sees it. */
import type { PodSpec } from '../../api/pod.ts'
import type { NodeOverrides } from '../../api/testing/builders.ts'
import type { ClusterCache } from '../scheduler/cluster.ts'
import type { KnownClaim, KnownVolume } from '../scheduler/volumes/volume-cache.ts'
import type { StoredObject } from '../store/store.ts'
import { aCluster, type Bound, hostKey } from './scheduling.ts'
import { aStorageClass } from './volume-objects.ts'

/** The volumes of a pod that uses these claims. */
export function using(...claims: readonly string[]): Partial<PodSpec> {
  return { volumes: claims.map((claimName) => ({ name: `of-${claimName}`, persistentVolumeClaim: { claimName } })) }
}

/** The part of a volume that is on these machines only. */
export function onNodes(...values: readonly string[]): Pick<NonNullable<KnownVolume['spec']>, 'nodeAffinity'> {
  const matchExpressions = [{ key: hostKey, operator: 'In' as const, values }]
  return { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } }
}

/** Volumes of `late` are made, or chosen, when the node is known; those of `fixed` are made by persons. */
export function delayedClasses(): readonly StoredObject<'storageclasses'>[] {
  const volumeBindingMode = 'WaitForFirstConsumer'
  return [
    storedClass('late', { volumeBindingMode }),
    storedClass('fixed', { volumeBindingMode, provisioner: 'kubernetes.io/no-provisioner' }),
    storedClass('now', {}),
  ]
}

export function storedClass(name: string, more: Parameters<typeof aStorageClass>[1]): StoredObject<'storageclasses'> {
  const { metadata: _, ...one } = aStorageClass(name, more)
  const metadata = { name, uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' }
  return { ...one, metadata }
}

export type VolumeObjects = {
  readonly nodes?: readonly NodeOverrides[]
  readonly bound?: readonly Bound[]
  readonly claims?: readonly KnownClaim[]
  readonly volumes?: readonly KnownVolume[]
  readonly classes?: readonly StoredObject<'storageclasses'>[]
}

/** Nodes `a` and `b` and the classes of `delayedClasses`, unless others are given. */
export function aClusterWithVolumes(objects: VolumeObjects): ClusterCache {
  const { nodes = [{ name: 'a' }, { name: 'b' }], bound, claims = [], volumes = [] } = objects
  const known = aCluster(nodes, bound)
  for (const claim of claims) known.volumes.putClaim(`${claim.metadata.namespace}/${claim.metadata.name}`, claim)
  for (const volume of volumes) known.volumes.putVolume(volume.metadata.name, volume)
  for (const one of objects.classes ?? delayedClasses()) known.volumes.putStorageClass(one.metadata.name, one)
  return known
}
