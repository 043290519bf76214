/** Events with ticks of a clock between them. */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../daemon/clock.ts'

export type TickSettings = {
  readonly clock: Pick<Clock, 'sleep'>
  readonly everyMs: number
  /** Ends the iteration. */
  readonly signal: AbortSignal
}

/**
 * The events, and a tick each `everyMs` at which no event is waiting. An event costs no timer and no race of promises: a
 * race with a tick that comes in a minute would hold every event until then.
 */
export async function* withTicks<E>(
  events: AsyncIterable<E>,
  { clock, everyMs, signal }: TickSettings,
): AsyncGenerator<E | 'tick'> {
  const iterator = events[Symbol.asyncIterator]()
  let arrived: IteratorResult<E> | undefined
  let failure: { readonly error: unknown } | undefined
  let isDue = false
  let wake = () => {}
  const pull = () => {
    iterator.next().then(
      (result) => {
        arrived = result
        wake()
      },
      (error: unknown) => {
        failure = { error }
        wake()
      },
    )
  }
  const plan = () =>
    void clock.sleep(everyMs, signal).then(() => {
      isDue = true
      wake()
    })
  pull()
  plan()
  while (!signal.aborted) {
    if (failure !== undefined) throw failure.error
    if (arrived?.done === true) return
    if (arrived !== undefined) {
      const { value } = arrived
      arrived = undefined
      yield value
      pull()
    } else if (isDue) {
      await setImmediate() // an event that is on its way already comes first
      if (arrived !== undefined || failure !== undefined) continue
      isDue = false
      yield 'tick'
      plan()
    } else {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
}
