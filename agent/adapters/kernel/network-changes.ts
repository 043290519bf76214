/** The state of the network, read from the kernel's files, without a process or a socket. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkState } from '../../node/connection/network-state.ts'
import { textOf } from './kernel-files.ts'

/** `root`: the root of the machine's files. Unreadable values are omitted. */
export function readNetworkState(root: string): NetworkState {
  const folder = join(root, 'sys/class/net')
  const links = interfacesIn(folder).flatMap((name) => (isLocalOnly(name) ? [] : carrierOf(join(folder, name), name)))
  const text = (path: string) => textOf(join(root, path)) ?? ''
  return new Set([
    ...links,
    ...defaultRoutes(text('proc/net/route')),
    ...defaultRoutesOfIPv6(text('proc/net/ipv6_route')),
  ])
}

function interfacesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** The loopback interface and those that Docker creates for containers: they do not lead to the controller. */
function isLocalOnly(name: string): boolean {
  return /^(lo$|veth|docker|br-)/.test(name)
}

function carrierOf(folder: string, name: string): string[] {
  // `carrier` cannot be read while the interface is down (EINVAL).
  if (textOf(join(folder, 'carrier'))?.trim() !== '1') return []
  return [`link ${name} ${textOf(join(folder, 'carrier_changes'))?.trim()}`]
}

/** `/proc/net/route`: interface, destination, gateway, flags, …, mask, in hexadecimal. */
function defaultRoutes(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const [name, destination, gateway, , , , , mask] = line.trim().split(/\s+/)
    return destination === '00000000' && mask === '00000000' ? [`route ${name} ${gateway}`] : []
  })
}

/** `/proc/net/ipv6_route`: destination, its length, source, its length, next hop, …, interface. `lo` holds the reject routes. */
function defaultRoutesOfIPv6(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/)
    const [destination = '', length, , , gateway] = fields
    const name = fields.at(-1)
    return /^0{32}$/.test(destination) && length === '00' && name !== 'lo' ? [`route ${name} ${gateway}`] : []
  })
}
