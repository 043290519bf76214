/**
 * The annotations and finalizers by which the binder, the scheduler, provisioners and resizers agree about volumes
 * (component-helpers/storage/volume/helpers.go, pkg/volume/util/finalizer.go). An annotation counts when it is there, whatever its value.
 */
export const volumeAnnotations = {
  /** On a claim: its volume and it named each other once. */
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  /** On a claim or a volume: not a person chose the other one. */
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  /** On a claim that waits for its first consumer: the node where the scheduler wants its volume to be provisioned. */
  selectedNode: 'volume.kubernetes.io/selected-node',
  /** On a claim: who is asked to provision its volume. */
  provisioner: 'volume.kubernetes.io/storage-provisioner',
  betaProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  /** On a volume: who made it, and deletes it. */
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  migratedTo: 'pv.kubernetes.io/migrated-to',
  /** On a volume that grows: its capacity before. */
  preResizeCapacity: 'volume.alpha.kubernetes.io/pre-resize-capacity',
} as const

export const volumeFinalizers = {
  claim: 'kubernetes.io/pvc-protection',
  volume: 'kubernetes.io/pv-protection',
} as const

/** How `volumesInUse` of a node names a volume of a CSI driver (GetUniqueVolumeName in pkg/volume/util). */
export function csiVolumeName({ driver, handle }: { readonly driver: string; readonly handle: string }): string {
  return `kubernetes.io/csi/${driver}^${handle}`
}
