import { test } from 'tap'
import { shrunk, type WorldOutcome, type WorldSize } from './shrink.ts'

/** A world of two faults a minute. */
const world =
  (ruleOf: (size: WorldSize, happens: (fault: number) => boolean) => string | undefined) =>
  async (size: WorldSize): Promise<WorldOutcome> => {
    const faults = size.faultMinutes * 2
    const happens = (fault: number) => fault <= faults && !size.skipped.includes(fault)
    return { faults, rule: ruleOf(size, happens) }
  }
const whole: WorldSize = { nodes: 3, faultMinutes: 30, skipped: [] }

test('what is left are the machines, the time and the faults that the failure needs', async (t) => {
  const found: WorldSize[] = []
  const run = world(({ nodes }, happens) => (nodes >= 2 && happens(3) && happens(14) ? 'a rule' : undefined))
  const smallest = await shrunk({ run, found: (size) => found.push(size) }, whole)
  const skipped = Array.from({ length: 16 }, (_, i) => i + 1).filter((fault) => fault !== 3 && fault !== 14)
  t.same(smallest, { nodes: 2, faultMinutes: 8, skipped })
  t.same(found.at(-1), smallest)
})

test('a smaller world that fails for another reason is not taken', async (t) => {
  const run = world(({ nodes }, happens) => (nodes < 3 ? 'another' : happens(59) ? 'a rule' : undefined))
  const smallest = await shrunk({ run, found: () => undefined }, whole)
  t.match(smallest, { nodes: 3, faultMinutes: 30 })
  t.equal(smallest?.skipped.length, 59)
})

test('a failure that needs no fault, and a world that holds', async (t) => {
  const found = () => undefined
  t.match(await shrunk({ run: world(() => 'a rule'), found }, whole), { nodes: 1, faultMinutes: 1, skipped: [1, 2] })
  t.equal(await shrunk({ run: world(() => undefined), found }, whole), undefined)
})
