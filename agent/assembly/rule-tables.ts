/** The tables of rules in the kernel, one of each IP family, and what each is made of. */
import type { Loop } from '../../daemon/run.ts'
import { ownedTable } from '../adapters/network/network-owner.ts'
import { nftTable } from '../adapters/network/nft.ts'
import { networkManager } from '../network/network-manager.ts'
import type { NetworkParts } from './network.ts'

/** The loops that keep both tables as the parts of the network want them. */
export function ruleLoops({ board, machine, owner, ipv6, ipv6Table, log }: NetworkParts): readonly Loop[] {
  const { clockFor } = machine.watch
  // Where IPv6 cannot be kept away again, the loop of peers tries it again, and reports why.
  const observe = (chains: string | undefined) => ipv6.observe(chains).catch(() => undefined)
  const { peerRules, serviceRules, balancerRules, nameRules, mdnsRules, policyRules, hostPortRules } = board
  const ofIPv4 = networkManager({
    table: ownedTable(nftTable('nft', observe), owner),
    reads: {
      rules: [peerRules, serviceRules, balancerRules, nameRules, mdnsRules, policyRules, hostPortRules],
      rulesCurrent: board.rulesCurrent,
      policiesReady: board.policiesReady,
    },
    writes: board,
    clock: clockFor('network'),
    log,
  })
  const ofIPv6 = networkManager({
    table: ipv6Table,
    reads: {
      rules: [
        board.ipv6PeerRules,
        board.ipv6ServiceRules,
        board.ipv6BalancerRules,
        board.ipv6MdnsRules,
        board.ipv6PolicyRules,
        board.ipv6HostPortRules,
      ],
      rulesCurrent: board.ipv6RulesCurrent,
      policiesReady: board.ipv6PoliciesReady,
    },
    writes: { ruleProblem: board.ipv6RuleProblem, appliedRules: board.ipv6AppliedRules },
    clock: clockFor('network-ipv6'),
    log,
  })
  return [ofIPv4, ofIPv6]
}
