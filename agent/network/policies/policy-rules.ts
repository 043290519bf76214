/**
 * The rules of NetworkPolicies for the pods of this node, in chains of their own before those that forward. A pod that no policy selects
 * is in none of them.
 */
import type { PeerSetState, PoliciesMessage, PolicyRuleState, PolicyState } from '../../../api/network/node-policies.ts'
import { type Labels, labelMatcher, requirementsOf } from '../../../api/selectors.ts'
import type { RuleFamily } from '../rule-family.ts'
import type { RuleChain, RuleElements, RuleSet } from '../rule-set.ts'
import { isolationMap, podChain, policyChain } from './policy-chains.ts'
import { type Direction, directions, entryChains } from './policy-entry.ts'
import { namedPortSet, portMatches } from './port-matches.ts'

/** A pod of this node that has an address of its own. */
export type LocalPod = {
  readonly namespace: string
  readonly name: string
  readonly ip: string
  /** Its IPv6 address, in canonical form; undefined: it has none. */
  readonly ipv6?: string
  readonly labels: Labels | undefined
  /** Those with names. */
  readonly ports: readonly NamedContainerPort[]
  /** undefined: it has none. */
  readonly hostPorts?: readonly PodHostPort[]
  /** Its namespace need not exist in the API, so that its policies need not be known. */
  readonly isStatic: boolean
  /** undefined: it does not run. */
  readonly sandbox?: PodSandbox
}
/** The container that has the network of a pod. `mac`: as the engine gave it, `02:42:0a:f4:01:05`. */
export type PodSandbox = { readonly id: string; readonly pid: number; readonly mac: string }
/** `port`: of the node. `hostIP`: '' at each of its addresses. */
export type PodHostPort = {
  readonly protocol: 'tcp' | 'udp' | 'sctp'
  readonly port: number
  readonly containerPort: number
  readonly hostIP: string
}
export type NamedContainerPort = { readonly name: string; readonly protocol: string; readonly port: number }

/** `closed`: the policies of its namespace are not known, and it has no connections. */
export type PodState = 'open' | 'isolated' | 'closed'

/** By UID: the pod for which the rules were made. Those of a family have the pods with an address of it. */
export type PolicyRules = RuleSet & { readonly pods: ReadonlyMap<string, LocalPod & { readonly state: PodState }> }

/** What leads to them, and the chains themselves by name. */
type PolicyChains = { readonly jump: string; readonly chains: ReadonlyMap<string, RuleChain> }

/** What is made of a message for one family, kept with its objects: a pod that comes or goes costs no policy again. */
export type PolicyParts = {
  readonly matchers: WeakMap<PolicyState, (labels: Labels | undefined) => boolean>
  readonly chains: WeakMap<PolicyState, Partial<Readonly<Record<Direction, PolicyChains>>>>
  readonly sets: WeakMap<PeerSetState, RuleElements>
}

export function noParts(): PolicyParts {
  return { matchers: new WeakMap(), chains: new WeakMap(), sets: new WeakMap() }
}

/** `pods`: by UID. Without isolated pods there are no rules at all. `parts`: hand in the same one while the message is the same. */
export function policyRules(
  message: PoliciesMessage,
  pods: ReadonlyMap<string, LocalPod>,
  family: RuleFamily,
  parts: PolicyParts = noParts(),
): PolicyRules {
  const known = new Set(message.namespaces)
  const byNamespace = groupByNamespace(message.policies)
  const isolation: Isolation = {
    chains: new Map(),
    used: new Set(),
    usedChains: new Set(),
    entries: { ingress: new Map(), egress: new Map() },
  }
  const { chains, used, usedChains, entries } = isolation
  const found = new Map<string, LocalPod & { readonly state: PodState }>()
  for (const [uid, pod] of pods) {
    const address = addressOf(pod, family)
    if (address === undefined) continue
    if (!known.has(pod.namespace) && !pod.isStatic) {
      for (const direction of directions) entries[direction].set(address, 'drop')
      found.set(uid, { ...pod, state: 'closed' })
      continue
    }
    const policies = byNamespace.get(pod.namespace) ?? []
    const selecting = policies.filter((one) => matcherOf(one, parts)(pod.labels))
    for (const direction of directions) isolate(isolation, direction, { pod, address, selecting }, parts, family)
    const isIsolated = directions.some((direction) => entries[direction].has(address))
    found.set(uid, { ...pod, state: isIsolated ? 'isolated' : 'open' })
  }
  const isolated = [...found.values()].filter(({ state }) => state !== 'open')
  if (isolated.length === 0) return { chains: new Map(), sets: new Map(), pods: found }
  const ofPolicies = [...usedChains].flatMap((one) => [...one.chains])
  const type = family.address
  return {
    chains: new Map([...entryChains(family), ...chains, ...ofPolicies]),
    sets: new Map([
      ['policy-self', { kind: 'set', type: `${type} . ${type}`, elements: selfElements(isolated, family) }],
      [isolationMap('ingress'), { kind: 'map', type: `${type} : verdict`, elements: entries.ingress }],
      [isolationMap('egress'), { kind: 'map', type: `${type} : verdict`, elements: entries.egress }],
      ...peerSets(message, used, parts, family),
      ...portSets(used, isolated, family),
    ]),
    pods: found,
  }
}

