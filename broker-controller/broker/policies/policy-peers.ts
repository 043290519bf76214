/**
 * The addresses that each selector of a NetworkPolicy matches. A change of a pod costs the selectors of its namespace. No list of the pods
 * of each selector is kept: a thousand selectors of thousands of pods would need more memory than a controller has.
 */
import { isDeepStrictEqual } from 'node:util'
import type { PeerSetState } from '../../../api/network/node-policies.ts'
import { specialAddressProblem } from '../../../api/node/reported-addresses.ts'
import type { Pod } from '../../../api/pod.ts'
import type { Labels } from '../../../api/selectors.ts'
import { ipVersion } from '../../../api/text/ip-address.ts'
import { familyFacts } from '../outbox/family-facts.ts'
import type { PeerSelector } from './peer-selector.ts'

/** What selectors see of a pod. */
export type PeerPod = {
  readonly ip: string
  /** In canonical form; undefined: it has none, or the fleet has none. */
  readonly ipv6?: string
  readonly labels: Labels | undefined
  /** Those with names. */
  readonly ports: readonly { readonly name: string; readonly protocol: string; readonly port: number }[]
}

/** Resolves at once, or in a later turn of the event loop if this one has been long. */
export type Rest = () => Promise<void>

export interface PolicyPeers {
  /** The pod as it is now; undefined: it is not a peer. Gives the names of the sets that changed. */
  setPod(namespace: string, name: string, pod: PeerPod | undefined, rest: Rest): Promise<readonly string[]>
  /** The labels of the namespace; undefined: it is gone. Gives the names of the sets that changed. */
  setNamespace(name: string, labels: Labels | undefined, rest: Rest): Promise<readonly string[]>
  /** Each selector is added once for each policy that has it. */
  add(selector: PeerSelector): void
  remove(name: string): void
  /** JSON of the set, made when it is needed; undefined: no policy has it. */
  textOf(name: string): string | undefined
}

type FollowedSet = {
  readonly selector: PeerSelector
  users: number
  /** Those that the selector matches. */
  readonly namespaces: Set<string>
  text: string | undefined
}

/** Characters of texts that are kept: beyond them all are made again when they are needed. */
const mostText = 32 * 1024 * 1024

/** undefined: a pod that no packet comes from or goes to, or one with the addresses of its node. `withIPv6`: also its IPv6 address. */
export function peerPod({ metadata, spec, status }: Pod, withIPv6 = false): PeerPod | undefined {
  const ips = [status?.podIP ?? '', ...(status?.podIPs ?? []).map(({ ip = '' }) => ip)].filter(
    (address) => specialAddressProblem(address) === undefined,
  )
  const ip = ips.find((address) => ipVersion(address) === 4)
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  if (ip === undefined || isOver || spec.hostNetwork) return undefined
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const ports = [...spec.containers, ...sidecars]
    .flatMap((container) => container.ports ?? [])
    .flatMap(({ name, protocol = 'TCP', containerPort }) => (name ? [{ name, protocol, port: containerPort }] : []))
  const ipv6 = withIPv6 ? ips.flatMap((address) => familyFacts.IPv6.address(address) ?? [])[0] : undefined
  return { ip, ...(ipv6 !== undefined && { ipv6 }), labels: metadata.labels, ports }
}

