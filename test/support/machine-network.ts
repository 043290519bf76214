/** A network of test machines: a bridge on this host, and a cable to each machine. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { machineAddresses } from './addresses.ts'
import { command, commandOrThrow } from './machine-commands.ts'
import { eventually } from './wait.ts'

export type MachineNetwork = {
  /** Where this host is reached by the machines: what listens here on all addresses, they can use. */
  readonly hostAddress: string
  readonly bridge: string
  /** A place for one more machine. `dhcp`: it has to ask for its address itself. */
  plug(id: string, dhcp?: boolean): Plug
}

export type Plug = {
  /** Address of the machine. A machine that uses DHCP gets this free one. */
  readonly address: string
  /** MAC address of its end of the cable, the same at each boot. */
  readonly mac: string
  /** A network name space in the state in which a machine finds it when it is switched on. */
  fresh(): Promise<string>
  /** The cable: out until `put`, over boots, too; a machine that starts without it has no address. */
  pull(): Promise<void>
  put(): Promise<void>
  /** All that goes beyond this network is lost without a word, over boots, too, until `put`. */
  lose(): Promise<void>
  remove(): Promise<void>
}

/**
 * MAC address of a bridge that has an address. Otherwise it would be the lowest of its ports: when one comes or goes,
 * others send to an address that is gone, until they have resolved it again. Docker sets it for its bridges, too.
 */
export const bridgeMac = '02:62:00:00:00:01'

type Ending = { teardown(end: () => Promise<unknown>): unknown }

const ip = (...args: readonly string[]) => commandOrThrow('ip', args, { withinMs: 20_000 })
const tryIp = (...args: readonly string[]) => command('ip', args, { withinMs: 20_000 })

/** Addresses 10.x.y.0/24, outside of the fleet's 10.244.0.0/16; .1 is this host. Gone when the test ends; that of a killed test goes now. */
export async function machineNetwork(t: Ending): Promise<MachineNetwork> {
  await sweepNetworks()
  const { bridge, subnet } = await makeBridge()
  t.teardown(() => removeBridge(bridge))
  let last = 1
  return {
    hostAddress: `${subnet}.1`,
    bridge,
    plug: (id, dhcp = false) => plugFor({ id, bridge, gateway: `${subnet}.1`, address: `${subnet}.${++last}`, dhcp }),
  }
}

async function makeBridge() {
  for (let tries = 0; ; tries++) {
    const subnet = machineAddresses()
    const { stdout: taken } = await tryIp('-4', 'route', 'show', `${subnet}.0/24`)
    if (taken.trim() !== '' && tries < 20) continue
    const bridge = `bm-${subnet.slice(3)}`
    await ip('link', 'add', bridge, 'address', bridgeMac, 'alias', `${process.pid}`, 'type', 'bridge')
    await ip('address', 'add', `${subnet}.1/24`, 'dev', bridge)
    await ip('link', 'set', bridge, 'up')
    for (const line of letThrough('--insert', bridge)) await commandOrThrow(...line)
    return { bridge, subnet }
  }
}

async function removeBridge(bridge: string): Promise<void> {
  for (const line of letThrough('--delete', bridge)) await command(...line)
  await tryIp('link', 'delete', bridge)
}

/** What a Docker on this host sets up drops all foreign traffic, also between the ports of a bridge (br_netfilter). */
function letThrough(change: '--insert' | '--delete', bridge: string): readonly [string, readonly string[]][] {
  const rule = ['--wait', change, 'FORWARD', '-i', bridge, '-o', bridge, '-j', 'ACCEPT']
  return ['iptables', 'ip6tables'].filter((tool) => existsSync(`/usr/sbin/${tool}`)).map((tool) => [tool, rule])
}

async function sweepNetworks(): Promise<void> {
  const links = '/sys/class/net'
  for (const bridge of (await readdir(links)).filter((name) => name.startsWith('bm-'))) {
    const owner = await readFile(`${links}/${bridge}/ifalias`, 'utf8').catch(() => '')
    if (owner.trim() !== '' && !existsSync(`/proc/${owner.trim()}`)) await removeBridge(bridge)
  }
}

/**
 * Resolves when the bridge of this port lets packets through: some time after both ends of its cable are up, as the kernel has to notice the
 * carrier first. What is sent before is lost. `space`: the network namespace of the bridge, by default that of this host.
 */
export async function portForwards(port: string, space?: string): Promise<void> {
  const shown = [...(space === undefined ? [] : ['-n', space]), 'link', 'show', 'dev', port]
  const isForwarding = async () => /state forwarding/.test(await commandOrThrow('bridge', shown))
  await eventually(`the port ${port} forwards`, isForwarding, { everyMs: 10 })
}

type PlugOptions = {
  readonly id: string
  readonly bridge: string
  readonly gateway: string
  readonly address: string
  readonly dhcp: boolean
}

function plugFor({ id, bridge, gateway, address, dhcp }: PlugOptions): Plug {
  const mac = `02:${randomBytes(5)
    .toString('hex')
    .replace(/..(?=.)/g, '$&:')}`
  let cable: 'in' | 'out' | 'losing' = 'in'
  let isThere = false
  const remove = async () => {
    // Its cable goes with the name space, but only some time later.
    await tryIp('link', 'delete', id)
    await tryIp('netns', 'delete', id)
    isThere = false
  }
  const set = async (to: typeof cable) => {
    cable = to
    if (!isThere) return
    await ip('link', 'set', id, cable === 'out' ? 'down' : 'up')
    if (cable === 'out') return
    await portForwards(id)
    if (!dhcp) {
      await ip('-n', id, 'address', 'replace', `${address}/24`, 'dev', 'host0')
      await ip('-n', id, 'route', 'replace', 'default', 'via', gateway)
    }
    const neighbour = [gateway, 'dev', 'host0']
    if (cable === 'losing') {
      await ip('-n', id, 'neighbour', 'replace', ...neighbour, 'lladdr', unusedAddress, 'nud', 'permanent')
    } else await tryIp('-n', id, 'neighbour', 'delete', ...neighbour)
  }
  return {
    address,
    mac,
    async fresh() {
      await remove()
      await ip('netns', 'add', id)
      await ip('link', 'add', id, 'type', 'veth', 'peer', 'name', 'host0', 'address', mac, 'netns', id)
      await ip('link', 'set', id, 'master', bridge)
      // The kernel copies this host's value, which may be that of a Docker here.
      await ip('netns', 'exec', id, 'sysctl', '--quiet', '--write', 'net.ipv4.ip_forward=0')
      await ip('-n', id, 'link', 'set', 'lo', 'up')
      await ip('-n', id, 'link', 'set', 'host0', 'up')
      isThere = true
      await set(cable)
      return `/run/netns/${id}`
    },
    pull: () => set('out'),
    put: () => set('in'),
    lose: () => set('losing'),
    remove,
  }
}

/** MAC address of no machine: packets to it are lost. */
const unusedAddress = '02:00:00:00:00:01'