/** What the isolated pods need. */
type Isolation = {
  /** Those of the pods. */
  readonly chains: Map<string, RuleChain>
  readonly used: Set<PolicyState>
  readonly usedChains: Set<PolicyChains>
  /** By address: where its packets go. */
  readonly entries: Readonly<Record<Direction, Map<string, string>>>
}

type SelectedPod = { readonly pod: LocalPod; readonly address: string; readonly selecting: readonly PolicyState[] }

/** Adds the chain of the pod, if a policy isolates it in this direction. */
function isolate(
  { chains, used, usedChains, entries }: Isolation,
  direction: Direction,
  { pod, address, selecting }: SelectedPod,
  parts: PolicyParts,
  family: RuleFamily,
): void {
  const isolating = selecting.filter((policy) => policy[direction] !== undefined)
  if (isolating.length === 0) return
  const usual = podChain(direction, pod)
  // A pod that was deleted at once may still run when its successor starts. With an IPv6 address the name could be too long.
  const chain = chains.has(usual) ? `${usual}/${pod.ip}` : usual
  entries[direction].set(address, `goto ${chain}`)
  const own = isolating.map((policy) => chainsOf(direction, policy, parts, family))
  chains.set(chain, { rules: [...own.map(({ jump }) => jump), 'drop'] })
  for (const one of own) usedChains.add(one)
  for (const policy of isolating) used.add(policy)
}

function addressOf({ ip, ipv6 }: LocalPod, { family }: RuleFamily): string | undefined {
  return family === 'IPv4' ? ip : ipv6
}

function groupByNamespace(policies: readonly PolicyState[]): ReadonlyMap<string, readonly PolicyState[]> {
  const groups = new Map<string, PolicyState[]>()
  for (const policy of policies) {
    const group = groups.get(policy.namespace)
    if (group === undefined) groups.set(policy.namespace, [policy])
    else group.push(policy)
  }
  return groups
}

function selfElements(pods: readonly LocalPod[], family: RuleFamily): ReadonlyMap<string, string> {
  const addresses = pods.flatMap((pod) => addressOf(pod, family) ?? [])
  return new Map(addresses.map((address) => [`${address} . ${address}`, '']))
}

function matcherOf(policy: PolicyState, { matchers }: PolicyParts): (labels: Labels | undefined) => boolean {
  const known = matchers.get(policy)
  if (known !== undefined) return known
  const requirements = requirementsOf(policy.podSelector)
  // An invalid selector selects everything: pods are closed rather than open.
  const made = requirements?.ok === true ? labelMatcher(requirements.value) : () => true
  matchers.set(policy, made)
  return made
}

function chainsOf(
  direction: Direction,
  policy: PolicyState,
  { chains }: PolicyParts,
  family: RuleFamily,
): PolicyChains {
  const known = chains.get(policy)
  const found = known?.[direction]
  if (found !== undefined) return found
  const made = policyChains(direction, policy, family)
  chains.set(policy, { ...known, [direction]: made })
  return made
}

/** Characters of the matches of ports that are repeated for each peer. */
const mostRepeated = 200

/**
 * A rule of nft for each pair of a match of the peer and a match of the port. Where that would be long, the ports have a chain of their
 * own: the text is never much longer than the policy.
 */
