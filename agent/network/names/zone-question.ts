/** What a name of the fleet's domain asks for (Kubernetes DNS-Based Service Discovery 1.1.0; CoreDNS, plugin/kubernetes/parse.go). */
import { canonicalIPv6 } from '../../../api/text/ip-address.ts'

export type ZoneQuestion =
  /** The domain itself, and the names above those of Services, pods and nodes: they exist and have no address. */
  | { readonly of: 'apex' | 'branch' | 'schema' | 'server' }
  | { readonly of: 'namespace'; readonly namespace: string }
  | { readonly of: 'service'; readonly namespace: string; readonly service: string }
  | { readonly of: 'endpoint'; readonly namespace: string; readonly service: string; readonly endpoint: string }
  | {
      readonly of: 'port'
      readonly namespace: string
      readonly service: string
      readonly port: string
      readonly protocol: string
    }
  | { readonly of: 'pod'; readonly address: string }
  | { readonly of: 'node'; readonly node: string }
  /** Inside the domain, and the name of nothing. */
  | { readonly of: 'nothing' }

/** undefined: the name is outside of the domain. `name` and `domain`: in lower case, without a final dot. */
export function zoneQuestion(name: string, domain: string): ZoneQuestion | undefined {
  if (name === domain) return { of: 'apex' }
  if (!name.endsWith(`.${domain}`)) return undefined
  const labels = name.slice(0, -domain.length - 1).split('.')
  const branch = labels.pop()
  switch (branch) {
    case 'dns-version':
      return labels.length === 0 ? { of: 'schema' } : nothing
    case 'dns':
      return serverQuestion(labels)
    case 'node':
      return labels.length === 0 ? { of: 'branch' } : { of: 'node', node: labels.join('.') }
    case 'svc':
    case 'pod':
      return objectQuestion(branch, labels)
    default:
      return nothing
  }
}

function serverQuestion(labels: readonly string[]): ZoneQuestion {
  if (labels.length === 0) return { of: 'branch' }
  return labels.length === 1 && labels[0] === 'ns' ? { of: 'server' } : nothing
}

function objectQuestion(branch: 'svc' | 'pod', labels: string[]): ZoneQuestion {
  const namespace = labels.pop()
  if (namespace === undefined) return { of: 'branch' }
  const object = labels.pop()
  if (object === undefined) return { of: 'namespace', namespace }
  if (branch === 'pod') return labels.length === 0 ? podQuestion(object) : nothing
  return serviceQuestion(namespace, object, labels)
}

const nothing: ZoneQuestion = { of: 'nothing' }

function serviceQuestion(namespace: string, service: string, labels: readonly string[]): ZoneQuestion {
  const [first, second, ...more] = labels
  if (first === undefined) return { of: 'service', namespace, service }
  if (second === undefined) return { of: 'endpoint', namespace, service, endpoint: first }
  const isPort = first.startsWith('_') && second.startsWith('_') && more.length === 0
  return isPort ? { of: 'port', namespace, service, port: first.slice(1), protocol: second.slice(1) } : nothing
}

/** `1-2-3-4`, or `fd00-10-244-1--5`. */
function podQuestion(label: string): ZoneQuestion {
  if (/^\d+-\d+-\d+-\d+$/.test(label)) return { of: 'pod', address: label.replaceAll('-', '.') }
  const address = canonicalIPv6(label.replaceAll('-', ':'))
  return address === undefined ? nothing : { of: 'pod', address }
}

/** The address that a name below `in-addr.arpa` or `ip6.arpa` asks for, and which of both it is; undefined: it is not such a name. */
export function reverseQuestion(name: string): { readonly address: string; readonly zone: string } | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(in-addr\.arpa)$/.exec(name)
  if (match !== null) return { address: match.slice(1, 5).reverse().join('.'), zone: 'in-addr.arpa' }
  const digits = /^((?:[0-9a-f]\.){32})ip6\.arpa$/.exec(name)?.[1]
  // RFC 3596, section 2.5: a label for each digit, the last one first.
  const groups = digits?.split('.').reverse().join('').match(/.{4}/g)
  const address = canonicalIPv6((groups ?? []).join(':'))
  return address === undefined ? undefined : { address, zone: 'ip6.arpa' }
}
