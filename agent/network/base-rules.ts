/** The chains that the kernel enters, and the chains in which the parts of the network put their rules. */
import type { BaseHook, RuleChain, RuleSet } from './rule-set.ts'

/** Before Docker's rules of the filter table (priority 0), which obey the mark that the forward chain sets. */
const beforeDocker = -10

/** Before connections are tracked (netfilter_ipv4.h, NF_IP_PRI_RAW). */
export const beforeTracking = -300

type Entry = {
  /** Name of the chain that the kernel enters. Default: that of its hook. */
  readonly name?: string
  readonly base: BaseHook
  /** Parts with rules at this hook, in the order in which a packet meets them. Each costs every packet a jump. */
  readonly parts: readonly ('services' | 'peers' | 'multicast' | 'balancers' | 'names')[]
}

/** Destination NAT takes place at −100, source NAT at 100 (netfilter_ipv4.h, NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC). */
const entries: readonly Entry[] = [
  { base: { type: 'nat', hook: 'prerouting', priority: -100 }, parts: ['services'] },
  { base: { type: 'nat', hook: 'output', priority: -100 }, parts: ['services'] },
  { base: { type: 'nat', hook: 'postrouting', priority: 100 }, parts: ['services', 'peers'] },
  // Packets between pods are the most: `peers` accepts them, and no later part has to look at them.
  { base: { type: 'filter', hook: 'forward', priority: beforeDocker }, parts: ['peers', 'services'] },
  {
    base: { type: 'filter', hook: 'input', priority: beforeDocker },
    parts: ['peers', 'multicast', 'balancers', 'names'],
  },
  { name: 'sent', base: { type: 'filter', hook: 'output', priority: beforeTracking }, parts: ['peers', 'names'] },
]

function chainOf({ name, base }: Entry): string {
  return name ?? base.hook
}

/**
 * The chains that the parts fill: `services-prerouting`, `peers-forward` and so on. They are always there, as the base chains
 * jump to them.
 */
export const jumpPoints: ReadonlySet<string> = new Set(
  entries.flatMap((entry) => entry.parts.map((part) => `${part}-${chainOf(entry)}`)),
)

export const baseRules: RuleSet = {
  chains: new Map(
    entries.map((entry): [string, RuleChain] => {
      const name = chainOf(entry)
      return [name, { base: entry.base, rules: entry.parts.map((part) => `jump ${part}-${name}`) }]
    }),
  ),
  sets: new Map(),
}
