/**
 * IPv6 addresses of load balancers on this machine. They are on its link, and not on the loopback interface as those of IPv4: the kernel
 * answers neighbour solicitations for addresses of the interface that they arrive on only.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatIPv6 } from '../../../api/text/ipv6-range.ts'
import { type AddressStep, lifetimeSeconds } from '../../network/balancers/address-plan.ts'
import { textOf } from '../kernel/kernel-files.ts'
import { networkFolder } from './network-owner.ts'
import { runToolOrThrow } from './run-tool.ts'

/**
 * Flags of linux/if_addr.h: IFA_F_DEPRECATED, with which no program uses the address as the source of other packets,
 * and IFA_F_HOMEADDRESS, for Mobile IPv6 (RFC 6275), which no node of a fleet uses. IPv6 addresses have no label: both
 * flags together mark ours.
 */
const marks = 0x20 | 0x10
/** A length of 128, in hexadecimal. */
const wholeAddress = '80'

/** The interface of each address. Read without starting a process. `root`: where the kernel's files are found. */
export function heldIPv6(root: string): ReadonlyMap<string, string> {
  const text = textOf(join(root, 'proc/net/if_inet6')) ?? ''
  return new Map(
    text.split('\n').flatMap((line) => {
      const [digits = '', , length, , flags = '', device = ''] = line.trim().split(/\s+/)
      const isHeld = length === wholeAddress && (Number.parseInt(flags, 16) & marks) === marks
      return isHeld && /^[0-9a-f]{32}$/.test(digits) ? [[formatIPv6(BigInt(`0x${digits}`)), device] as const] : []
    }),
  )
}

/**
 * Lines of ip(8). An address that is taken is tentative for 1 to 2 s, while the kernel asks for another holder (RFC 4862, 5.4): it removes the
 * address if there is one, and announces it otherwise. `held`: the interface that has the address.
 */
export function ipv6ChangesOf({ step, ip }: AddressStep, device: string | undefined, held?: string): readonly string[] {
  switch (step) {
    case 'release':
      return held === undefined ? [] : [`address delete ${ip}/128 dev ${held}`]
    case 'take':
    case 'renew': {
      const moved = held === undefined || held === device ? [] : [`address delete ${ip}/128 dev ${held}`]
      const lifetime = `valid_lft ${lifetimeSeconds} preferred_lft 0`
      return [...moved, `address replace ${ip}/128 dev ${device} home noprefixroute ${lifetime}`]
    }
    case 'announce':
    case 'probe':
      return []
  }
}

/** MAC addresses of the machines on the link that have answered, by address. */
export async function ipv6Neighbours(ip: string, device: string): Promise<ReadonlyMap<string, string>> {
  const text = await runToolOrThrow('Cannot read the neighbours of the link', ip, [
    ...['-6', 'neighbour', 'show', 'dev', device],
  ])
  return new Map(
    text.split('\n').flatMap((line) => {
      const [, address = '', mac = ''] = /^(\S+) lladdr (\S+) .*\b(?:REACHABLE|STALE|DELAY|PROBE)\b/.exec(line) ?? []
      return mac === '' ? [] : [[address, mac] as const]
    }),
  )
}

export interface NeighbourNotices {
  /** The kernel announces the addresses that the interface gets: unsolicited, with the override flag, to all nodes of the link. */
  turnOn(device: string): Promise<void>
  /** Where `turnOn` has changed it, also that of an earlier process. */
  turnOff(): Promise<void>
}

/**
 * `net.ipv6.conf.LINK.ndisc_notify` (ip-sysctl): a raw socket, which would do the same, is not open to Node.js. What was changed is recorded in
 * /run, which a reboot empties as it does the settings.
 */
export function neighbourNotices(root: string): NeighbourNotices {
  const pathOf = (device: string) => join(root, 'proc/sys/net/ipv6/conf', device, 'ndisc_notify')
  const record = async () => join(await networkFolder(root), 'announcing-links')
  const recorded = async () => (textOf(await record()) ?? '').split('\n').filter((device) => device !== '')
  return {
    async turnOn(device) {
      if ((await readFile(pathOf(device), 'utf8')).trim() === '1') return
      const devices = new Set([...(await recorded()), device])
      await mkdir(await networkFolder(root), { recursive: true, mode: 0o700 })
      await writeFile(await record(), [...devices].join('\n'))
      await writeFile(pathOf(device), '1\n')
    },
    async turnOff() {
      // A link that is gone took its setting with it.
      const present = (await recorded()).filter((device) => textOf(pathOf(device)) !== undefined)
      for (const device of present) await writeFile(pathOf(device), '0\n')
      await rm(await record(), { force: true })
    },
  }
}
