/** A pod's own `/etc/resolv.conf`, as the kubelet has it written (pkg/kubelet/network/dns/dns.go). */
import type { Pod } from '../../../api/pod.ts'
import type { ContainerMount } from '../../runtime/runtime.ts'
import { podResolver, type Resolver } from './pod-dns.ts'

const path = '/etc/resolv.conf'

/**
 * undefined: the container has the engine's file. So it is on the machine's network, unless the pod has DNS settings of its own; and
 * where the machine has local servers only, which the engine asks in place of a pod.
 */
export function resolvConfText(pod: Pod, host: Resolver, clusterDomain: string | undefined): string | undefined {
  const { spec } = pod
  const own = podResolver(pod, host, clusterDomain)
  if (own === undefined && spec.hostNetwork === true) return undefined
  const { servers, searches, options } = own ?? host
  const isReachable = spec.dnsPolicy === 'None' || spec.hostNetwork === true || servers.some((one) => !isLocal(one))
  if (!isReachable) return undefined
  const lines = [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ]
  return `${lines.join('\n')}\n`
}

/** Whether the container has the pod's file: not where it mounts something itself. */
export function hasResolvConf(mounts: readonly ContainerMount[]): boolean {
  return mounts.every(({ target }) => target !== path)
}

export function resolvConfMount(file: string): ContainerMount {
  return { source: file, target: path, readOnly: false, propagation: 'rprivate' }
}

/** The server listens on a loopback address: a pod has its own. */
export function isLocal(server: string): boolean {
  return /^(127\.|::1$)/.test(server)
}
