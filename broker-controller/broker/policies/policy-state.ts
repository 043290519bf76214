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
 * Of one policy; a peer counts for each named port. Each is matched with each pod of its namespaces: 1,000 with 5,000 pods take some
 * seconds of a slow machine, in short turns.
 */
const mostSelectors = 1_000

/** Everything that the API accepts is understood; blocks of IPv6 match no packet. */
export function policyState({ metadata, spec = {} }: NetworkPolicy): SelectingPolicy {
  const { namespace = '', name = '' } = metadata
  const { podSelector = {}, policyTypes = [] } = spec
  const isTooLarge = selectorCount(spec) > mostSelectors
  const { ingress = [], egress = [] } = isTooLarge ? {} : spec
  const selectors = new Map<string, PeerSelector>()
  const select = (selector: PeerSelector) => {
    selectors.set(selector.name, selector)
    return selector.name
  }
  const state: PolicyState = {
    namespace,
    name,
    podSelector,
    ...(policyTypes.includes('Ingress') && {
      ingress: ingress.map(({ from, ports }) => ingressRule(namespace, from, ports, select)),
    }),
    ...(policyTypes.includes('Egress') && {
      egress: egress.map(({ to, ports }) => egressRule(namespace, to, ports, select)),
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

type Select = (selector: PeerSelector) => string
type Peers = readonly NetworkPolicyPeer[] | undefined
type Ports = readonly NetworkPolicyPort[] | undefined

function ingressRule(namespace: string, from: Peers, ports: Ports, select: Select): PolicyRuleState {
  return {
    ...peersOf(namespace, from, select),
    ...(isAny(ports) ? {} : { ports: (ports ?? []).map(portState) }),
  }
}

/** The number of a named port is that of the pod at the other end, so its set has addresses with ports. */
function egressRule(namespace: string, to: Peers, ports: Ports, select: Select): PolicyRuleState {
  if (isAny(ports)) return peersOf(namespace, to, select)
  const named = (ports ?? []).flatMap(({ port, protocol }): readonly NamedPort[] =>
    typeof port === 'string' ? [{ name: port, protocol: protocolOf(protocol) }] : [],
  )
  const anyone: Peers = [{ namespaceSelector: {} }]
  const pods = (isAny(to) ? anyone : (to ?? [])).filter(({ ipBlock }) => ipBlock === undefined)
  const destinations = named.flatMap((port) => pods.map((peer) => select(selectorOf(namespace, peer, port))))
  return {
    // A rule of which no numbered port is left needs no addresses of its peers.
    ...((ports ?? []).length === named.length ? {} : peersOf(namespace, to, select)),
    ports: (ports ?? []).filter(({ port }) => typeof port !== 'string').map(portState),
    ...(destinations.length > 0 && { destinations: [...new Set(destinations)] }),
  }
}

function peersOf(namespace: string, peers: Peers, select: Select): Pick<PolicyRuleState, 'peers'> {
  if (isAny(peers)) return {}
  const given = peers ?? []
  const sets = given
    .filter(({ ipBlock }) => ipBlock === undefined)
    .map((peer) => select(selectorOf(namespace, peer, undefined)))
  const ranges = addressRanges(given.flatMap(({ ipBlock }) => ipBlock ?? []))
  return { peers: { sets: [...new Set(sets)], ranges } }
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
