/** A NetworkPolicy → what a node is sent of it, and the selectors whose addresses it needs. */
import type { LabelSelector } from '../../../api/meta.ts'
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../../../api/network/network-policy.ts'
import type { PolicyPortState, PolicyRuleState, PolicyState } from '../../../api/network/node-policies.ts'
import { addressRanges } from './address-ranges.ts'
import { type NamedPort, type PeerSelector, peerSelector } from './peer-selector.ts'

export type SelectingPolicy = {
  readonly state: PolicyState
  /** By the name of their sets. */
  readonly selectors: ReadonlyMap<string, PeerSelector>
  /** It has more peers than are followed: it allows nothing. */
  readonly isTooLarge: boolean
}

/**
 * Selectors of one policy; a peer counts for each named port. Each is matched with each pod of its namespaces: 1,000 with
 * 5,000 pods take some seconds of a slow machine, in short turns.
 */
const mostSelectors = 1_000

/**
 * Everything that the API accepts is understood. `ipv6`: pods of the fleet have addresses of both families; otherwise IPv6 blocks match no
 * packet.
 */
export function policyState({ metadata, spec = {} }: NetworkPolicy, ipv6 = false): SelectingPolicy {
  const { namespace = '', name = '' } = metadata
  const { podSelector = {}, policyTypes = [] } = spec
  const isTooLarge = selectorCount(spec) > mostSelectors
  const { ingress = [], egress = [] } = isTooLarge ? {} : spec
  const selectors = new Map<string, PeerSelector>()
  const select = (selector: PeerSelector) => {
    selectors.set(selector.name, selector)
    return selector.name
  }
  const of: RuleContext = { namespace, select, ipv6 }
  const state: PolicyState = {
    namespace,
    name,
    podSelector,
    ...(policyTypes.includes('Ingress') && {
      ingress: ingress.map(({ from, ports }) => ingressRule(of, from, ports)),
    }),
    ...(policyTypes.includes('Egress') && {
      egress: egress.map(({ to, ports }) => egressRule(of, to, ports)),
    }),
  }
  return { state, selectors, isTooLarge }
}

function selectorCount({ ingress = [], egress = [] }: NetworkPolicySpec): number {
  const ofIngress = ingress.map(({ from = [] }) => selecting(from))
  const ofEgress = egress.map(({ to = [], ports = [] }) => {
    const named = ports.filter(({ port }) => typeof port === 'string').length
    return to.length === 0 ? named : selecting(to) * (1 + named)
  })
  return [...ofIngress, ...ofEgress].reduce((sum, count) => sum + count, 0)
}

function selecting(peers: readonly NetworkPolicyPeer[]): number {
  return peers.filter(({ ipBlock }) => ipBlock === undefined).length
}

/** The policy that a rule is of. */
type RuleContext = {
  readonly namespace: string
  /** Gives the name of the set. */
  readonly select: (selector: PeerSelector) => string
  readonly ipv6: boolean
}
type Peers = readonly NetworkPolicyPeer[] | undefined
type Ports = readonly NetworkPolicyPort[] | undefined

function ingressRule(of: RuleContext, from: Peers, ports: Ports): PolicyRuleState {
  return {
    ...peersOf(of, from),
    ...(isAny(ports) ? {} : { ports: (ports ?? []).map(portState) }),
  }
}

/** The number of a named port is that of the pod at the other end, so its set has addresses with ports. */
function egressRule(of: RuleContext, to: Peers, ports: Ports): PolicyRuleState {
  const { namespace, select } = of
  if (isAny(ports)) return peersOf(of, to)
  const named = (ports ?? []).flatMap(({ port, protocol }): readonly NamedPort[] =>
    typeof port === 'string' ? [{ name: port, protocol: protocolOf(protocol) }] : [],
  )
  const anyone: Peers = [{ namespaceSelector: {} }]
  const pods = (isAny(to) ? anyone : (to ?? [])).filter(({ ipBlock }) => ipBlock === undefined)
  const destinations = named.flatMap((port) => pods.map((peer) => select(selectorOf(namespace, peer, port))))
  return {
    // A rule of which no numbered port is left needs no addresses of its peers.
    ...((ports ?? []).length === named.length ? {} : peersOf(of, to)),
    ports: (ports ?? []).filter(({ port }) => typeof port !== 'string').map(portState),
    ...(destinations.length > 0 && { destinations: [...new Set(destinations)] }),
  }
}

function peersOf({ namespace, select, ipv6 }: RuleContext, peers: Peers): Pick<PolicyRuleState, 'peers'> {
  if (isAny(peers)) return {}
  const given = peers ?? []
  const sets = given
    .filter(({ ipBlock }) => ipBlock === undefined)
    .map((peer) => select(selectorOf(namespace, peer, undefined)))
  const blocks = given.flatMap(({ ipBlock }) => ipBlock ?? [])
  const ipv6Ranges = ipv6 ? addressRanges(blocks, 'IPv6') : []
  return {
    peers: {
      sets: [...new Set(sets)],
      ranges: addressRanges(blocks),
      ...(ipv6Ranges.length > 0 && { ipv6Ranges }),
    },
  }
}

/** An empty list restricts nothing, like none (networking/v1 NetworkPolicyIngressRule). */
function isAny(items: readonly unknown[] | undefined): boolean {
  return items === undefined || items.length === 0
}

function selectorOf(
  namespace: string,
  { namespaceSelector, podSelector }: NetworkPolicyPeer,
  port: NamedPort | undefined,
): PeerSelector {
  const from: string | LabelSelector = namespaceSelector ?? namespace
  return peerSelector(from, podSelector, port)
}

function portState({ protocol, port, endPort }: NetworkPolicyPort): PolicyPortState {
  return {
    protocol: protocolOf(protocol),
    ...(typeof port === 'number' && { port }),
    ...(endPort !== undefined && { endPort }),
    ...(typeof port === 'string' && { name: port }),
  }
}

function protocolOf(protocol: string | undefined): 'TCP' | 'UDP' | 'SCTP' {
  return protocol === 'UDP' || protocol === 'SCTP' ? protocol : 'TCP'
}
