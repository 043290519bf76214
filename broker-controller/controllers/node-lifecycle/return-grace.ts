/**
 * After a restart of the controller all nodes come back at once, no faster than it takes them in: a fleet of ten thousand on etcd needs
 * three minutes for that, and a node gets a grace period of 50 s. While many come back, the silence of the others is the controller's.
 */

/** What one site loses with its power is less: without this many, those that stay away are silent. */
const manyNodes = 20
/** From the start of the controller. */
const longestMs = 10 * 60_000

export interface ReturnGrace {
  /**
   * Whether those that have not come back since the start get a full grace, asked once in each monitor period. `awaited`: how many of the nodes
   * that reported to an earlier controller have sent this one nothing.
   */
  isGiven(awaited: number, nowMs: number): boolean
  /** No more is ever given. */
  isOver(nowMs: number): boolean
}

export function returnGrace(startedMs: number): ReturnGrace {
  let before: number | undefined
  const isOver = (nowMs: number) => before === 0 || nowMs - startedMs > longestMs
  return {
    isGiven(awaited, nowMs) {
      if (isOver(nowMs)) return false
      const returned = (before ?? awaited) - awaited
      before = awaited
      return returned >= manyNodes
    },
    isOver,
  }
}
