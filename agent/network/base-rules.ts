/** The chains that the kernel enters, and the chains in which the parts of the network put their rules. */
import type { BaseHook, RuleChain, RuleSet } from './rule-set.ts'

/** Before Docker's rules of the filter table (priority 0), which obey the mark that the forward chain sets. */
const beforeDocker = -10

/** Destination NAT takes place at −100, source NAT at 100 (netfilter_ipv4.h, NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC). */
const hooks: readonly BaseHook[] = [
  { type: 'nat', hook: 'prerouting', priority: -100 },
  { type: 'nat', hook: 'output', priority: -100 },
  { type: 'nat', hook: 'postrouting', priority: 100 },
  { type: 'filter', hook: 'forward', priority: beforeDocker },
  { type: 'filter', hook: 'input', priority: beforeDocker },
]

/** In the order in which a packet meets them. */
const partNames = ['services', 'peers', 'balancers', 'names'] as const

/**
 * The chains that the parts fill: `services-prerouting`, `peers-forward` and so on. They are always there, as the base chains
 * jump to them.
 */
export const jumpPoints: ReadonlySet<string> = new Set(
  hooks.flatMap(({ hook }) => partNames.map((part) => `${part}-${hook}`)),
)

export const baseRules: RuleSet = {
  chains: new Map(
    hooks.map((base): [string, RuleChain] => [
      base.hook,
      { base, rules: partNames.map((part) => `jump ${part}-${base.hook}`) },
    ]),
  ),
  sets: new Map(),
}
