/** The backend that an Ingress names → an address for the proxy. Nodes balance connections to a ClusterIP, so endpoints do not matter here. */
import type { IngressBackend } from '../../../api/network/ingress.ts'
import type { Service, ServicePort } from '../../../api/network/service.ts'
import { canonicalIPv6, isIPv4 } from '../../../api/text/ip-address.ts'
import type { IngressOptions } from './ingress-options.ts'
import type { Decided } from './ingress-problem.ts'

/** `name` consists of letters, digits, `-` and `_`, and differs for each other content. */
export type ProxyBackend = {
  readonly name: string
  /** `10.96.0.7:80`, or `[fd00:10:96::7]:80`. */
  readonly address: string
  readonly options: IngressOptions
}

/** `namespace/name` of a Service → the Service. */
export type ServiceLookup = (key: string) => Service | undefined

export type BackendPlace = {
  readonly namespace: string
  readonly options: IngressOptions
  /** Where the Ingress names it, as `spec.defaultBackend`. */
  readonly place: string
  /** Pods of the fleet have addresses of both families; otherwise nodes forward nothing in IPv6. */
  readonly ipv6: boolean
}

export function proxyBackend(
  { service, resource }: IngressBackend,
  { namespace, options, place, ipv6 }: BackendPlace,
  lookup: ServiceLookup,
): Decided<ProxyBackend> {
  const refused = (because: string, remedy: string) => ({
    problem: { reason: 'BackendUnavailable', message: `${place}: ${because}: ${remedy}. Requests are answered 503` },
  })
  if (resource !== undefined || service === undefined) return refused('it names no Service', 'name a Service')
  const { name, port = {} } = service
  if (!isLabel(namespace) || !isLabel(name)) return refused('the name of its Service is invalid', 'name another one')
  const key = `${namespace}/${name}`
  const { spec } = lookup(key) ?? {}
  if (spec === undefined) return refused(`Service ${key} not found`, 'create it, or name another one')
  if (spec.type === 'ExternalName') return refused(`Service ${key} is an ExternalName`, 'name one with a ClusterIP')
  const clusterIP = clusterIPOf(spec)
  if (clusterIP === undefined) return refused(`Service ${key} has no ClusterIP`, 'name one that is not headless')
  if (clusterIP.startsWith('[') && !ipv6) {
    return refused(`Service ${key} has only an IPv6 ClusterIP`, 'name one with IPv4 among its ipFamilies')
  }
  // A Service may have one number for TCP and for UDP, as HTTP/3 does.
  const found = (spec.ports ?? [])
    .filter(isTCP)
    .find((one) => (port.name ? one.name === port.name : one.port === port.number))
  if (found === undefined || !isPort(found.port)) {
    const named = port.name ? JSON.stringify(port.name.slice(0, 63)) : port.number
    return refused(`Service ${key} has no TCP port ${named}`, 'name one of its ports')
  }
  const backend = [namespace, name, found.port, ...optionWords(options)].join('_')
  return { value: { name: backend, address: `${clusterIP}:${found.port}`, options } }
}

/** That of IPv4, which pods of each node reach, also where it is the second one; else that of IPv6, in brackets. */
function clusterIPOf({ clusterIP = '', clusterIPs = [] }: NonNullable<Service['spec']>): string | undefined {
  const all = [clusterIP, ...clusterIPs]
  const ofIPv6 = all.map(canonicalIPv6).find((one) => one !== undefined)
  return all.find(isIPv4) ?? (ofIPv6 && `[${ofIPv6}]`)
}

/** Its lines in the configuration of HAProxy. */
export function backendText({ name, address, options }: ProxyBackend): string {
  const { timeoutSeconds, maxBodyBytes, protocol } = options
  const lines = [
    `backend ${name}`,
    ...(timeoutSeconds === undefined ? [] : [`  timeout server ${timeoutSeconds}s`]),
    ...(maxBodyBytes === undefined
      ? []
      : [`  http-request deny deny_status 413 if { req.hdr_val(content-length) gt ${maxBodyBytes} }`]),
    `  server service ${address}${serverWords[protocol]}`,
  ]
  return `${lines.join('\n')}\n`
}

/** Pods rarely have certificates of a known authority, and none for a ClusterIP: the connection is encrypted, not verified. */
const serverWords = { http: '', https: ' ssl verify none sni var(txn.host)', h2c: ' proto h2' } as const

function optionWords({ timeoutSeconds, maxBodyBytes, protocol }: IngressOptions): readonly string[] {
  return [
    ...(timeoutSeconds === undefined ? [] : [`t${timeoutSeconds}`]),
    ...(maxBodyBytes === undefined ? [] : [`b${maxBodyBytes}`]),
    ...(protocol === 'http' ? [] : [protocol]),
  ]
}

/** The API checks it, too; a store may have been written by an earlier version. */
function isLabel(text: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}

function isTCP({ protocol = 'TCP' }: ServicePort): boolean {
  return protocol === 'TCP'
}
