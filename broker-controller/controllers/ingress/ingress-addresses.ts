/** `status.loadBalancer` of Ingresses: the addresses of nodes whose proxy is ready. */
import type { Ingress } from '../../../api/network/ingress.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import { canonicalIPv6 } from '../../../api/text/ip-address.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredObject } from '../../store/store.ts'
import { balancerNode } from '../balancers/balancer-nodes.ts'
import { podAddresses } from '../endpoints/pod-endpoints.ts'
import { isReadyPod } from '../workloads/pod-readiness.ts'

const writesAtOnce = 16

/** Each Ingress has all of them in its status: that of a large fleet would be larger than its spec. A client uses a few. */
const mostAddresses = 64

/**
 * Addresses of the first nodes by IPv4 address, at most `mostAddresses`: IPv4 addresses, then IPv6 addresses.
 * `proxies`: pods of the proxy; `node`: finds a node by its name; `ipv6`: pods of the fleet have addresses of both
 * families.
 */
export function proxyAddresses(
  proxies: Iterable<Pod>,
  node: (name: string) => Node | undefined,
  ipv6: boolean,
): readonly string[] {
  const found = new Map<string, string | undefined>()
  for (const pod of proxies) {
    if (!isReadyPod(pod) || pod.metadata.deletionTimestamp !== undefined) continue
    const reached = reachedAt(node(pod.spec.nodeName ?? ''), ipv6)
    // A proxy from before the fleet had IPv6 has none, nor has one on a machine with IPv6 off.
    if (reached !== undefined) found.set(reached.ipv4, hasPodIPv6(pod) ? reached.ipv6 : undefined)
  }
  const first = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, ipv6 ? mostAddresses / 2 : mostAddresses)
  return [...first.map(([ipv4]) => ipv4), ...first.flatMap(([, one]) => one ?? [])]
}

export type ReachedAt = { readonly ipv4: string; readonly ipv6: string | undefined }

/** Where clients reach the host ports of the node; undefined: nowhere. */
export function reachedAt(node: Node | undefined, ipv6: boolean): ReachedAt | undefined {
  const found = node && balancerNode(node, ipv6)
  return found && { ipv4: found.address, ipv6: found.ipv6 }
}

export function hasPodIPv6(pod: Pod): boolean {
  return podAddresses(pod).some((address) => address.includes(':'))
}

/** Every InternalIP, as the status of an Ingress has it. */
export function internalAddresses(node: Node): readonly string[] {
  const internal = (node.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP')
  return internal.map(({ address }) => canonicalIPv6(address) ?? address)
}

/** Those in the status of the Ingress. */
export function shownAddresses({ status }: Ingress): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip)
}

export function hasAddresses(ingress: Ingress, wanted: readonly string[]): boolean {
  const shown = shownAddresses(ingress)
  return shown.length === wanted.length && shown.every((address, index) => address === wanted[index])
}

/** Writes the addresses to the Ingresses that have others. `isOurs` is asked again for what has changed since. */
export async function writeAddresses(
  needs: RewriteNeeds,
  ingresses: Iterable<StoredObject<'ingresses'>>,
  wanted: readonly string[],
  isOurs: (ingress: Ingress) => boolean = () => true,
): Promise<void> {
  const others = [...ingresses].filter((one) => !hasAddresses(one, wanted))
  await inParallel(others, writesAtOnce, async ({ metadata: { namespace = '', name, uid } }) => {
    const change = (ingress: StoredObject<'ingresses'>) =>
      hasAddresses(ingress, wanted) || !isOurs(ingress) ? undefined : withAddresses(ingress, wanted)
    await rewrite(needs, 'ingresses', { key: { namespace, name }, uid, part: 'status', change })
  })
}

function withAddresses<I extends Ingress>(ingress: I, wanted: readonly string[]): I {
  const loadBalancer = wanted.length === 0 ? {} : { ingress: wanted.map((ip) => ({ ip })) }
  return { ...ingress, status: { ...ingress.status, loadBalancer } }
}
