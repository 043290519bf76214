/** Fair limits on requests: each flow has a share of its own, and gets 429 beyond it; see `flow-levels.ts`. */

import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import {
  type Flow,
  type FlowLimits,
  type Level,
  type LevelLimits,
  type LimitedLevel,
  mostExemptWatches,
} from './flow-levels.ts'

/** A request that may run. */
export interface FlowAdmission {
  readBody(bytes: number): void
  answered(bytes: number): void
  /** Gives its seat back. Call it once the answer is written; a second call does nothing. */
  release(): void
}

export interface FlowControl {
  /** Throws TooManyRequests with the seconds to wait. A watch takes no seat, but counts among watches until released. */
  admit(flow: Flow, isWatch: boolean): FlowAdmission
}

export type FlowControlNeeds = {
  readonly limits: FlowLimits
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
  readonly log: LimitedLog
}

const bodyBytesPerToken = 16 * 1024
const answerBytesPerToken = 64 * 1024
/** The longest a client is sent away for. */
const longestRetryMs = 30_000

type Reason = 'rate' | 'concurrency' | 'watches'

/** Registers its metrics: once for a registry. */
export function flowControl({ limits, clock, registry, log }: FlowControlNeeds): FlowControl {
  const rejected = registry.counter({
    name: 'apiserver_flowcontrol_rejected_requests_total',
    help: 'Requests answered with 429, by priority level and reason.',
    labelNames: ['priority_level', 'reason'],
  })
  const executing = registry.gauge({
    name: 'apiserver_flowcontrol_current_executing_requests',
    help: 'Requests and watches that run now, by priority level.',
    labelNames: ['priority_level'],
  })
  const levels: { readonly [L in LimitedLevel]: ReturnType<typeof levelState> } = {
    'leader-election': levelState(limits['leader-election'], clock),
    system: levelState(limits.system, clock),
    bootstrap: levelState(limits.bootstrap, clock),
    'global-default': levelState(limits['global-default'], clock),
    'catch-all': levelState(limits['catch-all'], clock),
  }
  let exemptWatches = 0

  const reject = ({ level, key }: Flow, reason: Reason, waitMs: number): never => {
    rejected.inc({ priority_level: level, reason })
    log.info(`${level}/${key}`, 'Requests over their limit are answered with 429', {
      priorityLevel: level,
      flow: key,
      reason,
    })
    const retryAfterSeconds = Math.max(1, Math.ceil(Math.min(waitMs, longestRetryMs) / 1000))
    throw new ApiError('TooManyRequests', 'Too many requests, please try again later.', { retryAfterSeconds })
  }
  const running = (level: Level, end: () => void): (() => void) => {
    executing.inc({ priority_level: level })
    let isRunning = true
    return () => {
      if (!isRunning) return
      isRunning = false
      executing.dec({ priority_level: level })
      end()
    }
  }
  const exempt = (flow: Flow, isWatch: boolean): FlowAdmission => {
    if (isWatch && exemptWatches >= mostExemptWatches) reject(flow, 'watches', longestRetryMs)
    if (isWatch) exemptWatches += 1
    const release = running('exempt', () => {
      if (isWatch) exemptWatches -= 1
    })
    return { readBody: () => undefined, answered: () => undefined, release }
  }

  return {
    admit(flow, isWatch) {
      if (flow.level === 'exempt') return exempt(flow, isWatch)
      const { take, charge, seats, watches } = levels[flow.level]
      const places = isWatch ? watches : seats
      if (!places.isFree(flow.key)) reject(flow, isWatch ? 'watches' : 'concurrency', isWatch ? longestRetryMs : 1000)
      const waitMs = take(flow.key)
      if (waitMs > 0) reject(flow, 'rate', waitMs)
      places.add(flow.key)
      return {
        readBody: (bytes) => charge(flow.key, Math.floor(bytes / bodyBytesPerToken)),
        answered: (bytes) => charge(flow.key, Math.floor(bytes / answerBytesPerToken)),
        release: running(flow.level, () => places.remove(flow.key)),
      }
    },
  }
}

const together = ''

function levelState({ flow, level }: LevelLimits, clock: Pick<Clock, 'monotonicMs'>) {
  const flows = tokenBuckets(flow.rate, clock)
  const all = tokenBuckets(level.rate, clock, 1)
  return {
    /** A flow that is over its own share takes nothing from the level's. */
    take(key: string): number {
      const ownWaitMs = flows.take(key)
      if (ownWaitMs > 0) return ownWaitMs
      const waitMs = all.take(together)
      if (waitMs > 0) flows.refund(key, 1)
      return waitMs
    },
    charge(key: string, tokens: number): void {
      if (!(tokens > 0)) return
      flows.charge(key, tokens)
      // A watch is charged for all that it carried when it ends: that is no reason to answer all others with 429.
      all.charge(together, Math.min(tokens, flow.rate.burst))
    },
    seats: places(flow.seats, level.seats),
    watches: places(flow.watches, level.watches),
  }
}

/** How many of each flow, and of all, are in use. */
function places(mostPerFlow: number, mostInLevel: number) {
  const byFlow = new Map<string, number>()
  let total = 0
  return {
    isFree: (key: string) => total < mostInLevel && (byFlow.get(key) ?? 0) < mostPerFlow,
    add(key: string) {
      total += 1
      byFlow.set(key, (byFlow.get(key) ?? 0) + 1)
    },
    remove(key: string) {
      total -= 1
      const left = (byFlow.get(key) ?? 0) - 1
      if (left > 0) byFlow.set(key, left)
      else byFlow.delete(key)
    },
  }
}
