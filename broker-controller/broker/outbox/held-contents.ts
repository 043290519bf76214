/** Which contents of `desired` each node holds, by its own reports and by what was sent to it. A report may be wrong: it gives access to nothing. */

export interface HeldContents {
  /** undefined: the node does not read references. */
  of(node: string): ReadonlySet<string> | undefined
  /** The node has connected. Returns whether it must receive the whole message. */
  connected(node: string, readsReferences: boolean): boolean
  /** The node has reported the names of all that it holds. */
  reported(node: string, names: readonly string[]): void
  /** A message that refers to these was published: the node holds no others after it. */
  published(node: string, names: Iterable<string>): void
  forget(node: string): void
}

export function heldContents(): HeldContents {
  const held = new Map<string, ReadonlySet<string>>()
  return {
    of: (node) => held.get(node),
    connected: (node, readsReferences) => !readsReferences && held.delete(node),
    reported: (node, names) => void held.set(node, new Set(names)),
    published(node, names) {
      if (held.has(node)) held.set(node, new Set(names))
    },
    forget: (node) => void held.delete(node),
  }
}
