/**
 * Limits on requests: each flow has a limit of its own, and waits or gets 429 beyond it; see `flow-levels.ts`. A level that is used
 * up is shared fairly among its owners; see `daemon/limits/fair-share.ts`.
 */

import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { type Flow, type FlowLimits, type Level, type LimitedLevel, mostExemptWatches } from './flow-levels.ts'
import { type Attempt, type FlowRefusal, flowQueue } from './flow-queue.ts'
import { levelShares } from './flow-shares.ts'

/** A request that may run. */
export interface FlowAdmission {
  /** Aborts when the answer must end, because a flow that has fewer streams needs the place. undefined: it is not a stream. */
  readonly displaced?: AbortSignal
  readBody(bytes: number): void
  answered(bytes: number): void
  /** Gives its seat back. Call it once the answer is written; a second call does nothing. */
  release(): void
}

export interface FlowControl {
  /**
   * Throws TooManyRequests with the seconds to wait. `streamWeight`: of an answer that lasts (`streamWeights`), which takes no seat but
   * counts among streams until released; 0: a short request.
   */
  admit(flow: Flow, streamWeight: number): FlowAdmission
  /** The same after a wait for its turn, where the level has a queue. Rejects as `admit` throws. */
  admitInTurn(flow: Flow, streamWeight: number, signal: AbortSignal): Promise<FlowAdmission>
}

export type FlowControlNeeds = {
  readonly limits: FlowLimits
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly registry: MetricsRegistry
  readonly log: LimitedLog
}

const bodyBytesPerToken = 16 * 1024
const answerBytesPerToken = 64 * 1024
/** The longest a client is sent away for. */
const longestRetryMs = 30_000

/** The same where requests wait in a queue: who has waited comes back soon, and waits there. */
const retryOfQueuesMs = 1_000
const noRoom = { ok: false, reason: 'watches', waitMs: longestRetryMs } as const

function flowMetrics(registry: MetricsRegistry) {
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
  const displacements = registry.counter({
    name: 'bramble_api_displaced_streams_total',
    help: 'Watches and other streams that were ended because a flow with fewer of them needed the place, by priority level.',
    labelNames: ['priority_level'],
  })
  return { rejected, executing, displacements }
}

/** Registers its metrics: once for a registry. */
export function flowControl({ limits, clock, registry, log }: FlowControlNeeds): FlowControl {
  const { rejected, executing, displacements } = flowMetrics(registry)
  const stateOf = (level: LimitedLevel) => ({
    shares: levelShares(limits[level], clock, ({ key }) => {
      displacements.inc({ priority_level: level })
      const facts = { priorityLevel: level, flow: key }
      log.info(`${level}/${key} displaced`, 'Streams ended: their flow has the most, and others need the place', facts)
    }),
    queue: limits[level].queue && flowQueue(limits[level].queue, clock),
  })
  const levels: { readonly [L in LimitedLevel]: ReturnType<typeof stateOf> } = {
    'leader-election': stateOf('leader-election'),
    system: stateOf('system'),
    bootstrap: stateOf('bootstrap'),
    'workload-low': stateOf('workload-low'),
    'global-default': stateOf('global-default'),
    'catch-all': stateOf('catch-all'),
  }
  let exemptWatches = 0

  const refusalOf = ({ level, key }: Flow, { reason, waitMs }: FlowRefusal): ApiError => {
    rejected.inc({ priority_level: level, reason })
    log.info(`${level}/${key}`, 'Requests over their limit are answered with 429', {
      priorityLevel: level,
      flow: key,
      reason,
    })
    const hasWaited = reason !== 'watches' && level !== 'exempt' && limits[level].queue !== undefined
    const retryMs = Math.min(waitMs, hasWaited ? retryOfQueuesMs : longestRetryMs)
    const retryAfterSeconds = Math.max(1, Math.ceil(retryMs / 1000))
    return new ApiError('TooManyRequests', 'Too many requests, please try again later.', { retryAfterSeconds })
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
  const exempt = (flow: Flow, isStream: boolean): FlowAdmission => {
    if (isStream && exemptWatches >= mostExemptWatches) throw refusalOf(flow, noRoom)
    if (isStream) exemptWatches += 1
    const release = running('exempt', () => {
      if (isStream) exemptWatches -= 1
    })
    return { readBody: () => undefined, answered: () => undefined, release }
  }

  const attempt = (level: LimitedLevel, flow: Flow, streamWeight: number): Attempt<FlowAdmission> => {
    const { shares, queue } = levels[level]
    const { seats, streams } = shares
    if (streamWeight > 0 && !streams.hasRoom(flow, streamWeight)) return noRoom
    if (streamWeight === 0 && !seats.isFree(flow)) return { ok: false, reason: 'concurrency', waitMs: 1000 }
    const waitMs = shares.take(flow)
    if (waitMs > 0) return { ok: false, reason: 'rate', waitMs }
    const stream = streamWeight > 0 ? streams.add(flow, streamWeight) : undefined
    if (stream === undefined) seats.add(flow)
    const release = running(level, () => {
      if (stream === undefined) seats.remove(flow)
      else streams.remove(stream)
      queue?.freed()
    })
    const admission = {
      ...(stream && { displaced: stream.ending.signal }),
      readBody: (bytes: number) => shares.charge(flow, Math.floor(bytes / bodyBytesPerToken)),
      answered: (bytes: number) => shares.charge(flow, Math.floor(bytes / answerBytesPerToken)),
      release,
    }
    return { ok: true, value: admission }
  }
  const admissionOf = (flow: Flow, attempted: Attempt<FlowAdmission>): FlowAdmission => {
    if (attempted.ok) return attempted.value
    throw refusalOf(flow, attempted)
  }

  return {
    admit(flow, streamWeight) {
      if (flow.level === 'exempt') return exempt(flow, streamWeight > 0)
      return admissionOf(flow, attempt(flow.level, flow, streamWeight))
    },
    async admitInTurn(flow, streamWeight, signal) {
      const { level } = flow
      if (level === 'exempt') return exempt(flow, streamWeight > 0)
      const once = () => attempt(level, flow, streamWeight)
      const { queue } = levels[level]
      return admissionOf(flow, queue === undefined ? once() : await queue.inTurn(flow, once, signal))
    },
  }
}
