/** Seeds that found faults, with what they found: they are run again with each change. */

export type KeptSeed = {
  readonly seed: number
  readonly why: string
  readonly nodes?: number
  readonly faultMinutes?: number
}

/** Short worlds: the unit tests run them all. */
export const keptSeeds: readonly KeptSeed[] = [
  { seed: 1, why: 'partitions, power cuts and deaths of Docker, one after the other', faultMinutes: 15 },
  { seed: 10, why: 'the power of the controller is cut in the middle of writes, again and again', faultMinutes: 15 },
  { seed: 27, why: 'a node away for twelve minutes comes back while all others are NotReady', faultMinutes: 15 },
]
