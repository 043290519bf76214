/** Addresses of load balancers on this machine, through ip(8) and the kernel's table of neighbours. */
import { createSocket } from 'node:dgram'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { type AddressStep, lifetimeSeconds } from '../../network/balancers/address-plan.ts'
import type { BalancerHost } from '../../network/balancers/balancer-manager.ts'
import { heldIPv6, ipv6ChangesOf, ipv6Neighbours, neighbourNotices } from './balancer-ipv6.ts'
import { runTool } from './run-tool.ts'

/**
 * Label of IPv4 addresses, which shows that they are ours. They are on the loopback interface, so that they stay when
 * other programs reconfigure a link, and have the scope of the machine: the kernel never chooses them as the source of
 * other packets, and answers ARP for them on every link (`arp_ignore` is 0 by default).
 */
const label = 'lo:bramble'

/**
 * The kernel sends no gratuitous ARP for an address that is added (`arp_notify` is about links), and AF_PACKET is neither open to Node.js nor
 * to the service. So it is made to ask for a neighbour that does not exist, in a packet from the address: each machine that has the
 * address in its table updates it from the request (RFC 826, "Packet Reception"). The kernel asks three times, a second apart.
 */
const announceRange = { network: '169.254.21.0/24', first: '169.254.21.' }
const discardPort = 9
/** None of those that /etc/iproute2/rt_protos names: as routes to pods. */
const routeProtocol = 98

/** `root`: where the kernel's files are found. */
export function balancerHost(root: string, ip = 'ip'): BalancerHost {
  let announced = 0
  /** Another nonexistent neighbour each time: while the kernel resolves one, it queues further packets to it. */
  const nextNeighbour = () => `${announceRange.first}${(announced++ % 254) + 1}`
  let lastDevice: string | undefined
  const notices = neighbourNotices(root)

  /** `ip neighbour` ends the whole batch with its first failure, also with -force. */
  const probe = (steps: readonly AddressStep[], device: string | undefined) =>
    batch(
      ip,
      steps.flatMap((step) => (step.step === 'probe' ? probeOf(step.ip, device) : [])),
    )

  const applyIPv6 = async (steps: readonly AddressStep[], device: string | undefined) => {
    if (steps.length === 0) return
    if (device !== undefined && steps.some(({ step }) => step === 'take')) await notices.turnOn(device)
    const held = heldIPv6(root)
    await batch(
      ip,
      steps.flatMap((step) => ipv6ChangesOf(step, device, held.get(step.ip))),
    )
    await probe(steps, device)
  }

  return {
    held: () => new Set([...addressesOf(label), ...heldIPv6(root).keys()]),

    own() {
      const held = heldIPv6(root)
      const others = Object.entries(networkInterfaces()).flatMap(([name, all = []]) => (name === label ? [] : all))
      return new Set(others.flatMap(({ address }) => (held.has(address) ? [] : [address])))
    },

    link(address) {
      const links = Object.entries(networkInterfaces())
      const exact = links.find(([, all]) => all?.some((one) => one.address === address && !one.internal))
      // The node's address may be another one for the controller than since a moment ago.
      const [name, all] = exact ?? links.find(([one]) => one === lastDevice) ?? []
      const mac = all?.find(({ family }) => family === 'IPv4')?.mac
      if (name === undefined || mac === undefined) return undefined
      lastDevice = name
      // A further address of a link has a label, as eth0:1.
      return { device: name.replace(/:.*/, ''), mac }
    },

    async answers(device, withIPv6) {
      const text = await readFile(join(root, 'proc/net/arp'), 'utf8')
      const found = text.split('\n').flatMap((line) => {
        const [address = '', , flags, mac = '', , name] = line.trim().split(/\s+/)
        return name === device && Number(flags) & complete ? [[address, mac] as const] : []
      })
      return new Map([...found, ...(withIPv6 ? await ipv6Neighbours(ip, device) : [])])
    },

    async apply(steps, device) {
      const ofIPv4 = steps.filter((step) => !isOfIPv6(step))
      await batch(
        ip,
        ofIPv4.flatMap((step) => changesOf(step, device)),
      )
      for (const step of ofIPv4) if (step.step === 'announce') await announce(step.ip, nextNeighbour())
      await probe(ofIPv4, device)
      // Last: on a link that has IPv6 off they fail.
      await applyIPv6(steps.filter(isOfIPv6), device)
    },

    async clear() {
      await runTool(ip, ['address', 'flush', 'dev', 'lo', 'label', label])
      await runTool(ip, ['route', 'flush', announceRange.network, 'proto', `${routeProtocol}`])
      const held = heldIPv6(root)
      await batch(
        ip,
        [...held].flatMap(([address, device]) => ipv6ChangesOf({ step: 'release', ip: address }, device, device)),
      )
      await notices.turnOff()
    },
  }
}

function isOfIPv6({ ip }: Pick<AddressStep, 'ip'>): boolean {
  return ip.includes(':')
}

/** ATF_COM of if_arp.h: the neighbour has answered. */
const complete = 0x2

/** Steps other than a release need a device. */
function changesOf({ step, ip }: AddressStep, device: string | undefined): readonly string[] {
  const address = `${ip}/32 dev lo`
  switch (step) {
    case 'release':
      return [`address delete ${address}`]
    case 'take':
    case 'renew': {
      const lifetime = `valid_lft ${lifetimeSeconds} preferred_lft ${lifetimeSeconds}`
      return [`address replace ${address} scope host label ${label} ${lifetime}`]
    }
    case 'announce':
      return [`route replace ${announceRange.network} dev ${device} proto ${routeProtocol}`]
    case 'probe':
      return []
  }
}

/**
 * The entry of before is made invalid first: the kernel would use its answer for another minute. A neighbour that does not exist cannot be
 * deleted, but replaced.
 */
function probeOf(ip: string, device: string | undefined): readonly string[] {
  const neighbour = `neighbour replace ${ip} dev ${device}`
  return [`${neighbour} lladdr ${noMachine} nud failed`, `${neighbour} use`]
}

/** Locally administered; in an entry that is not valid. */
const noMachine = '02:00:00:00:00:01'

/** Rejects with the first failure; the lines after it are executed. */
async function batch(ip: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return
  const { code, stderr } = await runTool(ip, ['-force', '-batch', '-'], lines.map((line) => `${line}\n`).join(''))
  if (code === 0) return
  // An address whose lifetime has just ended is gone.
  const isGone = /^(RTNETLINK answers: )?(Error: ipv[46]: )?(Cannot assign requested address|[Aa]ddress not found)/
  const [because] = stderr
    .split('\n')
    .filter((line) => line !== '' && !/^Command failed/.test(line) && !isGone.test(line))
  if (because !== undefined) throw new Error(`Cannot change the addresses of load balancers: ${because.slice(0, 200)}`)
}

/** IPv4 addresses of a link. */
function addressesOf(name: string): readonly string[] {
  return (networkInterfaces()[name] ?? []).flatMap(({ family, address }) => (family === 'IPv4' ? [address] : []))
}

/** Resolves when the packet was handed to the kernel. */
function announce(from: string, neighbour: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const end = (error?: Error | null) => {
      socket.close()
      if (error) reject(new Error(`Cannot announce the address ${from}`, { cause: error }))
      else resolve()
    }
    socket.once('error', end)
    socket.bind({ address: from, port: 0, exclusive: true }, () => socket.send('', discardPort, neighbour, end))
  })
}
