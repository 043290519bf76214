/** Loop: asks the nodes whose resource usage is being queried to publish it, not too many at a time. */
import type { CallMessage } from '../../../api/topics.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { Broker } from '../broker.ts'

export type UsageRequestsNeeds = {
  readonly usage: UsageBoard
  readonly broker: Pick<Broker, 'publish'>
  readonly clock: Clock
  readonly log: Log
}

/** 500 calls a second at the most. */
const mostAtOnce = 50
const pauseMs = 100
const sweepMs = 30_000
const longestMs = 24 * 3600_000

/** A request that cannot be published is logged: queries do not wait for its node, and the next one repeats it. */
export function usageRequests({ usage, broker, clock, log }: UsageRequestsNeeds): Loop {
  const asked = alarm(clock)
  return {
    name: 'usage-requests',
    async run(signal) {
      usage.onAsk(asked.ring)
      while (!signal.aborted) {
        const asks = usage.takeAsks(mostAtOnce)
        for (const { node, ...wanted } of asks) {
          const call: CallMessage = { call: 'stats', ...wanted }
          await broker
            .publish({ kind: 'calls', node }, JSON.stringify(call))
            .catch((error: unknown) => log.debug('Usage not requested', { node, error }))
        }
        if (asks.length === mostAtOnce) await clock.sleep(pauseMs, signal)
        else await asked.sleep(usage.sweep() ? sweepMs : longestMs, signal)
      }
    },
  }
}
