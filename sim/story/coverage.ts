/** What worlds put to the test: how often each fault began, and how often a fact met each rule. */
import type { Judge } from '../invariants/invariant.ts'
import type { TimedFact } from './facts.ts'

type Counts = ReadonlyMap<string, number>

export type Coverage = { readonly faults: Counts; readonly rules: Counts }

export const noCoverage: Coverage = { faults: new Map(), rules: new Map() }

export interface CoverageCounter {
  /** Counts the fact; finds no violation. */
  readonly judge: Judge
  /** Counts a rule that no fact meets. */
  met(rule: string): void
  readonly counted: Coverage
}

type Rule = { readonly name: string; readonly meets?: ((fact: TimedFact) => boolean) | undefined }

export function coverageCounter(rules: readonly Rule[]): CoverageCounter {
  const counted = {
    faults: new Map<string, number>(),
    rules: new Map(rules.map(({ name }): [string, number] => [name, 0])),
  }
  const raise = (counts: Map<string, number>, key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1)
  return {
    judge(fact) {
      if (fact.kind === 'fault') raise(counted.faults, faultKind(fact))
      for (const { name, meets = () => true } of rules) if (meets(fact)) raise(counted.rules, name)
      return undefined
    },
    met: (rule) => raise(counted.rules, rule),
    counted,
  }
}

export function sumOfCoverage(...all: readonly Coverage[]): Coverage {
  return { faults: sum(all.map(({ faults }) => faults)), rules: sum(all.map(({ rules }) => rules)) }
}

/** The rarest first. */
export function coverageText({ faults, rules }: Coverage): readonly string[] {
  const lines = (counts: Counts) =>
    [...counts]
      .sort(([a, m], [b, n]) => m - n || (a < b ? -1 : 1))
      .map(([name, count]) => `${`${count}`.padStart(8)}  ${name}`)
  return ['Faults that began:', ...lines(faults), 'Facts that met a rule:', ...lines(rules)]
}

function sum(all: readonly Counts[]): Counts {
  const total = new Map<string, number>()
  for (const counts of all) for (const [name, count] of counts) total.set(name, (total.get(name) ?? 0) + count)
  return total
}

/** Without the number of the node, and without how wrong a date is. */
function faultKind({ what, target }: { readonly what: string; readonly target: string }): string {
  return `${target.replace(/node-\d+/, 'a node')}: ${what.replace(/ by -?\d+ s$/, '')}`
}
