/**
 * Limits on requests: each flow has a limit of its own, and gets 429 beyond it; see `flow-levels.ts`. A level that is used up is
 * shared fairly among its flows; see `daemon/limits/fair-share.ts`.
 */

import { ApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { displacedFor, isWithinFairShare, type Weighted } from '../../../daemon/limits/fair-share.ts'
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
import { recentUse } from './recent-use.ts'

/** A request that may run. */
export interface FlowAdmission {
  /** Aborts when the answer must end, because a flow that has fewer streams needs the place. undefined: it is no stream. */
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

/** A level that is used up is shared by what each flow used in about this time. */
const recentMs = 5_000

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
  const displacements = registry.counter({
    name: 'bramble_api_displaced_streams_total',
    help: 'Watches and other streams that were ended because a flow with fewer of them needed the place, by priority level.',
    labelNames: ['priority_level'],
  })
  const displace = ({ level, key }: Flow) => {
    displacements.inc({ priority_level: level })
    const facts = { priorityLevel: level, flow: key }
    log.info(`${level}/${key} displaced`, 'Streams ended: their flow has the most, and others need the place', facts)
  }
  const stateOf = (level: LimitedLevel) => levelState(level, limits[level], clock, displace)
  const levels: { readonly [L in LimitedLevel]: ReturnType<typeof levelState> } = {
    'leader-election': stateOf('leader-election'),
    system: stateOf('system'),
    bootstrap: stateOf('bootstrap'),
    'global-default': stateOf('global-default'),
    'catch-all': stateOf('catch-all'),
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
  const exempt = (flow: Flow, isStream: boolean): FlowAdmission => {
    if (isStream && exemptWatches >= mostExemptWatches) reject(flow, 'watches', longestRetryMs)
    if (isStream) exemptWatches += 1
    const release = running('exempt', () => {
      if (isStream) exemptWatches -= 1
    })
    return { readBody: () => undefined, answered: () => undefined, release }
  }

  return {
    admit(flow, streamWeight) {
      const { level, key } = flow
      if (level === 'exempt') return exempt(flow, streamWeight > 0)
      const { take, charge, seats, streams } = levels[level]
      if (streamWeight > 0 && !streams.hasRoom(key, streamWeight)) reject(flow, 'watches', longestRetryMs)
      if (streamWeight === 0 && !seats.isFree(key)) reject(flow, 'concurrency', 1000)
      const waitMs = take(key)
      if (waitMs > 0) reject(flow, 'rate', waitMs)
      const stream = streamWeight > 0 ? streams.add(key, streamWeight) : undefined
      if (stream === undefined) seats.add(key)
      const end = stream === undefined ? () => seats.remove(key) : () => streams.remove(stream)
      return {
        ...(stream && { displaced: stream.ending.signal }),
        readBody: (bytes) => charge(key, Math.floor(bytes / bodyBytesPerToken)),
        answered: (bytes) => charge(key, Math.floor(bytes / answerBytesPerToken)),
        release: running(level, end),
      }
    },
  }
}

const together = ''

function levelState(
  name: LimitedLevel,
  { flow, level }: LevelLimits,
  clock: Pick<Clock, 'monotonicMs'>,
  displace: (flow: Flow) => void,
) {
  const flows = tokenBuckets(flow.rate, clock)
  const all = tokenBuckets(level.rate, clock, 1)
  const used = recentUse(recentMs, clock)
  const shared = Math.min(level.rate.burst, (level.rate.perSecond * recentMs) / 1000)
  return {
    /** A flow that is over its own share takes nothing from the level's; one that has used little gets a token of an empty level. */
    take(key: string): number {
      const ownWaitMs = flows.take(key)
      if (ownWaitMs > 0) return ownWaitMs
      const waitMs = all.take(together)
      if (waitMs > 0 && !isWithinFairShare(used.of(key) + 1, used.ofOthers(key), shared)) {
        flows.refund(key, 1)
        return waitMs
      }
      if (waitMs > 0) all.charge(together, 1)
      used.add(key, 1)
      return 0
    },
    charge(key: string, tokens: number): void {
      if (!(tokens > 0)) return
      flows.charge(key, tokens)
      // A watch is charged for all that it carried when it ends: that is no reason to answer all others with 429.
      const bounded = Math.min(tokens, flow.rate.burst)
      all.charge(together, bounded)
      used.add(key, bounded)
    },
    seats: seatsOf(flow.seats, level.seats),
    streams: streamsOf(flow.streams, level.streams, (key) => displace({ level: name, key })),
  }
}

/** How many requests of each flow, and of all, run now. */
function seatsOf(mostPerFlow: number, mostInLevel: number) {
  const byFlow = new Map<string, number>()
  let total = 0
  return {
    /** A level that is full gets more from flows with few: the seats of the others come back within moments. */
    isFree(key: string): boolean {
      const wanted = (byFlow.get(key) ?? 0) + 1
      if (wanted > mostPerFlow) return false
      return total < mostInLevel || isWithinFairShare(wanted, valuesBut(byFlow, key), mostInLevel)
    },
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

type HeldStream = Weighted & { readonly key: string; readonly ending: AbortController }

/** The streams of each flow, oldest first. Those that are displaced count no more, though their answers end a moment later. */
function streamsOf(mostPerFlow: number, mostInLevel: number, displaced: (key: string) => void) {
  const byFlow = new Map<string, Set<HeldStream>>()
  let total = 0
  const weightOf = (key: string) => [...(byFlow.get(key) ?? [])].reduce((sum, { weight }) => sum + weight, 0)
  const toDisplace = (key: string, weight: number) =>
    displacedFor<HeldStream>({ own: weightOf(key), weight }, valuesBut(byFlow, key), total + weight - mostInLevel)
  const remove = (stream: HeldStream) => {
    const own = byFlow.get(stream.key)
    if (own?.delete(stream) !== true) return
    total -= stream.weight
    if (own.size === 0) byFlow.delete(stream.key)
  }
  return {
    hasRoom: (key: string, weight: number) =>
      weightOf(key) + weight <= mostPerFlow && toDisplace(key, weight) !== undefined,
    add(key: string, weight: number): HeldStream {
      for (const surplus of toDisplace(key, weight) ?? []) {
        remove(surplus)
        displaced(surplus.key)
        surplus.ending.abort(displacedReason)
      }
      const stream = { key, weight, ending: new AbortController() }
      byFlow.set(key, (byFlow.get(key) ?? new Set()).add(stream))
      total += weight
      return stream
    },
    remove,
  }
}

/** Without a reason each abort would make an exception with its stack. */
const displacedReason = 'displaced'

function* valuesBut<T>(byKey: ReadonlyMap<string, T>, key: string): Generator<T> {
  for (const [other, value] of byKey) if (other !== key) yield value
}
