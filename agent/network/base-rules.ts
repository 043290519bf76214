/** The chains that the kernel enters, and the chains in which the parts of the network put their rules. */
import type { ByFamily } from '../../api/text/ip-address.ts'
import { canaryRule } from './canary-rule.ts'
import { ipv4Rules, ipv6Rules, type RuleFamily } from './rule-family.ts'
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
  /** Rules of its own, behind those of the parts. */
  readonly rules?: (family: RuleFamily) => readonly string[]
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
  {
    name: 'sent',
    base: { type: 'filter', hook: 'output', priority: beforeTracking },
    parts: ['peers', 'names'],
    rules: (family) => [canaryRule(family)],
  },
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

const made: ByFamily<RuleSet> = { IPv4: rulesOf(ipv4Rules), IPv6: rulesOf(ipv6Rules) }

/** The same object each time. */
export function baseRules({ family }: RuleFamily): RuleSet {
  return made[family]
}

function rulesOf(family: RuleFamily): RuleSet {
  return {
    chains: new Map(
      entries.map((entry): [string, RuleChain] => {
        const name = chainOf(entry)
        const jumps = entry.parts.map((part) => `jump ${part}-${name}`)
        return [name, { base: entry.base, rules: [...jumps, ...(entry.rules?.(family) ?? [])] }]
      }),
    ),
    sets: new Map(),
  }
}
