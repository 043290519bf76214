/** What passes the routers of sites: packets of WireGuard, those with addresses of pods, and others. */
import { usualWireguardPort as port } from '../../api/network/wireguard.ts'
import type { NatSites, SiteMachine } from './nat-sites.ts'
import { eventually } from './wait.ts'

export type CountedPackets = 'wireguard' | 'wireguard by ipv6' | 'pods' | 'others'

/** How many have passed a router since. */
export type RouterCount = (what: CountedPackets) => Promise<number>

/** Begins at zero, also where it counts already. `pods`: the ranges of their addresses. `others` are for neither the controller nor a name server. */
export async function countOnRouters(
  { east, west, middle, network }: NatSites,
  pods: readonly string[],
): Promise<readonly RouterCount[]> {
  // Until then it is another port, and a kernel answers packets to one where nothing listens.
  for (const { name, wireguard } of [east, west, middle])
    await eventually(
      `WireGuard listens on ${name}`,
      async () => (await wireguard('show', 'bramble-wg', 'listen-port')).trim() === `${port}`,
    )
  return await Promise.all([east, west].map(({ router }) => countOn(router, pods, network.hostAddress)))
}

async function countOn(router: SiteMachine['router'], pods: readonly string[], host: string): Promise<RouterCount> {
  const counted = (match: string, what: CountedPackets) =>
    `add rule inet seen forward ${match} counter comment "${what}"`
  const beyondHost = `ip daddr != ${host} ip saddr != ${host}`
  const commands = [
    ...['add table inet seen', 'delete table inet seen', 'add table inet seen'],
    'add chain inet seen forward { type filter hook forward priority 0; }',
    counted(`meta nfproto ipv4 udp dport ${port}`, 'wireguard'),
    counted(`meta nfproto ipv6 udp dport ${port}`, 'wireguard by ipv6'),
    ...pods.flatMap((range) => {
      const ip = range.includes(':') ? 'ip6' : 'ip'
      return [counted(`${ip} saddr ${range}`, 'pods'), counted(`${ip} daddr ${range}`, 'pods')]
    }),
    counted(`${beyondHost} udp dport != { ${port}, 53 } udp sport != { ${port}, 53 }`, 'others'),
    counted(`${beyondHost} meta l4proto != udp`, 'others'),
    counted(`meta nfproto ipv6 udp dport != ${port} udp sport != ${port}`, 'others'),
    counted('meta nfproto ipv6 meta l4proto != udp', 'others'),
  ]
  await router.run('sh', '-c', `printf '%s\n' '${commands.join('\n')}' | nft -f -`)
  return async (what) => {
    const rules = await router.run('nft', 'list', 'table', 'inet', 'seen')
    const found = [...rules.matchAll(/packets (\d+) bytes \d+ comment "([^"]+)"/g)]
    return found.reduce((sum, [, packets, name]) => (name === what ? sum + Number(packets) : sum), 0)
  }
}
