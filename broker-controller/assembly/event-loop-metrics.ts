/** Counts the tasks that block the controller's event loop, and logs their names. */

import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { limitLog } from '../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../daemon/metrics-registry.ts'
import { watchEventLoop } from '../../daemon/watchdog/event-loop.ts'

export type EventLoopMetricsNeeds = { readonly registry: MetricsRegistry; readonly clock: Clock; readonly log: Log }

/** Watches until the function it gives is called. */
export function meterEventLoop({ registry, clock, log }: EventLoopMetricsNeeds): () => void {
  const limited = limitLog(log, clock)
  const blocks = registry.counter({
    name: 'bramble_event_loop_blocks_total',
    help: 'How often an operation blocked the event loop for longer than 250 ms',
    labelNames: ['operation'],
  })
  const seconds = registry.counter({
    name: 'bramble_event_loop_blocked_seconds_total',
    help: 'For how long operations blocked the event loop, of those that took longer than 250 ms',
    labelNames: ['operation'],
  })
  const stop = watchEventLoop({
    onBlock({ kind, operation, blockedMs, operations }) {
      blocks.inc({ operation: kind })
      seconds.inc({ operation: kind }, blockedMs / 1000)
      limited.warn(kind, 'Event loop blocked', { kind, operation, blockedMs, operations })
    },
  })
  return () => {
    stop()
    limited.close()
  }
}
