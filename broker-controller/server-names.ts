/** Under which names and addresses is this controller reached? */
import { isIP } from 'node:net'
import type { NetworkInterfaceInfo } from 'node:os'

export type Machine = {
  readonly hostname: string
  /** As `os.networkInterfaces()` tells. */
  readonly interfaces: { readonly [name: string]: readonly NetworkInterfaceInfo[] | undefined }
}

export type ServerNames = {
  /** For the server certificate. */
  readonly all: readonly string[]
  /** What other machines are told to use, as it stands in a URL. */
  readonly advertised: string
}

export function serverNames(
  { hostname, interfaces }: Machine,
  { advertiseAddress, hosts }: { readonly advertiseAddress: string | undefined; readonly hosts: readonly string[] },
): ServerNames {
  const addresses = Object.values(interfaces).flatMap((list) => list ?? [])
  const outward = addresses.filter(({ internal, address }) => !internal && !isLinkLocal(address))
  const first = outward.find(({ family }) => family === 'IPv4') ?? outward[0]
  const advertised = advertiseAddress ?? first?.address ?? hostname
  const fixed = ['localhost', '127.0.0.1', '::1', hostname.toLowerCase()]
  const own = addresses.map(({ address }) => address).filter((address) => !isLinkLocal(address))
  const all = new Set([...fixed, ...own, ...(advertiseAddress === undefined ? [] : [advertiseAddress]), ...hosts])
  return {
    all: [...all].filter((name) => name !== ''),
    advertised: urlHost(advertised),
  }
}

/** How this machine reaches a server that listens there, as it stands in a URL: of all addresses the loopback one. */
export function urlHost(address: string): string {
  if (address === '0.0.0.0' || address === '::') return '127.0.0.1'
  return isIP(address) === 6 ? `[${address}]` : address
}

/** The address that stands for all: '::' takes IPv4 too, but not every machine has IPv6. */
export function anyAddress({ interfaces }: Pick<Machine, 'interfaces'>): string {
  const addresses = Object.values(interfaces).flatMap((list) => list ?? [])
  return addresses.some(({ family }) => family === 'IPv6') ? '::' : '0.0.0.0'
}

/** An address that means something on one cable only. */
function isLinkLocal(address: string): boolean {
  return /^fe[89ab][0-9a-f]:/i.test(address) || address.startsWith('169.254.')
}
