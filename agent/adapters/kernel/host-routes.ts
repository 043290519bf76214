/** The IPv4 routes in the kernel's main table. */
import { readFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { type Cidr, formatCidr, formatIPv4, parseCidr } from '../../../api/text/cidr.ts'

export type Route = {
  readonly interface: string
  readonly range: Cidr
  /** Reached without a gateway. */
  readonly direct: boolean
  /** The next hop; undefined where it is reached directly. */
  readonly gateway?: string
  /** Of several routes to a range the kernel takes that with the lowest. */
  readonly metric?: number
}

/** Without the default route. Empty if the file does not exist. */
export async function readRoutes(root: string): Promise<readonly Route[]> {
  const text = await readFile(join(root, 'proc/net/route'), 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [name, destination, gateway = '', , , , metric, mask] = line.trim().split(/\s+/)
    if (name === undefined || !/^[0-9A-F]{8}$/.test(destination ?? '') || !/^[0-9A-F]{8}$/.test(mask ?? '')) return []
    const bits = addressOf(mask).toString(2).split('1').length - 1
    const range = parseCidr(formatCidr({ first: addressOf(destination), bits }))
    if (range === undefined || bits === 0) return []
    const direct = /^0+$/.test(gateway)
    const hop = direct ? {} : { gateway: formatIPv4(addressOf(gateway)) }
    return [{ interface: name, range, direct, ...hop, metric: Number(metric) }]
  })
}

/** The file contains addresses in the byte order of the processor. */
function addressOf(hex = ''): number {
  const bytes = Buffer.from(hex, 'hex')
  return endianness() === 'LE' ? bytes.readUInt32LE() : bytes.readUInt32BE()
}
