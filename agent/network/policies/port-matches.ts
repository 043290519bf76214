/** The ports of a rule of a NetworkPolicy as matches of nft. */
import type { PolicyPortState } from '../../../api/network/node-policies.ts'
import type { RuleFamily } from '../rule-family.ts'

/** First and last number. */
type Range = readonly [first: number, last: number]

/**
 * A match for the numbers of each protocol, and one for each name, with a blank at its end. Numbers of ranges that overlap are joined: nft
 * refuses a set with such.
 */
export function portMatches(ports: readonly PolicyPortState[], { ip }: RuleFamily): readonly string[] {
  const named = ports.flatMap(({ name, protocol }) => (name === undefined ? [] : [namedPortSet(name, protocol)]))
  return [
    ...(['TCP', 'UDP', 'SCTP'] as const).flatMap((protocol) =>
      numberMatch(
        protocol.toLowerCase(),
        ports.filter((one) => one.protocol === protocol && one.name === undefined),
      ),
    ),
    ...[...new Set(named)].map((set) => `${ip} daddr . meta l4proto . th dport @${set} `),
  ]
}

/** The set of local pods that have a port of this name. */
export function namedPortSet(name: string, protocol: string): string {
  return `policy-port-${protocol.toLowerCase()}-${name}`
}

function numberMatch(protocol: string, ports: readonly PolicyPortState[]): readonly string[] {
  if (ports.length === 0) return []
  if (ports.some(({ port }) => port === undefined)) return [`meta l4proto ${protocol} `]
  const ranges = ports
    .map(({ port = 0, endPort = port }): Range => [port, endPort])
    .sort(([one], [other]) => one - other)
  const joined: Range[] = []
  for (const range of ranges) {
    const last = joined.at(-1)
    if (last !== undefined && range[0] <= last[1] + 1)
      joined[joined.length - 1] = [last[0], Math.max(last[1], range[1])]
    else joined.push(range)
  }
  const texts = joined.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`))
  return [`${protocol} dport { ${texts.join(', ')} } `]
}
