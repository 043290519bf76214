/** What a change of the pool means for people: its disk was removed, or came back. Pure. */
import type { NodeEvent } from '../../node/status/node-event.ts'
import type { PoolState } from './volume-trash.ts'

/** `before`: when it was opened before; undefined: this is the first time. */
export function poolEvent(before: PoolState | undefined, now: PoolState | undefined): NodeEvent | undefined {
  if (now === undefined) return undefined
  if ('missing' in now) {
    if (before !== undefined && 'missing' in before && before.missing === now.missing) return undefined
    const message = `Pods with volumes in the pool wait, and no volume is made here: ${now.missing}`
    return { type: 'Warning', reason: 'PoolMissing', message }
  }
  if (before === undefined || ('id' in before && before.id === now.id)) return undefined
  return { type: 'Normal', reason: 'PoolFound', message: `The pool ${now.id} is at ${now.path}` }
}
