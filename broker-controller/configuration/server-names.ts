/** The names and addresses at which this controller is reached. */
import { isIP } from 'node:net'
import type { NetworkInterfaceInfo } from 'node:os'
import { kubernetesServiceAddress } from '../../api/network/service-range.ts'
import { parseCidr } from '../../api/text/cidr.ts'

export type HostAddresses = {
  readonly hostname: string
  /** From `os.networkInterfaces()`. */
  readonly interfaces: { readonly [name: string]: readonly NetworkInterfaceInfo[] | undefined }
}

export type ServerAddresses = {
  /** The configured address for other machines. */
  readonly advertiseAddress: string | undefined
  /** The only address that is listened on; undefined: all. */
  readonly bindAddress?: string | undefined
  readonly hosts: readonly string[]
  /** Where pods reach the API by its Service; undefined: packets to Services go nowhere. */
  readonly podNetwork?: { readonly serviceCIDR: string; readonly clusterDomain: string } | undefined
}

export type ServerNames = {
  /** For the server certificate. */
  readonly all: readonly string[]
  /** The address for other machines, as a host in a URL. */
  readonly advertised: string
  /** The same by itself: an address or a name. */
  readonly advertisedHost: string
}

export function serverNames(
  { hostname, interfaces }: HostAddresses,
  { advertiseAddress, bindAddress, hosts, podNetwork }: ServerAddresses,
): ServerNames {
  // The only address that is listened on.
  const bound = bindAddress === undefined || isAny(bindAddress) ? undefined : bindAddress

  const addresses = Object.values(interfaces).flatMap((list) => list ?? [])
  const outward = outwardAddresses(interfaces)
  const first = outward.find(({ family }) => family === 'IPv4') ?? outward[0]
  const advertised = advertiseAddress ?? bound ?? first?.address ?? hostname
  const fixed = ['localhost', '127.0.0.1', '::1', hostname.toLowerCase()]
  const own = addresses.map(({ address }) => address).filter((address) => !isLinkLocal(address))
  const configured = [bound, advertiseAddress].filter((name) => name !== undefined)
  const all = new Set([...fixed, ...own, ...configured, ...hosts, ...serviceNames(podNetwork)])
  return {
    all: [...all].filter((name) => name !== ''),
    advertised: urlHost(advertised),
    advertisedHost: isAny(advertised) ? '127.0.0.1' : advertised,
  }
}

/** Name of the Service `default/kubernetes`. It is in the server certificate if packets to Services are forwarded. */
export const apiServiceName = 'kubernetes.default.svc'

/** Those of `default/kubernetes`, as kubeadm puts them into the certificate of the API (app/util/pkiutil, GetAPIServerAltNames). */
function serviceNames(podNetwork: ServerAddresses['podNetwork']): readonly string[] {
  const range = podNetwork && parseCidr(podNetwork.serviceCIDR)
  if (podNetwork === undefined || range === undefined) return []
  const names = ['kubernetes', 'kubernetes.default', apiServiceName, `${apiServiceName}.${podNetwork.clusterDomain}`]
  return [kubernetesServiceAddress(range), ...names]
}

/** The host of a URL with which this machine reaches a server that listens on `address`; the loopback address for all addresses. */
export function urlHost(address: string): string {
  if (isAny(address)) return '127.0.0.1'
  return isIP(address) === 6 ? `[${address}]` : address
}

/** Addresses of the machine that other machines may reach. */
export function outwardAddresses(interfaces: HostAddresses['interfaces']): readonly NetworkInterfaceInfo[] {
  const addresses = Object.values(interfaces).flatMap((list) => list ?? [])
  return addresses.filter(({ internal, address }) => !internal && !isLinkLocal(address))
}

/** The unspecified address: '::' accepts IPv4 too, but not every machine has IPv6. */
export function anyAddress({ interfaces }: Pick<HostAddresses, 'interfaces'>): string {
  const addresses = Object.values(interfaces).flatMap((list) => list ?? [])
  return addresses.some(({ family }) => family === 'IPv6') ? '::' : '0.0.0.0'
}

function isAny(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

/** A link-local address. */
function isLinkLocal(address: string): boolean {
  return /^fe[89ab][0-9a-f]:/i.test(address) || address.startsWith('169.254.')
}
