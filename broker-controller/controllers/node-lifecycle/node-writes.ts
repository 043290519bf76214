/** Writes to nodes of the roster. */
import type { Node } from '../../../api/node.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredObject } from '../../store/store.ts'
import type { NodeRoster } from './node-roster.ts'

export type NodeWriteNeeds = RewriteNeeds & { readonly roster: NodeRoster }

/**
 * Writes what `change` returns for the node; undefined leaves it as it is. The roster has the new version at once. Resolves with
 * the node as written, or with undefined if nothing was written. Errors are those of `rewrite`.
 */
export async function rewriteNode(
  { store, clock, roster }: NodeWriteNeeds,
  name: string,
  change: (node: StoredObject<'nodes'>) => Node | undefined,
  part: 'whole' | 'status' = 'whole',
): Promise<StoredObject<'nodes'> | undefined> {
  const entry = roster.get(name)
  if (entry === undefined || change(entry.node) === undefined) return undefined
  const { uid } = entry.node.metadata
  const written = await rewrite({ store, clock }, 'nodes', { key: { namespace: '', name }, uid, part, change })
  if (written !== undefined) roster.putNode(written, { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() })
  return written
}
