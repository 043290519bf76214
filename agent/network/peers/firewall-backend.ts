/** Which of Docker's firewall backends leaves a place for the network of pods. */

/** As the engine reports it: `nftables+firewalld`, for example. */
export type FirewallBackend = string | undefined

/** What to do about it. */
export const firewallRemedy = 'Set "firewall-backend": "iptables" in /etc/docker/daemon.json, and restart Docker'

/**
 * Why packets between nodes are dropped, with what to do; undefined: they are not. With nftables, from Docker 29 on, an `accept` of another
 * table does not keep Docker from dropping a packet, and nothing leads to DOCKER-USER, though the chain may still be there
 * (docs.docker.com/engine/network/firewall-nftables).
 */
export function firewallProblem(backend: FirewallBackend): string | undefined {
  if (!/^nftables\b/.test(backend ?? '')) return undefined
  return "Docker's firewall backend is nftables: it drops packets between nodes, and has no chain DOCKER-USER to let them pass"
}
