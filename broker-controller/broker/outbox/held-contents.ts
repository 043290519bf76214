/** Which contents of `desired` each node holds, by its own reports and by what was sent to it. A report may be wrong: it gives access to nothing. */
import { referencesAnnotation } from '../../../api/node/references-annotation.ts'
import type { StoredObject } from '../../store/store.ts'

/** `all`: the controller has just started, and the node did not lack any before. If it does, it reports. */
export type HeldNames = ReadonlySet<string> | 'all'

export interface HeldContents {
  /** undefined: the node does not read references, as far as is known. */
  of(name: string, node: StoredObject<'nodes'> | undefined): HeldNames | undefined
  /** The node has connected. */
  connected(name: string, readsReferences: boolean): void
  /** The node has reported the names of all that it holds. */
  reported(name: string, names: readonly string[]): void
  /** A message that refers to these was published: the node holds no others after it. */
  published(name: string, names: Iterable<string>): void
  forget(name: string): void
}

export function heldContents(): HeldContents {
  /** undefined: an agent is connected that does not read references. */
  const held = new Map<string, HeldNames | undefined>()
  return {
    of(name, node) {
      if (held.has(name)) return held.get(name)
      return node?.metadata.annotations?.[referencesAnnotation] === 'true' ? 'all' : undefined
    },
    connected(name, readsReferences) {
      if (!readsReferences) held.set(name, undefined)
      else if (held.get(name) === undefined) held.delete(name)
    },
    reported: (name, names) => void held.set(name, new Set(names)),
    published: (name, names) => void held.set(name, new Set(names)),
    forget: (name) => void held.delete(name),
  }
}
