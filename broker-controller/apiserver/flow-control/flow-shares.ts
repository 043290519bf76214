/** What the flows of one level use of it now: tokens, seats and streams. A level that is used up is shared fairly among owners. */
import type { Clock } from '../../../daemon/clock.ts'
import { displacedFor, isWithinFairShare, type Weighted } from '../../../daemon/limits/fair-share.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import type { Flow, LevelLimits } from './flow-levels.ts'
import { recentUse } from './recent-use.ts'

type HeldStream = Weighted & { readonly flow: FlowKeys; readonly ending: AbortController }
type FlowKeys = Pick<Flow, 'key' | 'owner'>

/** A level that is used up is shared by what each owner used in about this time. */
const recentMs = 5_000
const together = ''

/** `displace` is called with the flow of each stream that is ended so that another flow has its place. */
export function levelShares(
  { flow, level }: LevelLimits,
  clock: Pick<Clock, 'monotonicMs'>,
  displace: (flow: FlowKeys) => void,
) {
  const flows = tokenBuckets(flow.rate, clock)
  const all = tokenBuckets(level.rate, clock, 1)
  const used = recentUse(recentMs, clock)
  const shared = Math.min(level.rate.burst, (level.rate.perSecond * recentMs) / 1000)
  return {
    /**
     * The milliseconds until there is a token; 0: it is taken. A flow that is over its own share takes nothing from the level's;
     * one whose owner has used little gets a token of an empty level.
     */
    take(of: FlowKeys): number {
      const owner = ownerIn(of)
      const ownWaitMs = flows.take(of.key)
      if (ownWaitMs > 0) return ownWaitMs
      const waitMs = all.take(together)
      if (waitMs > 0 && !isWithinFairShare(used.of(owner) + 1, used.ofOthers(owner), shared)) {
        flows.refund(of.key, 1)
        return waitMs
      }
      if (waitMs > 0) all.charge(together, 1)
      used.add(owner, 1)
      return 0
    },
    charge(of: FlowKeys, tokens: number): void {
      if (!(tokens > 0)) return
      flows.charge(of.key, tokens)
      // A watch is charged for all that it carried when it ends: that must not answer all others with 429.
      const bounded = Math.min(tokens, flow.rate.burst)
      all.charge(together, bounded)
      used.add(ownerIn(of), bounded)
    },
    seats: seatsOf(flow.seats, level.seats),
    streams: streamsOf(flow.streams, level.streams, displace),
  }
}

function ownerIn({ key, owner = key }: FlowKeys): string {
  return owner
}

/** How many requests of each flow, of each owner, and of all, run now. */
function seatsOf(mostPerFlow: number, mostInLevel: number) {
  const [byFlow, byOwner] = [new Map<string, number>(), new Map<string, number>()]
  let total = 0
  const add = (counts: Map<string, number>, key: string, change: 1 | -1) => {
    const left = (counts.get(key) ?? 0) + change
    if (left > 0) counts.set(key, left)
    else counts.delete(key)
  }
  return {
    /** A level that is full gets more from owners with few: the seats of the others come back within moments. */
    isFree(flow: FlowKeys): boolean {
      if ((byFlow.get(flow.key) ?? 0) >= mostPerFlow) return false
      const owner = ownerIn(flow)
      const wanted = (byOwner.get(owner) ?? 0) + 1
      return total < mostInLevel || isWithinFairShare(wanted, valuesBut(byOwner, owner), mostInLevel)
    },
    add(flow: FlowKeys) {
      total += 1
      add(byFlow, flow.key, 1)
      add(byOwner, ownerIn(flow), 1)
    },
    remove(flow: FlowKeys) {
      total -= 1
      add(byFlow, flow.key, -1)
      add(byOwner, ownerIn(flow), -1)
    },
  }
}

/** The streams of each owner, oldest first. Displaced ones no longer count, though their answers end a moment later. */
function streamsOf(mostPerFlow: number, mostInLevel: number, displaced: (flow: FlowKeys) => void) {
  const byOwner = new Map<string, Set<HeldStream>>()
  let total = 0
  const streamsOfOwner = (owner: string) => [...(byOwner.get(owner) ?? [])]
  const toDisplace = (owner: string, weight: number) =>
    displacedFor<HeldStream>(
      { own: sumOf(streamsOfOwner(owner)), weight },
      valuesBut(byOwner, owner),
      total + weight - mostInLevel,
    )
  const remove = (stream: HeldStream) => {
    const owner = ownerIn(stream.flow)
    const own = byOwner.get(owner)
    if (own?.delete(stream) !== true) return
    total -= stream.weight
    if (own.size === 0) byOwner.delete(owner)
  }
  return {
    hasRoom(flow: FlowKeys, weight: number): boolean {
      const own = streamsOfOwner(ownerIn(flow)).filter((stream) => stream.flow.key === flow.key)
      return sumOf(own) + weight <= mostPerFlow && toDisplace(ownerIn(flow), weight) !== undefined
    },
    add(flow: FlowKeys, weight: number): HeldStream {
      const owner = ownerIn(flow)
      for (const surplus of toDisplace(owner, weight) ?? []) {
        remove(surplus)
        displaced(surplus.flow)
        surplus.ending.abort(displacedReason)
      }
      const stream = { flow, weight, ending: new AbortController() }
      byOwner.set(owner, (byOwner.get(owner) ?? new Set()).add(stream))
      total += weight
      return stream
    },
    remove,
  }
}

/** Without a reason each abort would make an exception with its stack. */
const displacedReason = 'displaced'

function sumOf(streams: readonly Weighted[]): number {
  return streams.reduce((sum, { weight }) => sum + weight, 0)
}

function* valuesBut<T>(byKey: ReadonlyMap<string, T>, key: string): Generator<T> {
  for (const [other, value] of byKey) if (other !== key) yield value
}
