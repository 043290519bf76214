/** Chains that nothing uses any more, deleted a moment after they were emptied (see `RuleTransaction`). */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { chainDeletion } from './rule-changes.ts'
import type { RuleFamily } from './rule-family.ts'
import type { RuleSet } from './rule-set.ts'

/** A second, and room for clocks. */
export const retiredMs = 2_000

export type RetiredChains = {
  add(names: readonly string[]): void
  /** What is in the kernel is known to have none of them, or they will be found again. */
  clear(): void
  isEmpty(): boolean
  /** Deletes those that are due, and that `applied` does not use again. Never rejects. */
  deleteUnused(applied: readonly RuleSet[]): Promise<void>
}

export type RetiredChainsNeeds = {
  readonly table: { readonly family: RuleFamily; apply(transaction: string): Promise<void> }
  readonly clock: Clock
  readonly log: Log
}

export function retiredChains({ table, clock, log }: RetiredChainsNeeds): RetiredChains {
  /** By the time when they were emptied. */
  const retired = new Map<string, number>()
  return {
    add(names) {
      for (const name of names) retired.set(name, clock.monotonicMs())
    },
    clear: () => retired.clear(),
    isEmpty: () => retired.size === 0,
    async deleteUnused(applied) {
      const before = clock.monotonicMs() - retiredMs
      const due = [...retired].flatMap(([name, sinceMs]) => (sinceMs <= before ? [name] : []))
      for (const name of due) retired.delete(name)
      const unused = due.filter((name) => !applied.some(({ chains }) => chains.has(name)))
      if (unused.length === 0) return
      try {
        await table.apply(chainDeletion(unused, table.family))
      } catch (error) {
        // They stay empty until the rules are put in place as a whole.
        log.debug('Chains without rules were not deleted', { chains: unused.length, error })
      }
    },
  }
}
