/** What a program may leave in the network of a machine: rules, links, addresses, routes and settings of the kernel. */
import type { Machine } from './machine.ts'

/** By kind, without what counts packets or time. */
export type NetworkTraces = { readonly [kind: string]: readonly string[] }

/** Settings that count what the kernel does. */
const counting = /^net\.netfilter\.nf_conntrack_count|^net\.ipv4\.tcp_mem|^net\.ipv4\.udp_mem/

export async function networkTraces({ run }: Machine): Promise<NetworkTraces> {
  const lines = async (command: string) => (await run(command)).split('\n').map(plain).filter(Boolean)
  const settings = (await lines('sysctl --all --ignore 2>/dev/null')).filter((one) => one.startsWith('net.'))
  return {
    iptables: byChain(await lines('iptables-save')),
    ip6tables: byChain(await lines('ip6tables-save')),
    nftables: byChain(await lines('nft list ruleset')),
    links: await lines("ip -brief link | awk '{ print $1, $2 }'"),
    addresses: await lines("ip -oneline address | awk '{ print $2, $3, $4 }'"),
    routes: (await lines('ip route show table all; ip -6 route show table all')).sort(),
    rules: await lines('ip rule'),
    networks: (await lines("docker network ls --format '{{.Driver}} {{.Name}}'")).sort(),
    settings: settings.filter((one) => !counting.test(one)),
  }
}

function plain(line: string): string {
  return line
    .replace(/^#.*/, '')
    .replace(/\[\d+:\d+\]/, '')
    .replace(/counter packets \d+ bytes \d+/, 'counter')
    .replace(/@if\d+/, '')
    .replace(/ expires \d+sec/, '')
    .trim()
}

/** The order of rules matters, that of tables and chains does not: Docker makes them at each start. */
function byChain(lines: readonly string[]): readonly string[] {
  let [table, chain] = ['', '']
  const placed = lines
    .filter((line) => line !== '}')
    .map((line) => {
      if (/^\*|^table /.test(line)) [table, chain] = [line, '']
      chain = /^(?::|-A |chain |set |map )(\S+)/.exec(line)?.[1] ?? chain
      return { place: `${table} ${chain}`, line }
    })
  const places = [...new Set(placed.map(({ place }) => place))].sort()
  return places.flatMap((place) => placed.flatMap((one) => (one.place === place ? [`${place} ${one.line}`] : [])))
}
