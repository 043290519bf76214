/** The DNS settings of a pod, from its policy, its dnsConfig and the settings of the machine. */
import { defaultClusterDomain, nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { Pod, PodSpec } from '../../../api/pod.ts'

export type Resolver = {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

/** The kubelet's limits (pkg/apis/core/validation: MaxDNSNameservers, MaxDNSSearchPaths, MaxDNSSearchListChars). */
const mostServers = 3
const mostSearches = 32
const longestSearches = 2048
const longestName = 253

/** Whether the pod asks the name server of its node, which answers names of the fleet (pkg/kubelet/network/dns/dns.go, getPodDNSType). */
function asksCluster({ dnsPolicy, hostNetwork }: PodSpec): boolean {
  return dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && hostNetwork !== true)
}

/** The DNS settings of the machine are needed for this pod. `clusterDomain`: undefined where the fleet has no names. */
export function asksForHostResolver(spec: PodSpec, clusterDomain: string | undefined): boolean {
  const isOwn = spec.dnsConfig !== undefined || (clusterDomain !== undefined && asksCluster(spec))
  return isOwn && spec.dnsPolicy !== 'None'
}

/** undefined: as the machine does. Where the fleet has no names, ClusterFirst is Default. */
export function podResolver(
  { metadata, spec }: Pod,
  host: Resolver | undefined,
  clusterDomain: string | undefined,
): Resolver | undefined {
  const { dnsPolicy, dnsConfig } = spec
  const ofCluster = clusterDomain !== undefined && asksCluster(spec)
  if (dnsPolicy !== 'None' && dnsConfig === undefined && !ofCluster) return undefined
  const ofMachine = dnsPolicy === 'None' || host === undefined ? noResolver : host
  const base = ofCluster ? clusterResolver(metadata.namespace ?? 'default', clusterDomain, ofMachine) : ofMachine
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {}
  // The last one of a name counts, and an empty value does not count (pkg/kubelet/network/dns/dns.go, mergeDNSOptions).
  const added = new Map(options.flatMap(({ name = '', value = '' }) => (name === '' ? [] : [[name, value]])))
  return {
    servers: [...new Set([...base.servers, ...nameservers])].slice(0, mostServers),
    searches: withinLimits([...new Set([...base.searches, ...searches])]),
    options: [
      ...base.options.filter((option) => !added.has(option.split(':')[0] ?? '')),
      ...[...added].map(([name, value]) => (value === '' ? name : `${name}:${value}`)),
    ],
  }
}

const noResolver: Resolver = { servers: [], searches: [], options: [] }

/** As the kubelet for ClusterFirst: one server, the domains of the pod's namespace, and `web.shop` is tried in these domains first. */
function clusterResolver(namespace: string, domain: string, { searches }: Resolver): Resolver {
  return {
    servers: [nodeDnsAddress],
    searches: [`${namespace}.svc.${domain}`, `svc.${domain}`, domain, ...searches],
    options: ['ndots:5'],
  }
}

/** Some resolvers abort at a name that is longer than a name can be (formDNSSearchFitsLimits). */
function withinLimits(searches: readonly string[]): readonly string[] {
  const kept = searches.slice(0, mostSearches).filter((name) => name.length <= longestName)
  while (kept.join(' ').length > longestSearches) kept.pop()
  return kept
}

/** The lines of a resolv.conf that are used. */
export function parseResolver(text: string): Resolver {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/))
  const of = (word: string) => lines.filter(([first]) => first === word).map(([, ...rest]) => rest)
  return {
    servers: of('nameserver').flatMap(([server]) => server ?? []),
    searches: (of('search').at(-1) ?? of('domain').at(-1) ?? []).flatMap((name) =>
      name === '.' ? [] : name.replace(/\.$/, ''),
    ),
    options: of('options').flat(),
  }
}

/** Its short name, and the rest of the full one: a pod with a subdomain has a place in its namespace. */
export function podHostname(
  { metadata, spec }: Pod,
  clusterDomain = defaultClusterDomain,
): { readonly hostname: string; readonly domain: string } {
  // A host name has at most 63 characters, and does not end with a dash or a dot.
  const short = (spec.hostname || (metadata.name ?? '')).slice(0, 63).replace(/[-.]+$/, '')
  const domain = spec.subdomain ? `${spec.subdomain}.${metadata.namespace ?? 'default'}.svc.${clusterDomain}` : ''
  if (spec.setHostnameAsFQDN !== true || domain === '') return { hostname: short, domain }
  return { hostname: `${short}.${domain}`, domain: '' }
}
