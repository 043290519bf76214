/** Makes a world that fails smaller, as long as it violates the same rule: fewer machines, a shorter time, fewer faults. */

export type WorldSize = {
  readonly nodes: number
  readonly faultMinutes: number
  /** Numbers of the faults that do not happen. */
  readonly skipped: readonly number[]
}

export type WorldOutcome = {
  /** With those that were skipped. */
  readonly faults: number
  /** Undefined: the world holds. */
  readonly rule: string | undefined
}

export type ShrinkNeeds = {
  /** Runs the world of this size; the seed is the same each time. */
  readonly run: (size: WorldSize) => Promise<WorldOutcome>
  /** Called with each smaller world that fails. */
  readonly found: (size: WorldSize) => void
}

type Failing = { readonly size: WorldSize; readonly faults: number }

const lengths = [1, 2, 3, 5, 8, 12, 18, 25]

/** Gives the smallest world that was found; undefined: the world of this size holds. */
export async function shrunk({ run, found }: ShrinkNeeds, size: WorldSize): Promise<WorldSize | undefined> {
  const { rule, faults } = await run(size)
  if (rule === undefined) return undefined
  const failing = async (smaller: WorldSize): Promise<Failing | undefined> => {
    const outcome = await run(smaller)
    if (outcome.rule !== rule) return undefined
    found(smaller)
    return { size: smaller, faults: outcome.faults }
  }
  /** The first of these that fails, else the present one. */
  const firstOf = async (now: Failing, candidates: readonly WorldSize[]): Promise<Failing> => {
    for (const candidate of candidates) {
      const smaller = await failing(candidate)
      if (smaller !== undefined) return smaller
    }
    return now
  }
  let now: Failing = { size, faults }
  now = await firstOf(
    now,
    upTo(size.nodes - 1).map((nodes) => ({ ...now.size, nodes })),
  )
  now = await firstOf(
    now,
    shorter(now.size).map((faultMinutes) => ({ ...now.size, faultMinutes })),
  )
  return (await withFewerFaults(now, failing)).size
}

/** Skips a half of the faults at once, then smaller parts, at last single ones. */
async function withFewerFaults(
  first: Failing,
  failing: (size: WorldSize) => Promise<Failing | undefined>,
): Promise<Failing> {
  let now = first
  const present = () => upTo(now.faults).filter((number) => !now.size.skipped.includes(number))
  for (let length = Math.ceil(present().length / 2); length >= 1; length = length === 1 ? 0 : Math.ceil(length / 2)) {
    for (const part of partsOf(present(), length)) {
      const smaller = await failing({ ...now.size, skipped: [...now.size.skipped, ...part].sort((a, b) => a - b) })
      if (smaller !== undefined) now = smaller
    }
  }
  return now
}

function shorter({ faultMinutes }: WorldSize): readonly number[] {
  return lengths.filter((minutes) => minutes < faultMinutes)
}

function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, i) => i + 1)
}

function partsOf(numbers: readonly number[], length: number): readonly (readonly number[])[] {
  return Array.from({ length: Math.ceil(numbers.length / length) }, (_, i) =>
    numbers.slice(i * length, (i + 1) * length),
  )
}
