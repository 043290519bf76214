/** Loop: nodes that somebody looks at are asked to tell what they use, not too many at a time. */
import type { CallMessage } from '../../../api/topics.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import type { Broker } from '../broker.ts'

export type StatsCallerNeeds = {
  readonly usage: UsageBoard
  readonly broker: Pick<Broker, 'publish'>
  readonly clock: Clock
}

/** 500 calls a second. */
const atATime = 50
const pauseMs = 100
const sweepMs = 30_000
const longestMs = 24 * 3600_000

export function statsCaller({ usage, broker, clock }: StatsCallerNeeds): Loop {
  const asked = alarm(clock)
  return {
    name: 'stats-caller',
    async run(signal) {
      usage.onAsk(asked.ring)
      while (!signal.aborted) {
        const asks = usage.takeAsks(atATime)
        for (const { node, seconds, everySeconds, whole } of asks) {
          const call: CallMessage = whole ? { call: 'stats', whole } : { call: 'stats', seconds, everySeconds }
          await broker.publish({ kind: 'calls', node }, JSON.stringify(call))
        }
        if (asks.length === atATime) await clock.sleep(pauseMs, signal)
        else await asked.sleep(usage.sweep() ? sweepMs : longestMs, signal)
      }
    },
  }
}
