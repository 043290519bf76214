/** The DNS settings of a pod, from its policy, its dnsConfig and the settings of the machine. */
import type { Pod, PodSpec } from '../../../api/pod.ts'

export type Resolver = {
  readonly servers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly string[]
}

/** The kernel's libraries read no more of them. */
const mostServers = 3

/** The DNS settings of the machine are needed for this pod. */
export function asksForHostResolver({ dnsPolicy, dnsConfig }: PodSpec): boolean {
  return dnsConfig !== undefined && dnsPolicy !== 'None'
}

/** undefined: as the machine does. There is no cluster-wide name service: ClusterFirst is Default. */
export function podResolver({ dnsPolicy, dnsConfig }: PodSpec, host: Resolver | undefined): Resolver | undefined {
  if (dnsPolicy !== 'None' && dnsConfig === undefined) return undefined
  const base = dnsPolicy === 'None' || host === undefined ? { servers: [], searches: [], options: [] } : host
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {}
  const added = options.flatMap(({ name = '', value }) => (name === '' ? [] : [{ name, value }]))
  const replaced = new Set(added.map(({ name }) => name))
  return {
    servers: [...new Set([...base.servers, ...nameservers])].slice(0, mostServers),
    searches: [...new Set([...base.searches, ...searches])],
    options: [
      ...base.options.filter((option) => !replaced.has(option.split(':')[0] ?? '')),
      ...added.map(({ name, value }) => (value === undefined ? name : `${name}:${value}`)),
    ],
  }
}

/** The lines of a resolv.conf that are used. */
export function parseResolver(text: string): Resolver {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/))
  const of = (word: string) => lines.filter(([first]) => first === word).map(([, ...rest]) => rest)
  return {
    servers: of('nameserver').flatMap(([server]) => server ?? []),
    searches: (of('search').at(-1) ?? of('domain').at(-1) ?? []).filter((name) => name !== '.'),
    options: of('options').flat(),
  }
}

const clusterDomain = 'cluster.local'

/** Its short name, and the rest of the full one: a pod with a subdomain has a place in its namespace. */
export function podHostname({ metadata, spec }: Pod): { readonly hostname: string; readonly domain: string } {
  // A host name has at most 63 characters, and does not end with a dash or a dot.
  const short = (spec.hostname || (metadata.name ?? '')).slice(0, 63).replace(/[-.]+$/, '')
  const domain = spec.subdomain ? `${spec.subdomain}.${metadata.namespace ?? 'default'}.svc.${clusterDomain}` : ''
  if (spec.setHostnameAsFQDN !== true || domain === '') return { hostname: short, domain }
  return { hostname: `${short}.${domain}`, domain: '' }
}