export function policyPeers(): PolicyPeers {
  const namespaces = new Map<string, Labels | undefined>()
  /** By namespace, then by name. */
  const pods = new Map<string, Map<string, PeerPod>>()
  const sets = new Map<string, FollowedSet>()
  /** By namespace: the sets whose selectors match it. */
  const matching = new Map<string, Set<FollowedSet>>()
  let textLength = 0

  const link = (namespace: string, set: FollowedSet) => {
    set.namespaces.add(namespace)
    matching.set(namespace, (matching.get(namespace) ?? new Set()).add(set))
  }
  const unlink = (namespace: string, set: FollowedSet) => {
    set.namespaces.delete(namespace)
    const all = matching.get(namespace)
    all?.delete(set)
    if (all?.size === 0) matching.delete(namespace)
  }
  const invalidate = (set: FollowedSet) => {
    textLength -= set.text?.length ?? 0
    set.text = undefined
  }
  const keep = (set: FollowedSet, text: string) => {
    if (textLength + text.length > mostText) for (const other of sets.values()) invalidate(other)
    set.text = text
    textLength += text.length
  }
  const selects = ({ selector }: FollowedSet, namespace: string): boolean =>
    selector.namespace === undefined
      ? namespaces.has(namespace) && selector.matchesNamespace(namespaces.get(namespace))
      : selector.namespace === namespace

  return {
    async setPod(namespace, name, pod, rest) {
      const inNamespace = pods.get(namespace) ?? new Map<string, PeerPod>()
      const before = inNamespace.get(name)
      if (isDeepStrictEqual(before, pod)) return none
      if (pod === undefined) inNamespace.delete(name)
      else inNamespace.set(name, pod)
      if (inNamespace.size > 0) pods.set(namespace, inNamespace)
      else pods.delete(namespace)
      const changed: string[] = []
      for (const set of [...(matching.get(namespace) ?? [])]) {
        if (allElementsOf(set.selector, before).join() !== allElementsOf(set.selector, pod).join()) {
          invalidate(set)
          changed.push(set.selector.name)
        }
        await rest()
      }
      return changed
    },
    async setNamespace(name, labels, rest) {
      if (labels === undefined) namespaces.delete(name)
      else namespaces.set(name, labels)
      const changed: string[] = []
      for (const set of [...sets.values()]) {
        const after = selects(set, name)
        if (set.namespaces.has(name) !== after) {
          if (after) link(name, set)
          else unlink(name, set)
          invalidate(set)
          changed.push(set.selector.name)
        }
        await rest()
      }
      return changed
    },
    add(selector) {
      const known = sets.get(selector.name)
      if (known !== undefined) {
        known.users += 1
        return
      }
      const set: FollowedSet = { selector, users: 1, namespaces: new Set(), text: undefined }
      sets.set(selector.name, set)
      const possible = selector.namespace === undefined ? namespaces.keys() : [selector.namespace]
      for (const namespace of possible) if (selects(set, namespace)) link(namespace, set)
    },
    remove(name) {
      const set = sets.get(name)
      if (set === undefined) return
      set.users -= 1
      if (set.users > 0) return
      invalidate(set)
      sets.delete(name)
      for (const namespace of [...set.namespaces]) unlink(namespace, set)
    },
    textOf(name) {
      const set = sets.get(name)
      if (set === undefined) return undefined
      const text = set.text ?? textOf(set, pods)
      if (set.text === undefined) keep(set, text)
      return text
    },
  }
}

const none: readonly string[] = []

type Address = (pod: PeerPod) => string | undefined
const ipv4Of: Address = ({ ip }) => ip
const ipv6Of: Address = ({ ipv6 }) => ipv6

function elementsOf(
  { matchesPod, port }: PeerSelector,
  pod: PeerPod | undefined,
  addressOf: Address,
): readonly string[] {
  const address = pod && addressOf(pod)
  if (pod === undefined || address === undefined || !matchesPod(pod.labels)) return none
  if (port === undefined) return [address]
  return pod.ports
    .filter(({ name, protocol }) => name === port.name && protocol === port.protocol)
    .map((one) => `${address} . ${one.protocol.toLowerCase()} . ${one.port}`)
}

function allElementsOf(selector: PeerSelector, pod: PeerPod | undefined): readonly string[] {
  const elements = elementsOf(selector, pod, ipv4Of)
  return pod?.ipv6 === undefined ? elements : [...elements, ...elementsOf(selector, pod, ipv6Of)]
}

/** Two pods may have one address for a moment: one that ends, and its successor. */
function textOf(
  { selector, namespaces }: FollowedSet,
  pods: ReadonlyMap<string, ReadonlyMap<string, PeerPod>>,
): string {
  const all = (addressOf: Address) => {
    const elements = [...namespaces].flatMap((namespace) =>
      [...(pods.get(namespace)?.values() ?? [])].flatMap((pod) => elementsOf(selector, pod, addressOf)),
    )
    return [...new Set(elements)].sort()
  }
  const ipv6Elements = all(ipv6Of)
  const state: PeerSetState = {
    name: selector.name,
    kind: selector.port === undefined ? 'address' : 'port',
    elements: all(ipv4Of),
    ...(ipv6Elements.length > 0 && { ipv6Elements }),
  }
  return JSON.stringify(state)
}
