/**
 * Max-min fair shares of a limit among flows, as users: the flow that has least goes first, and the flow that has most is cut. Without
 * them the limit is a pot, which a few flows at their own limits use up for all others.
 */

/** Whether a flow that wants so much gets it, when each of the others keeps as much if it has that much. */
export function isWithinFairShare(wanted: number, others: Iterable<number>, capacity: number): boolean {
  let sum = wanted
  for (const one of others) {
    if (sum > capacity) return false
    sum += Math.min(one, wanted)
  }
  return sum <= capacity
}

export type Weighted = { readonly weight: number }

export type Newcomer = Weighted & {
  /** The weight of what its flow has already. */
  readonly own: number
}

/**
 * The streams to end so that a new one has room, of the flows that have most, the newest first. undefined: the newcomer's flow
 * would then have more than one that it takes from. `others`: the streams of each other flow, oldest first.
 */
export function displacedFor<S extends Weighted>(
  { own, weight }: Newcomer,
  others: Iterable<Iterable<S>>,
  excess: number,
): readonly S[] | undefined {
  if (excess <= 0) return []
  const flows = Array.from(others, (streams) => {
    const left = [...streams]
    return { left, total: left.reduce((sum, one) => sum + one.weight, 0) }
  })
  const displaced: S[] = []
  let missing = excess
  while (missing > 0) {
    const [first, ...more] = flows
    if (first === undefined) return undefined
    const largest = more.reduce((most, one) => (one.total > most.total ? one : most), first)
    const stream = largest.left.pop()
    if (stream === undefined || largest.total - stream.weight < own + weight) return undefined
    largest.total -= stream.weight
    missing -= stream.weight
    displaced.push(stream)
  }
  return displaced
}
