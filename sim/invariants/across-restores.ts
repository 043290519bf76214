/** A rule about what is stored begins again with a restored backup: what came after the backup is lost, and what it has is there. */
import type { TimedFact } from '../story/facts.ts'
import type { Invariant } from './invariant.ts'

type SinceRestore<S> = {
  readonly rule: Invariant<S>
  readonly state: S
  /** Facts with such a version or an earlier one are from before the restore: answers that arrive late. */
  readonly version: number
}

/** `open`: the rule with nothing remembered. */
export function acrossRestores<S>(open: () => Invariant<S>): Invariant<SinceRestore<S>> {
  const opened = (version: number): SinceRestore<S> => {
    const rule = open()
    return { rule, state: rule.initial, version }
  }
  const { name, meets } = open()
  return {
    name,
    initial: opened(0),
    ...(meets !== undefined && { meets }),
    next(since, fact) {
      if (fact.kind === 'restored') return { state: opened(fact.version) }
      if (isFromBefore(fact, since.version)) return { state: since }
      const { state, ...judgement } = since.rule.next(since.state, fact)
      return { ...judgement, state: { ...since, state } }
    },
  }
}

function isFromBefore(fact: TimedFact, version: number): boolean {
  return 'version' in fact && fact.version !== undefined && fact.version <= version
}
