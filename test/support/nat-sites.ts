/**
 * A fleet at three places: two sites, each a machine behind a router with NAT, and a machine that both reach. The controller is on this
 * host. The machines of the sites have the same address.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { usualWireguardPort } from '../../api/network/wireguard.ts'
import { startDockerd, type TestDockerd, whyNoDockerd } from './dockerd.ts'
import {
  agentLauncher,
  type Controller,
  type ControllerOptions,
  joinFleet,
  startAgent,
  startController,
  temporaryFolder,
} from './fleet.ts'
import { command, commandOrThrow, inSpace, type Outcome } from './machine-commands.ts'
import { type MachineNetwork, machineNetwork } from './machine-network.ts'
import { image } from './pods.ts'
import type { Program } from './program.ts'
import { plugged, type Space, sandboxPid } from './routed-machines.ts'
import { startWireguard, whyNoWireguard } from './wireguard.ts'

export type SiteMachine = Pick<Space, 'space' | 'run'> & {
  readonly name: string
  readonly docker: TestDockerd
  /** Its router; of the machine that both sites reach itself. */
  readonly router: Space
  startAgent(): Promise<Program>
  /** `bramble-wg` again, after it was deleted. */
  wireguardAgain(): Promise<void>
  /** What `wg …` prints there. */
  wireguard(...args: readonly string[]): Promise<string>
  /** `bramble-agent network …` beside it. */
  networkCommand(...args: readonly string[]): Promise<Outcome>
}

export type NatSites = {
  readonly network: MachineNetwork
  readonly controller: Controller
  /** Another in its place, once it has ended: the same data and ports, with these settings in place of its own. */
  controllerAgain(settings: ControllerOptions['settings']): Promise<Controller>
  readonly east: SiteMachine
  readonly west: SiteMachine
  readonly middle: SiteMachine
  /** `sh -c` with the files of this host in the network of a pod of `default`: no agent takes part. */
  inNetworkOf(pod: string, script: string): Promise<Outcome>
}

/** For `test(name, { skip: whyNoNatSites() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoNatSites(): string | false {
  return whyNoDockerd() || whyNoWireguard()
}

/** They have joined; their agents are not started. `settings`: of the controller, beside those of the tunnel. */
export async function natSites(t: Test, settings: ControllerOptions['settings'] = {}): Promise<NatSites> {
  const folder = await temporaryFolder(t)
  const network = await machineNetwork(t)
  const served = {
    dataDir: join(folder, 'controller'),
    settings: { podNetwork: 'routed', podNetworkTunnel: 'wireguard', ...settings },
    address: network.hostAddress,
  }
  const controller = await startController(t, served)
  const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
  const machine = async (name: string, { space, run }: Pick<Space, 'space' | 'run'>, router: Space) => {
    const docker = await startDockerd(t, { space, withRules: true })
    await run('iptables', '--wait', '--policy', 'FORWARD', 'DROP')
    await docker.importImage(image)
    const dataDir = join(folder, name)
    await joinFleet(controller, name, dataDir, space)
    const wireguard = await startWireguard(t, space)
    const env = { PATH: `${wireguard.folder}:${process.env['PATH'] ?? ''}` }
    const options = { dataDir, dockerSocket: docker.socket, space, env }
    return {
      ...{ name, docker, space, run, router },
      startAgent: () => startAgent(t, options),
      wireguardAgain: wireguard.again,
      wireguard: (...args: readonly string[]) => commandOrThrow(wireguard.tool, args),
      networkCommand(...args: readonly string[]) {
        const line = ['env', `PATH=${env.PATH}`, agentLauncher, 'network', '--data-dir', dataDir, ...args]
        const [file = '', ...rest] = inSpace(space, ...line)
        return command(file, rest)
      },
    }
  }
  const behindRouter = async (name: string) => {
    const router = await plugged(t, network)
    return await machine(name, await home(t, router), router)
  }
  const open = await plugged(t, network)
  const [east, west, middle] = await Promise.all([
    behindRouter('east'),
    behindRouter('west'),
    machine('middle', open, open),
  ])
  return {
    ...{ network, controller, east, west, middle },
    controllerAgain: (more) => startController(t, { ...served, ...ports, settings: { ...served.settings, ...more } }),
    async inNetworkOf(pod, script) {
      const pids = await Promise.all([east, west, middle].map(({ docker }) => sandboxPid(docker, pod)))
      const pid = pids.find((one) => one !== undefined)
      if (pid === undefined) throw new Error(`Pod ${pod} runs on no machine`)
      return await command('nsenter', [`--net=/proc/${pid}/ns/net`, 'sh', '-c', script])
    },
  }
}

