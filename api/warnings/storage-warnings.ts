/** Warnings about volumes, claims and their classes (pkg/api/persistentvolume/util.go, persistentvolumeclaim/util.go, storage/util.go). */
import { formatQuantity, parseQuantity } from '../quantity.ts'
import type { CSIStorageCapacity } from '../storage/csi-storage-capacity.ts'
import type { PersistentVolume } from '../storage/persistent-volume.ts'
import { type PersistentVolumeClaim, storageClassAnnotation } from '../storage/persistent-volume-claim.ts'
import { localProvisioner, poolProblem } from '../storage/pools.ts'
import type { StorageClass } from '../storage/storage-class.ts'
import { trashProblem } from '../storage/trash-time.ts'
import { deprecatedNodeLabel, nodeTermWarnings } from './node-label-warnings.ts'

const deprecatedClass = 'deprecated since v1.8; use "storageClassName" attribute instead'
const deprecatedAnnotations: readonly (readonly [annotation: string, message: string])[] = [
  [storageClassAnnotation, deprecatedClass],
  ['volume.beta.kubernetes.io/mount-options', 'deprecated since v1.31; use "mountOptions" attribute instead'],
]

/** Sources whose plugin is gone, under the name that warnings give them. */
const deprecatedSources = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
] as const

/** Warnings for the author of a volume. */
export function persistentVolumeWarnings({ metadata, spec = {} }: PersistentVolume): readonly string[] {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return [
    ...deprecatedAnnotations.flatMap(([annotation, message]) =>
      Object.hasOwn(metadata.annotations ?? {}, annotation) ? [`metadata.annotations[${annotation}]: ${message}`] : [],
    ),
    ...(spec.persistentVolumeReclaimPolicy === 'Recycle'
      ? [
          'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
        ]
      : []),
    ...terms.flatMap((term, index) => nodeTermWarnings(`spec.nodeAffinity.required.nodeSelectorTerms[${index}]`, term)),
    ...deprecatedSources.flatMap(([source, name, message]) =>
      spec[source] === undefined ? [] : [`spec.${name}: ${message}`],
    ),
  ]
}

/** Warnings for the author of a claim. */
export function claimWarnings({ metadata, spec = {} }: PersistentVolumeClaim): readonly string[] {
  const { requests = {}, limits = {} } = spec.resources ?? {}
  const isDeprecated = Object.hasOwn(metadata.annotations ?? {}, storageClassAnnotation)
  return [
    ...(isDeprecated ? [`metadata.annotations[${storageClassAnnotation}]: ${deprecatedClass}`] : []),
    ...fractionWarning('spec.resources.requests', requests),
    ...fractionWarning('spec.resources.limits', limits),
  ]
}

function fractionWarning(at: string, amounts: { readonly [resource: string]: string | number }): readonly string[] {
  const amount = parseQuantity(amounts['storage'] ?? 0)
  if (amount.nano % 1_000_000_000n === 0n) return []
  return [`${at}[storage]: fractional byte value "${formatQuantity(amount)}" is invalid, must be an integer`]
}

/** Warnings for the author of a capacity: the topology is matched with labels of nodes (GetWarningsForNodeSelector). */
export function storageCapacityWarnings({ nodeTopology = {} }: CSIStorageCapacity): readonly string[] {
  const { matchLabels = {}, matchExpressions = [] } = nodeTopology
  return [
    ...nodeTermWarnings('nodeTopology', { matchExpressions }),
    ...Object.keys(matchLabels).flatMap((label) => {
      const message = deprecatedNodeLabel(label)
      return message === undefined ? [] : [`nodeTopology.matchLabels.${label}: ${message}`]
    }),
  ]
}

/** Warnings for the author of a class. */
export function storageClassWarnings({
  provisioner,
  parameters,
  allowedTopologies = [],
}: StorageClass): readonly string[] {
  const isLocal = provisioner === localProvisioner
  const problem = isLocal ? (trashProblem(parameters ?? {}) ?? poolProblem(parameters ?? {})) : undefined
  const deprecated = allowedTopologies.flatMap(({ matchLabelExpressions = [] }, term) =>
    matchLabelExpressions.flatMap(({ key }, index) => {
      const message = deprecatedNodeLabel(key)
      return message === undefined ? [] : [`allowedTopologies[${term}].matchLabelExpressions[${index}].key: ${message}`]
    }),
  )
  return [...(problem === undefined ? [] : [`parameters: ${problem}. No volumes are made`]), ...deprecated]
}
