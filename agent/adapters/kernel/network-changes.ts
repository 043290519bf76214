/** The state of the network, read from the kernel's files, without a process or a socket. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { NetworkState } from '../../node/connection/network-state.ts'

/** `root`: the root of the machine's files. Unreadable values are omitted; never rejects. */
export async function readNetworkState(root: string): Promise<NetworkState> {
  const folder = join(root, 'sys/class/net')
  const names = (await readdir(folder).catch(() => [])).filter((name) => !isLocalOnly(name))
  const interfaces = await Promise.all(names.map((name) => carrierOf(join(folder, name), name)))
  const [ipv4, ipv6] = await Promise.all(
    ['proc/net/route', 'proc/net/ipv6_route'].map((path) => readFile(join(root, path), 'utf8').catch(() => '')),
  )
  return new Set([...interfaces.flat(), ...defaultRoutes(ipv4 ?? ''), ...defaultRoutesOfIPv6(ipv6 ?? '')])
}

/** The loopback interface and those that Docker creates for containers: they do not lead to the controller. */
function isLocalOnly(name: string): boolean {
  return /^(lo$|veth|docker|br-)/.test(name)
}

async function carrierOf(folder: string, name: string): Promise<string[]> {
  // `carrier` cannot be read while the interface is down (EINVAL).
  const [carrier, changes] = await Promise.all(
    ['carrier', 'carrier_changes'].map((file) => readFile(join(folder, file), 'utf8').catch(() => '')),
  )
  return carrier?.trim() === '1' ? [`link ${name} ${changes?.trim()}`] : []
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
