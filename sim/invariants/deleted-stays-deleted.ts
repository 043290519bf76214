/** What a client saw deleted does not come back: a deletion that was not on the disk when the controller ended would do so. */
import type { Invariant } from './invariant.ts'

/** The uids of what a watch showed as deleted, with the names. */
type Deleted = Map<string, string>

export function deletedStaysDeleted(): Invariant<Deleted> {
  return {
    name: 'what was deleted does not come back',
    initial: new Map(),
    meets: (fact) => fact.kind === 'watched' && fact.type === 'DELETED',
    next(deleted, fact) {
      if (fact.kind === 'watched' && fact.type === 'DELETED')
        return { state: deleted.set(fact.uid, `${fact.resource} ${fact.name}`) }
      const shown = fact.kind === 'watched' ? [fact.uid] : fact.kind === 'listed' ? fact.uids : []
      const again = shown.find((uid) => deleted.has(uid))
      if (again === undefined) return { state: deleted }
      return { state: deleted, violation: `${deleted.get(again)} (${again}) was deleted, and is there` }
    },
  }
}
