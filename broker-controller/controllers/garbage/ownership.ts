/** The graph of owners and dependents: an object whose owners are all gone is deleted. */
import type { OwnerReference } from '../../../api/meta.ts'
import type { Resource, ResourceRegistry } from '../../../api/resources.ts'

export type OwnerState =
  | 'there'
  | 'gone'
  /** It goes, and waits for what belongs to it to go first. */
  | 'waiting'

export type OwnershipStep =
  | { readonly step: 'none' }
  /** `first`: an owner waits for it, and it waits for what belongs to it in the same way. */
  | { readonly step: 'remove'; readonly first: boolean }
  /** Somebody still owns it: these owners are forgotten. */
  | { readonly step: 'forget'; readonly uids: readonly string[] }

/** For an object that is not going by itself. */
export function ownershipStep(
  owners: readonly OwnerReference[],
  stateOf: (owner: OwnerReference) => OwnerState,
): OwnershipStep {
  const states = owners.map((owner) => ({ owner, state: stateOf(owner) }))
  const lost = states.filter(({ state }) => state !== 'there')
  if (lost.length === 0) return { step: 'none' }
  return lost.length === states.length
    ? { step: 'remove', first: states.some(({ state }) => state === 'waiting') }
    : { step: 'forget', uids: lost.map(({ owner }) => owner.uid) }
}

/** The kind of an owner; undefined when it is not served here, so that its existence cannot be checked. */
export function ownerResource({ apiVersion, kind }: OwnerReference, resources: ResourceRegistry): Resource | undefined {
  return resources.ofKind(apiVersion, kind)
}

/** The object without these owners; undefined: it has none of them. */
export function withoutOwners<
  O extends { readonly metadata: { readonly ownerReferences?: readonly OwnerReference[] } },
>(object: O, uids: readonly string[]): O | undefined {
  const { ownerReferences: present = [], ...metadata } = object.metadata
  const ownerReferences = present.filter(({ uid }) => !uids.includes(uid))
  if (ownerReferences.length === present.length) return undefined
  return { ...object, metadata: { ...metadata, ...(ownerReferences.length > 0 && { ownerReferences }) } }
}
