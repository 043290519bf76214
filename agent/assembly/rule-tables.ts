/** The tables of rules in the kernel, one of each IP family, and what each is made of. */
import { ipv4Rules } from '../../agent/network/rule-family.ts'
import { type ByFamily, ipFamilies } from '../../api/text/ip-address.ts'
import type { Reader } from '../../daemon/cell.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { type NetworkOwner, ownedTable } from '../adapters/network/network-owner.ts'
import { nftTable } from '../adapters/network/nft/nft.ts'
import { answersCanary } from '../adapters/network/nft/rule-canary.ts'
import { networkManager, type RuleTable } from '../network/network-manager.ts'
import type { IPv6Guard } from '../network/peers/ipv6-guard.ts'
import type { RuleSet } from '../network/rule-set.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

type RuleTableParts = {
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: Pick<AgentMachine, 'watch'>
  readonly owner: NetworkOwner
  readonly ipv6: IPv6Guard
  readonly ipv6Table: RuleTable
  readonly log: Log
}

/** The loops that keep both tables as the parts of the network want them. */
export function ruleLoops({ board, write, machine, owner, ipv6, ipv6Table, log }: RuleTableParts): readonly Loop[] {
  const { clockFor } = machine.watch
  // Where IPv6 cannot be kept away again, the loop of peers tries it again, and reports why.
  const observe = (chains: string | undefined) => ipv6.observe(chains).catch(() => undefined)
  const isAnswering = async () => (await answersCanary(ipv4Rules)) && (await ipv6.isAnswering())
  const table = {
    IPv4: ownedTable(nftTable(ipv4Rules, 'nft', { isAnswering, observe }), owner),
    IPv6: ipv6Table,
  }
  const { peerRules, serviceRules, balancerRules, mdnsRules, policyRules, hostPortRules } = board
  const { ruleProblem, ruleRemovals, appliedRules } = write('ruleProblem', 'ruleRemovals', 'appliedRules')
  return ipFamilies.map((family) => {
    const others: readonly ByFamily<Reader<RuleSet | undefined>>[] = [mdnsRules, policyRules, hostPortRules]
    // The name server has an IPv4 address only.
    const names = family === 'IPv4' ? [board.nameRules] : []
    const fleet = [serviceRules[family], balancerRules[family], ...names]
    return networkManager({
      table: table[family],
      reads: {
        rules: [peerRules[family], ...fleet, ...others.map((cells) => cells[family])],
        rulesCurrent: board.rulesCurrent[family],
        policiesReady: board.policiesReady[family],
      },
      writes: {
        ruleProblem: ruleProblem[family],
        ruleRemovals: ruleRemovals[family],
        appliedRules: appliedRules[family],
      },
      clock: clockFor(family === 'IPv4' ? 'network' : 'network-ipv6'),
      log,
    })
  })
}
