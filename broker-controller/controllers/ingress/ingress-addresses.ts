/** `status.loadBalancer` of Ingresses: the addresses of nodes whose proxy is ready. */
import type { Ingress } from '../../../api/network/ingress.ts'
import type { Node } from '../../../api/node.ts'
import type { Pod } from '../../../api/pod.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredObject } from '../../store/store.ts'
import { isReadyPod } from '../workloads/pod-readiness.ts'

const writesAtOnce = 16

/** Each Ingress has all of them in its status: that of a large fleet would be larger than its spec. A client uses a few. */
const mostAddresses = 64

/** Sorted, each once, the first `mostAddresses`. `proxies`: pods of the proxy; `node`: by its name. */
export function proxyAddresses(proxies: Iterable<Pod>, node: (name: string) => Node | undefined): readonly string[] {
  const found = new Set<string>()
  for (const pod of proxies) {
    if (!isReadyPod(pod) || pod.metadata.deletionTimestamp !== undefined) continue
    const address = internalAddress(node(pod.spec.nodeName ?? ''))
    if (address !== undefined) found.add(address)
  }
  return [...found].sort().slice(0, mostAddresses)
}

export function internalAddress(node: Node | undefined): string | undefined {
  return node?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
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
