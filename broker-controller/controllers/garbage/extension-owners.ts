/** Decides whether an owner that an extension server holds is still there. */
import type { OwnerReference } from '../../../api/meta.ts'
import type { ExtensionObjects } from './extension-objects.ts'
import type { OwnerState } from './ownership.ts'
import { type OwnershipGraph, waitsForDependents } from './ownership-graph.ts'

export type ExtensionOwner = {
  readonly owner: OwnerReference
  /** That of the dependent; undefined: it is in none. */
  readonly namespace: string | undefined
  readonly graph: Pick<OwnershipGraph, 'extensionItem'>
  readonly objects: Pick<ExtensionObjects, 'kindOf' | 'get'>
}

/**
 * An owner is gone only where its server states it in this moment; what a watch left out does not count. Rejects where the server does not
 * answer: then nothing is decided about its dependents. 'unreachable': no dependent without a namespace can have it as its owner.
 */
export async function extensionOwnerState(
  { owner, namespace, graph, objects }: ExtensionOwner,
  signal: AbortSignal,
): Promise<OwnerState | 'unreachable'> {
  const kind = objects.kindOf(owner.apiVersion, owner.kind)
  if (kind === undefined) return 'there'
  if (kind.namespaced && namespace === undefined) return 'unreachable'
  const place = kind.namespaced ? namespace : undefined
  const known = graph.extensionItem(owner)
  const isSeen =
    known?.resource.extension?.kind === owner.kind &&
    known.object.metadata.name === owner.name &&
    known.object.metadata.namespace === place
  const found = isSeen ? known.object : await objects.get(kind, { namespace: place ?? '', name: owner.name }, signal)
  if (found?.metadata.uid !== owner.uid) return 'gone'
  return waitsForDependents(found) ? 'waiting' : 'there'
}