export const homeAddress = '192.168.7.2'

/** The network of a home: its router lets connections out, under its own address, and none in. */
async function home(t: Test, router: Space): Promise<Pick<Space, 'space' | 'run'>> {
  const space = `br-${randomBytes(4).toString('hex')}`
  const ip = (...args: readonly string[]) => commandOrThrow('ip', args)
  await ip('netns', 'add', space)
  t.teardown(() => command('ip', ['netns', 'delete', space]))
  await ip('-n', router.space, 'link', 'add', 'lan', 'type', 'veth', 'peer', 'name', 'host0', 'netns', space)
  await ip('-n', router.space, 'address', 'add', '192.168.7.1/24', 'dev', 'lan')
  await ip('-n', router.space, 'link', 'set', 'lan', 'up')
  await ip('-n', space, 'address', 'add', `${homeAddress}/24`, 'dev', 'host0')
  for (const name of ['lo', 'host0']) await ip('-n', space, 'link', 'set', name, 'up')
  await ip('-n', space, 'route', 'add', 'default', 'via', '192.168.7.1')
  await router.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
  for (const rule of [
    '-t nat -A POSTROUTING -o host0 -j MASQUERADE',
    '-P FORWARD DROP',
    '-A FORWARD -i lan -j ACCEPT',
    '-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT',
  ])
    await router.run('iptables', '--wait', ...rule.split(' '))
  return {
    space,
    run(...words) {
      const [file = '', ...args] = inSpace(space, ...words)
      return commandOrThrow(file, args)
    },
  }
}

const [eastPrefix, westPrefix] = ['fd00:8:1::', 'fd00:8:2::'] as const
/** Addresses of the machines, once there is an IPv6 link between the sites. */
export const ipv6AddressOf = { east: `${eastPrefix}2`, west: `${westPrefix}2` } as const

/**
 * An IPv6 link between the sites, fd00:9::/64, whose routers let in WireGuard alone. The machine that both reach has an address of it
 * already.
 */
export async function linkByIPv6({ east, west, middle }: NatSites): Promise<void> {
  const sides = [
    { ...{ site: east, prefix: eastPrefix, own: 'fd00:9::11' }, ...{ other: westPrefix, gateway: 'fd00:9::12' } },
    { ...{ site: west, prefix: westPrefix, own: 'fd00:9::12' }, ...{ other: eastPrefix, gateway: 'fd00:9::11' } },
  ]
  for (const { site, prefix, own, other, gateway } of sides) {
    const ip = (machine: Pick<SiteMachine, 'run'>, line: string) => machine.run('ip', '-6', ...line.split(' '))
    await site.router.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv6/conf/all/forwarding')
    await ip(site.router, `address add ${own}/64 dev host0 nodad`)
    await ip(site.router, `address add ${prefix}1/64 dev lan nodad`)
    await ip(site.router, `route add ${other}/64 via ${gateway}`)
    for (const rule of [
      '-P FORWARD DROP',
      '-A FORWARD -i lan -j ACCEPT',
      '-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT',
      `-A FORWARD -p udp --dport ${usualWireguardPort} -j ACCEPT`,
    ])
      await site.router.run('ip6tables', '--wait', ...rule.split(' '))
    await ip(site, `address add ${prefix}2/64 dev host0 nodad`)
    await ip(site, `route add default via ${prefix}1`)
    await ip(middle, `route add ${prefix}/64 via ${own}`)
  }
}
