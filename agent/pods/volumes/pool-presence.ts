/** What a change of the pools means for people: a disk was removed, or came back. Pure. */
import type { NodeEvent } from '../../node/status/node-event.ts'
import type { PoolState } from './volume-trash.ts'

/** `before`: when they were opened before, in the same order; empty: this is the first time. */
export function poolEvents(before: readonly PoolState[], now: readonly PoolState[]): readonly NodeEvent[] {
  return now.flatMap((state, index) => poolEvent(before[index], state) ?? [])
}

function poolEvent(before: PoolState | undefined, now: PoolState): NodeEvent | undefined {
  const called = now.name === undefined ? 'the pool' : `the pool ${now.name}`
  if ('missing' in now) {
    if (before !== undefined && 'missing' in before && before.missing === now.missing) return undefined
    const message = `Pods with volumes in ${called} wait, and no volume is made in it: ${now.missing}`
    return { type: 'Warning', reason: 'PoolMissing', message }
  }
  if (before === undefined || ('id' in before && before.id === now.id)) return undefined
  const id = now.name === undefined ? now.id : `${now.name} (${now.id})`
  return { type: 'Normal', reason: 'PoolFound', message: `The pool ${id} is at ${now.path}` }
}