function policyChains(direction: Direction, policy: PolicyState, family: RuleFamily): PolicyChains {
  const name = policyChain(direction, policy)
  const { ip } = family
  const address = direction === 'ingress' ? `${ip} saddr` : `${ip} daddr`
  const own: string[] = []
  const all = new Map<string, RuleChain>([[name, { rules: own }]])
  for (const [index, { peers, ports, destinations = [] }] of (policy[direction] ?? []).entries()) {
    const fromPeers = peers === undefined ? [''] : peerMatches(address, peers, family)
    const verdicts = (ports === undefined ? [''] : portMatches(ports, family)).map((port) => `${port}accept`)
    const isShort = fromPeers.length <= 1 || verdicts.join('').length <= mostRepeated
    const portChain = `${name}/ports-${index}`
    if (!isShort) all.set(portChain, { rules: verdicts })
    const ends = isShort ? verdicts : [`jump ${portChain}`]
    own.push(...fromPeers.flatMap((peer) => ends.map((end) => `${peer}${end}`)))
    for (const set of destinations) own.push(`${ip} daddr . meta l4proto . th dport @${peerSetName(set)} accept`)
  }
  return { jump: `jump ${name}`, chains: all }
}

const everyAddress = {
  IPv4: '0.0.0.0-255.255.255.255',
  IPv6: '::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
} as const

type Peers = NonNullable<PolicyRuleState['peers']>

function peerMatches(address: string, peers: Peers, { family }: RuleFamily): readonly string[] {
  const { sets, ipv6Ranges = [] } = peers
  const ranges = family === 'IPv4' ? peers.ranges : ipv6Ranges
  if (ranges.includes(everyAddress[family])) return ['']
  const texts = ranges.map((range) => range.replace(/^(.*)-\1$/, '$1'))
  return [
    ...sets.map((name) => `${address} @${peerSetName(name)} `),
    ...(texts.length === 0 ? [] : [`${address} { ${texts.join(', ')} } `]),
  ]
}

function peerSetName(name: string): string {
  return `policy-peers-${name}`
}

/** Those that the rules name; one that the message does not have is empty. */
function peerSets(
  { sets }: PoliciesMessage,
  used: ReadonlySet<PolicyState>,
  { sets: made }: PolicyParts,
  { family, address }: RuleFamily,
): readonly (readonly [string, RuleElements])[] {
  const rules = [...used].flatMap(({ ingress = [], egress = [] }) => [...ingress, ...egress])
  const ofAddresses = new Set(rules.flatMap(({ peers }) => peers?.sets ?? []))
  const ofPorts = new Set(rules.flatMap(({ destinations = [] }) => destinations))
  const states = new Map(sets.map((set) => [`${set.kind} ${set.name}`, set]))
  const elementsOf = (kind: PeerSetState['kind'], name: string): RuleElements => {
    const state = states.get(`${kind} ${name}`)
    const known = state && made.get(state)
    if (known !== undefined) return known
    const present = family === 'IPv4' ? state?.elements : state?.ipv6Elements
    const elements = new Map((present ?? []).map((element) => [element, '']))
    const type = kind === 'address' ? address : `${address} . inet_proto . inet_service`
    const set: RuleElements = { kind: 'set', type, elements }
    if (state !== undefined) made.set(state, set)
    return set
  }
  return [
    ...[...ofAddresses].map((name) => [peerSetName(name), elementsOf('address', name)] as const),
    ...[...ofPorts].map((name) => [peerSetName(name), elementsOf('port', name)] as const),
  ]
}

/** The pods of this node that have a port of this name, each with its number. */
function portSets(
  used: ReadonlySet<PolicyState>,
  pods: readonly LocalPod[],
  family: RuleFamily,
): readonly (readonly [string, RuleElements])[] {
  const sets = new Map<string, Map<string, string>>()
  for (const { ingress = [] } of used)
    for (const { ports = [] } of ingress)
      for (const { name, protocol } of ports) if (name !== undefined) sets.set(namedPortSet(name, protocol), new Map())
  if (sets.size === 0) return []
  for (const pod of pods)
    for (const { name, protocol, port } of pod.ports) {
      const key = `${addressOf(pod, family)} . ${protocol.toLowerCase()} . ${port}`
      sets.get(namedPortSet(name, protocol))?.set(key, '')
    }
  const type = `${family.address} . inet_proto . inet_service`
  return [...sets].map(([name, elements]) => [name, { kind: 'set', type, elements }] as const)
}
