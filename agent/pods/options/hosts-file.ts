/** A pod's own `/etc/hosts`, as the kubelet writes it (kubelet_pods.go, managedHostsFileContent). */
import type { Pod } from '../../../api/pod.ts'
import type { ContainerMount } from '../../runtime/runtime.ts'
import { podHostname } from './pod-dns.ts'

const path = '/etc/hosts'

const machineHead = '# Kubernetes-managed hosts file (host network).\n'

const head = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`

/** Whether the container has the pod's file: not where it mounts something itself. */
export function hasHostsFile(mounts: readonly ContainerMount[]): boolean {
  return mounts.every(({ target }) => target !== path)
}

/**
 * One line for each address of the pod, and one for each of its host aliases. On the machine's network, the lines of the machine's own file
 * are in place of the pod's. undefined: the container has the engine's file.
 */
export function hostsFileText(
  pod: Pod,
  { ip, ipv6 }: { readonly ip: string | undefined; readonly ipv6?: string },
  machineHosts: string | undefined,
  clusterDomain: string | undefined,
): string | undefined {
  if (pod.spec.hostNetwork === true) {
    return machineHosts === undefined ? undefined : `${machineHead}${machineHosts}${aliasLines(pod)}`
  }
  if (ip === undefined) return undefined
  const own = [ip, ...(ipv6 === undefined ? [] : [ipv6])].map((address) => podLine(pod, address, clusterDomain))
  return `${head}${own.join('')}${aliasLines(pod)}`
}

/** Also a pod whose host name is its full one has its short one (kubelet_pods.go, GenerateRunContainerOptions). */
function podLine(pod: Pod, podIP: string, clusterDomain: string | undefined): string {
  const { hostname, domain } = podHostname({ ...pod, spec: { ...pod.spec, setHostnameAsFQDN: false } }, clusterDomain)
  const names = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`
  return `${podIP}\t${names}\n`
}

function aliasLines({ spec }: Pod): string {
  const aliases = (spec.hostAliases ?? []).map(({ ip, hostnames = [] }) => `${[ip, ...hostnames].join('\t')}\n`)
  return aliases.length === 0 ? '' : `\n# Entries added by HostAliases.\n${aliases.join('')}`
}

/**
 * Writable (pkg/kubelet/kubelet_pods.go, makeHostsMount): some images add names when they start. All containers of a
 * pod share it.
 */
export function hostsMount(file: string): ContainerMount {
  return { source: file, target: path, readOnly: false, propagation: 'rprivate' }
}
