/** Owners that an object names twice (dedupOwnerReferences in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go). */
import type { AnyObject, OwnerReference } from '../../../api/meta.ts'

/** The object with each owner once, and a warning with the UIDs of the others. Owners are the same if all their fields are. */
export function withOwnersOnce<T extends AnyObject>(
  object: T,
): { readonly object: T; readonly warnings: readonly string[] } {
  // A review may leave out its metadata.
  const { ownerReferences = [] }: Partial<AnyObject['metadata']> = object.metadata ?? {}
  if (ownerReferences.length < 2) return { object, warnings: [] }
  const byKey = new Map(ownerReferences.map((owner) => [keyOf(owner), owner]))
  if (byKey.size === ownerReferences.length) return { object, warnings: [] }
  const seen = new Set<string>()
  const repeated = ownerReferences.filter((owner) => seen.size === seen.add(keyOf(owner)).size)
  const warning = `.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${repeated.map(({ uid }) => uid).join(', ')}`
  return {
    object: { ...object, metadata: { ...object.metadata, ownerReferences: [...byKey.values()] } },
    warnings: [warning],
  }
}

function keyOf({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): string {
  return JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion])
}
