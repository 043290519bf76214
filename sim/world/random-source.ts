/** The one source of randomness of a world. */
import { seededRandom } from '../../daemon/testing/seeded-random.ts'

export interface RandomSource {
  /** From 0 to less than 1. */
  readonly next: () => number
  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number
  isTrue(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** A source that draws its seed from this one: what one part draws changes nothing for the others. */
  fork(): RandomSource
}

export function randomSource(seed: number): RandomSource {
  const next = seededRandom(seed)
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    isTrue: (probability) => next() < probability,
    pick(items) {
      const item = items[between(0, items.length - 1)]
      if (item === undefined) throw new RangeError('There is nothing to pick from')
      return item
    },
    fork: () => randomSource(Math.floor(next() * 2 ** 32)),
  }
}
