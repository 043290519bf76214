/** Loop: keeps the kernel's table of rules as the parts of the network want it. */
import type { IPFamily } from '../../api/text/ip-address.ts'
import { type Alarm, alarm } from '../../daemon/alarm.ts'
import { type BackoffSettings, longestBackoffMs } from '../../daemon/backoff.ts'
import type { Cell, Reader } from '../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { baseRules } from './base-rules.ts'
import { retiredChains, retiredMs } from './retired-chains.ts'
import { allRules, type ExistingRules, type RuleTransaction, ruleChanges } from './rule-changes.ts'
import type { RuleFamily } from './rule-family.ts'
import { noRules, type RuleSet } from './rule-set.ts'

/** The table `ip bramble` of the kernel, or `ip6 bramble`. */
export interface RuleTable {
  readonly family: RuleFamily
  /** What is there, by name; undefined without the table. */
  list(): Promise<ExistingRules | undefined>
  /** All commands take effect in one moment, or none does and it rejects. */
  apply(transaction: string): Promise<void>
  /**
   * Nothing else has removed the table since, nor its rules. Those are looked for where `thorough` is set: it takes nft half a second
   * with 5,000 Services. Otherwise no process is started as long as the canary rule answers.
   */
  isIntact(thorough: boolean): Promise<boolean>
  /** Without a table it does nothing. */
  remove(): Promise<void>
}

export type NetworkManagerNeeds = {
  readonly table: RuleTable
  readonly reads: {
    /**
     * What each part wants. The first part decides whether there is a table: undefined while the fleet has no network of its
     * own. Undefined of another part: nothing.
     */
    readonly rules: readonly [Reader<RuleSet | undefined>, ...Reader<RuleSet | undefined>[]]
    /** They are those that the controller wants now. False: those of the checkpoint, which may be a minute older than the kernel's. */
    readonly rulesCurrent: Reader<boolean>
    /** The rules of policies have all pods that run. */
    readonly policiesReady: Reader<boolean>
  }
  readonly writes: {
    /** Why the kernel does not have the rules that are wanted. */
    readonly ruleProblem: Cell<string | undefined>
    /** How often another program has removed them. */
    readonly ruleRemovals: Cell<number>
    /** What the kernel has, by identity; of an unknown state what it had last. */
    readonly appliedRules: Cell<readonly RuleSet[]>
  }
  readonly clock: Clock
  readonly log: Log
}

/** A restart of nftables.service or `nft flush ruleset` removes the rules of all; that is found within this time. */
const verifyMs = 30_000
/**
 * Verifications until a thorough one, which also finds a table that is present but empty. No program is known to leave
 * such a table.
 */
const thoroughEvery = 20
/**
 * Time for which the rules of an earlier agent stay while the controller's messages arrive; pods that start wait for
 * it.
 */
const holdMs = 8_000
/** Without those of policies a pod that runs would have connections that it must not have: the engine is waited for longer. */
const holdPoliciesMs = 60_000
const retry: BackoffSettings = { firstMs: 1_000, maxMs: verifyMs }

export function networkManager({ table, reads, writes, clock, log }: NetworkManagerNeeds): Loop {
  const changed = alarm(clock)
  /** What the kernel has of each part. `unknown`: to be put in place as a whole. `none`: there is no table, or it is not ours to keep. */
  let applied: readonly RuleSet[] | 'none' | 'unknown' = 'none'
  const retired = retiredChains({ table, clock, log })
  let verifiedMs = 0
  let verified = 0
  let failures = 0

  const wanted = (): readonly RuleSet[] | 'none' => {
    const [first, ...others] = reads.rules.map((part) => part.get())
    return first === undefined ? 'none' : [baseRules(table.family), first, ...others.map((rules) => rules ?? noRules)]
  }

  const apply = async (transaction: RuleTransaction) => {
    await table.apply(transaction.commands)
    retired.add(transaction.retired)
  }

  const sync = async () => {
    const after = wanted()
    const before = applied
    // Until a call has succeeded, the state is not certain.
    if (after === 'none') {
      if (before === 'none') return
      applied = 'unknown'
      await table.remove()
    } else if (typeof before === 'string') {
      applied = 'unknown'
      retired.clear()
      await apply(allRules(await table.list(), after, table.family))
      log.info('Rules of the network applied', { chains: chainsOf(after), ...ofFamily(table.family) })
      verifiedMs = clock.monotonicMs()
    } else {
      const changes = after.map((next, index) => ({ before: before[index] ?? noRules, after: next }))
      const transaction = ruleChanges(changes, table.family)
      applied = 'unknown'
      if (transaction.commands !== '') await apply(transaction)
    }
    applied = after
    writes.appliedRules.set(after === 'none' ? [] : after)
  }

  const verify = async () => {
    if (typeof applied === 'string' || clock.monotonicMs() - verifiedMs < verifyMs) return
    verifiedMs = clock.monotonicMs()
    if (await table.isIntact(++verified % thoroughEvery === 0)) return
    log.warn('Rules of the network were removed by another program; they are applied again', ofFamily(table.family))
    applied = 'unknown'
    writes.ruleRemovals.set(writes.ruleRemovals.get() + 1)
  }

  const pass = async () => {
    try {
      await verify()
      await sync()
      if (typeof applied !== 'string') await retired.deleteUnused(applied)
      failures = 0
      writes.ruleProblem.set(undefined)
    } catch (error) {
      applied = 'unknown'
      const problem = storyOf(error)
      if (writes.ruleProblem.get() !== problem)
        log.error('Cannot apply the rules of the network', { error, ...ofFamily(table.family) })
      writes.ruleProblem.set(problem)
      failures++
    }
  }

  return {
    name: table.family.family === 'IPv4' ? 'network' : 'network-ipv6',
    async run(signal) {
      const stops = [
        ...reads.rules.map((part) => part.onChange(changed.ring)),
        reads.rulesCurrent.onChange(changed.ring),
        reads.policiesReady.onChange(changed.ring),
      ]
      try {
        await hold({ table, reads, clock }, changed, signal)
        while (!signal.aborted) {
          await pass()
          const idleMs = applied === 'none' ? longestTimerMs : leftMs(verifiedMs + verifyMs, clock)
          const restMs = retired.isEmpty() ? idleMs : retiredMs
          await changed.sleep(failures > 0 ? longestBackoffMs(failures - 1, retry) : restMs, signal)
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

function leftMs(endMs: number, clock: Clock): number {
  return Math.max(0, endMs - clock.monotonicMs())
}

/** Leaves what an earlier agent has put in place until the rules of now are known, or for some time. */
async function hold(
  { table, reads, clock }: Pick<NetworkManagerNeeds, 'table' | 'reads' | 'clock'>,
  changed: Alarm,
  signal: AbortSignal,
): Promise<void> {
  const { rulesCurrent, policiesReady } = reads
  const startMs = clock.monotonicMs()
  const endMs = () => {
    if (!policiesReady.get()) return startMs + holdPoliciesMs
    return rulesCurrent.get() ? startMs : startMs + holdMs
  }
  const restMs = () => endMs() - clock.monotonicMs()
  if (restMs() <= 0 || !(await table.isIntact(false).catch(() => false))) return
  while (!signal.aborted && restMs() > 0) await changed.sleep(restMs(), signal)
}

/** For a log: most fleets have IPv4 rules only. */
function ofFamily({ family }: RuleFamily): { readonly family?: IPFamily } {
  return family === 'IPv4' ? {} : { family }
}

function chainsOf(sets: readonly RuleSet[]): number {
  return sets.reduce((count, { chains }) => count + chains.size, 0)
}
