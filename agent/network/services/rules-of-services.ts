/** The rules of all Services: the chains that each new connection passes, and the parts of every Service, merged. */
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import { forwardMark } from '../peers/peer-rules.ts'
import type { RuleFamily } from '../rule-family.ts'
import type { RuleChain, RuleElements, RuleSet } from '../rule-set.ts'
import {
  isMasqueraded,
  masqueradeLater,
  masqueradeMarked,
  noPiece,
  rejectChain,
  type ServicePiece,
  type SharedElements,
  sharedNames,
} from './service-piece.ts'
import { type ServiceNode, serviceRules } from './service-rules.ts'

/** By `namespace/name`. */
type StatesByName = ReadonlyMap<string, ServiceState>

/** What each Service adds, kept with the object: a change costs the Service that changed. Of one node only. */
export type ServicePieces = WeakMap<ServiceState, ServicePiece>

/** Fills `pieces`, in several turns of the event loop: 1,000 Services take a slow machine half a second. */
export async function preparePieces(services: StatesByName, node: ServiceNode, pieces: ServicePieces): Promise<void> {
  for (const state of services.values()) {
    if (pieces.has(state)) continue
    pieceOf(state, node, pieces)
    await yieldTurn()
  }
}

function pieceOf(state: ServiceState, node: ServiceNode, pieces: ServicePieces): ServicePiece {
  const piece = pieces.get(state) ?? serviceRules(state, node)
  pieces.set(state, piece)
  return piece
}

/**
 * Rules for Services as one node needs them. Hand in the same objects for those that did not change. Sets whose elements are as they were
 * are the same object as before: an endpoint that changes seldom changes them, and of 1,000 Services they are most of what is made.
 */
export function rulesOfServices(
  node: ServiceNode,
  pieces: ServicePieces = new WeakMap(),
): (services: StatesByName) => RuleSet {
  const fixed = fixedChains(node)
  const defined = definitions(node.family)
  let last: { readonly pieces: readonly ServicePiece[]; readonly sets: RuleSet['sets'] } | undefined
  return (services) => {
    // In the order of names: where two Services claim one address and port, every node gives it to the same one.
    const found = [...services.keys()].sort().map((name) => {
      const state = services.get(name)
      return state === undefined ? noPiece : pieceOf(state, node, pieces)
    })
    const chains = new Map(fixed)
    for (const piece of found) for (const [name, chain] of piece.chains) chains.set(name, chain)
    const sets = last !== undefined && haveSameElements(last.pieces, found) ? last.sets : setsOf(found, defined)
    last = { pieces: found, sets }
    return { chains, sets }
  }
}

function setsOf(pieces: readonly ServicePiece[], defined: Definitions): RuleSet['sets'] {
  const sets = new Map<string, RuleElements>()
  const shared = new Map(sharedNames.map((name) => [name, new Map<string, string>()]))
  for (const piece of pieces) {
    for (const [name, set] of piece.affinitySets) sets.set(name, set)
    for (const [name, key, value] of piece.elements) {
      const elements = shared.get(name)
      if (elements?.has(key) === false) elements.set(key, value)
    }
  }
  for (const [name, elements] of shared) sets.set(name, { ...defined[name], elements })
  return sets
}

/** One by one, in the same order. Sets of affinity are taken for others: each endpoint has one of its own. */
function haveSameElements(before: readonly ServicePiece[], after: readonly ServicePiece[]): boolean {
  const isSame = (one: ServicePiece, other: ServicePiece | undefined) =>
    one === other ||
    (other !== undefined &&
      one.affinitySets.length === 0 &&
      other.affinitySets.length === 0 &&
      one.elements.length === other.elements.length &&
      one.elements.every((element, at) => element.every((text, part) => text === other.elements[at]?.[part])))
  return before.length === after.length && after.every((piece, index) => isSame(piece, before[index]))
}

type Definitions = { readonly [name in SharedElements]: Pick<RuleElements, 'kind' | 'type'> }

function definitions({ address }: RuleFamily): Definitions {
  const byAddress = { kind: 'map', type: `${address} . inet_proto . inet_service : verdict` } as const
  const byNodePort = { kind: 'map', type: 'inet_proto . inet_service : verdict' } as const
  return {
    'service-ips': byAddress,
    'no-endpoint-services': byAddress,
    'firewall-ips': byAddress,
    'service-nodeports': byNodePort,
    'no-endpoint-nodeports': byNodePort,
    'cluster-ips': { kind: 'set', type: address },
    'hairpin-ips': { kind: 'set', type: `${address} . ${address}` },
  }
}

const pass = `meta mark set meta mark or ${forwardMark}`

/**
 * The kernel enters chains of NAT with the first packet of a connection only. What a chain that was gone to does not settle goes
 * on behind the jump: a Local Service without endpoints here is refused only after pods and the node itself had their turn.
 */
function fixedChains(node: ServiceNode): ReadonlyMap<string, RuleChain> {
  const { clusterCIDR, serviceCIDR, family } = node
  const { ip, loopback } = family
  const destination = `${ip} daddr . meta l4proto . th dport`
  // Every address of the node but those of loopback: addresses come and go with DHCP, and rules that name none stay right.
  const toThisNode = `fib daddr type local ${ip} daddr != ${loopback} meta l4proto . th dport`
  const steps = ['jump service-firewall', 'jump service-dispatch', 'jump service-refusal']
  const chains: Readonly<Record<string, readonly string[]>> = {
    'services-prerouting': steps,
    'services-output': steps,
    'service-firewall': [`${destination} vmap @firewall-ips`],
    'service-dispatch': [
      // A route to the range of Services may lead here from outside; answers have to come back the same way.
      `${ip} daddr @cluster-ips ${ip} saddr != ${clusterCIDR} ${masqueradeLater}`,
      `${destination} vmap @service-ips`,
      `${toThisNode} vmap @service-nodeports`,
    ],
    'service-refusal': [
      `${destination} vmap @no-endpoint-services`,
      `${toThisNode} vmap @no-endpoint-nodeports`,
      `${ip} daddr @cluster-ips reject`,
      `${ip} daddr ${serviceCIDR} drop`,
    ],
    [rejectChain]: ['reject'],
    // Docker drops what it forwards to no container of its own, such as a device behind a Service: its connections carry both NATs.
    'services-forward': [
      `ct status dnat ${isMasqueraded} ${pass}`,
      `ct state established,related ct status dnat ct status snat ${pass}`,
    ],
    'services-postrouting': [
      masqueradeMarked,
      // An endpoint that reached itself: it would answer itself directly, past the translation.
      `ct status dnat ${ip} saddr . ${ip} daddr @hairpin-ips masquerade fully-random`,
    ],
  }
  return new Map(Object.entries(chains).map(([name, rules]) => [name, { rules }]))
}
