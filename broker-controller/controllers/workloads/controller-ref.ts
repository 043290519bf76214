/** Which controller an object belongs to, and what a controller does about one that it finds. */
import type { ObjectMeta, OwnerReference } from '../../../api/meta.ts'
import type { AnyStored } from '../../store/store.ts'

export function controllerOf({
  metadata,
}: {
  readonly metadata: Pick<ObjectMeta, 'ownerReferences'>
}): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/** The reference in what this object controls (NewControllerRef, apimachinery meta/v1/controller_ref.go). */
export function controllerReference({ apiVersion, kind, metadata }: AnyStored): OwnerReference {
  const { name, uid } = metadata
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}

export type ClaimStep = 'owned' | 'adopt' | 'release' | 'ignore'

type Claimant = { readonly metadata: Pick<AnyStored['metadata'], 'uid' | 'namespace' | 'deletionTimestamp'> }
type Claimable = { readonly metadata: Pick<ObjectMeta, 'namespace' | 'deletionTimestamp' | 'ownerReferences'> }

/** `matches`: the selector of the owner selects it (ClaimObject in pkg/controller/controller_ref_manager.go). */
export function claimStep(owner: Claimant, object: Claimable, matches: boolean): ClaimStep {
  const controller = controllerOf(object)
  const isLeaving = owner.metadata.deletionTimestamp !== undefined
  if (controller !== undefined) {
    if (controller.uid !== owner.metadata.uid) return 'ignore'
    if (matches) return 'owned'
    return isLeaving ? 'ignore' : 'release'
  }
  const isElsewhere = owner.metadata.namespace !== object.metadata.namespace
  return isLeaving || !matches || isElsewhere || object.metadata.deletionTimestamp !== undefined ? 'ignore' : 'adopt'
}
