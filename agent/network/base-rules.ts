/** The chains that the kernel enters, and the chains in which the parts of the network put their rules. */
import type { BaseHook, RuleChain, RuleSet } from './rule-set.ts'

/** Before Docker's rules of the filter table (priority 0), which obey the mark that the forward chain sets. */
const beforeDocker = -10

type Entry = {
  readonly base: BaseHook
  /** That have rules there, in the order in which a packet meets them. Each costs every packet a jump. */
  readonly parts: readonly ('services' | 'peers' | 'balancers' | 'names')[]
}

/** Destination NAT takes place at −100, source NAT at 100 (netfilter_ipv4.h, NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC). */
const entries: readonly Entry[] = [
  { base: { type: 'nat', hook: 'prerouting', priority: -100 }, parts: ['services'] },
  { base: { type: 'nat', hook: 'output', priority: -100 }, parts: ['services'] },
  { base: { type: 'nat', hook: 'postrouting', priority: 100 }, parts: ['services', 'peers'] },
  // Packets between pods are the most: `peers` accepts them, and no later part has to look at them.
  { base: { type: 'filter', hook: 'forward', priority: beforeDocker }, parts: ['peers', 'services'] },
  { base: { type: 'filter', hook: 'input', priority: beforeDocker }, parts: ['peers', 'balancers', 'names'] },
]

/**
 * The chains that the parts fill: `services-prerouting`, `peers-forward` and so on. They are always there, as the base chains
 * jump to them.
 */
export const jumpPoints: ReadonlySet<string> = new Set(
  entries.flatMap(({ base, parts }) => parts.map((part) => `${part}-${base.hook}`)),
)

export const baseRules: RuleSet = {
  chains: new Map(
    entries.map(({ base, parts }): [string, RuleChain] => [
      base.hook,
      { base, rules: parts.map((part) => `jump ${part}-${base.hook}`) },
    ]),
  ),
  sets: new Map(),
}
