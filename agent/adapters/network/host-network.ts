/** Routes and the tunnel of the pod network, through ip(8) and bridge(8), with the rule among Docker's own. */
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { tunnelPort } from '../../../api/network/pod-network.ts'
import type { RouteStep, ServiceRoute } from '../../network/peers/host-routes.ts'
import type { MadeRoutes } from '../../network/peers/route-steps.ts'
import type { HostNetwork, StepFailure } from '../../network/peers/route-sync.ts'
import { loopback } from '../../network/peers/service-route.ts'
import { type PodRoute, type TunnelDevice, tunnelDevice, wireguardDevice } from '../../network/peers/tunnels.ts'
import { readIPv6Routes, readRoutes } from '../kernel/host-routes.ts'
import { textOf } from '../kernel/kernel-files.ts'
import { type DockerRules, dockerRules } from './docker-rules.ts'
import { runTool, runToolOrThrow } from './run-tool.ts'

/** Marks our routes in the kernel: none of those that /etc/iproute2/rt_protos names. */
const routeProtocol = 98
/** VXLAN network identifier, as in flannel: the tunnels of all nodes have the same. */
const tunnelId = 1

export type HostNetworkTools = {
  readonly ip: string
  readonly bridge: string
  readonly iptables: string
  readonly ip6tables: string
}

const usualTools: HostNetworkTools = { ip: 'ip', bridge: 'bridge', iptables: 'iptables', ip6tables: 'ip6tables' }

/** `root`: where the kernel's files are found. `linkWith`: the interface that has an address. */
export function hostNetwork(
  root: string,
  tools = usualTools,
  linkWith: (address: string) => string | undefined = interfaceWith,
): HostNetwork & DockerRules {
  const { ip } = tools
  const mtuOf = (device: string | undefined): number | undefined => {
    if (device === undefined) return undefined
    const text = textOf(join(root, 'sys/class/net', device, 'mtu')) ?? ''
    return /^\d+\n?$/.test(text) ? Number(text) : undefined
  }

  return {
    ...dockerRules(tools),

    async links(withIPv6 = false, address) {
      const devices = tunnelsIn(root)
      const links = {
        routes: readRoutes(root),
        ...(withIPv6 && { ipv6Routes: readIPv6Routes(root) }),
        hasTunnel: devices.has(tunnelDevice),
        hasWireguard: devices.has(wireguardDevice),
      }
      if (address === undefined) return links
      const linkMtu = mtuOf(linkWith(address))
      const tunnelMtus: { [D in TunnelDevice]?: number } = {}
      for (const device of devices) {
        const mtu = mtuOf(device)
        if (mtu !== undefined) tunnelMtus[device] = mtu
      }
      return { ...links, ...(linkMtu !== undefined && { linkMtu }), tunnelMtus }
    },

    async made() {
      const tried = 'Cannot list the routes to pods'
      const list = (...family: readonly string[]) => ['-j', ...family, 'route', 'show', 'proto', `${routeProtocol}`]
      const text = await runToolOrThrow(tried, ip, list('-4'))
      // A kernel without IPv6 refuses to list its routes.
      const ipv6Text = await runTool(ip, list('-6'))
      const ofIPv6 = routesIn(ipv6Text.code === 0 ? ipv6Text.stdout : '')
      const devices = tunnelsIn(root)
      const addresses = async (device: TunnelDevice) => (devices.has(device) ? await addressesOf(ip, device) : {})
      const [tunnel, wireguard] = [await addresses(tunnelDevice), await addresses(wireguardDevice)]
      const tunnelIPv6 = {
        ...(tunnel.ipv6 && { [tunnelDevice]: tunnel.ipv6 }),
        ...(wireguard.ipv6 && { [wireguardDevice]: wireguard.ipv6 }),
      }
      const { routes, guards } = routesIn(text)
      return {
        routes: [...routes, ...ofIPv6.routes],
        guards: [...guards, ...ofIPv6.guards],
        ...(ofIPv6.serviceRoutes.length > 0 && { serviceRoutes: ofIPv6.serviceRoutes }),
        tunnelPeers: [],
        ...(tunnel.ipv4 && { tunnelAddress: tunnel.ipv4 }),
        ...(wireguard.ipv4 && { wireguardAddress: wireguard.ipv4 }),
        ...(Object.keys(tunnelIPv6).length > 0 && { tunnelIPv6 }),
      }
    },

    async apply(steps) {
      const failed: StepFailure[] = []
      for (const { tool, commands } of batches(steps)) {
        const { stderr } = await runTool(tools[tool], ['-force', '-batch', '-'], linesOf(commands))
        const reasons = failuresIn(stderr)
        for (const [index, { step, mayFail }] of commands.entries()) {
          const because = reasons.get(index + 1)
          const isNew = failed.at(-1)?.step !== step
          if (because !== undefined && isNew && !mayFail?.test(because))
            failed.push({ step, because: reasonOf(step, because) })
        }
      }
      return failed
    },
  }
}

function interfaceWith(address: string): string | undefined {
  const all = Object.entries(networkInterfaces())
  return all.find(([, addresses = []]) => addresses.some((one) => one.address === address))?.[0]
}

/** Those that the machine has. */
function tunnelsIn(root: string): ReadonlySet<TunnelDevice> {
  const devices = readFileSync(join(root, 'proc/net/dev'), 'utf8')
  return new Set(tunnelDevices.filter((device) => new RegExp(`^ *${device}:`, 'm').test(devices)))
}

type DeviceAddresses = { readonly ipv4?: string | undefined; readonly ipv6?: string | undefined }

/** Undefined: it has none or several of that family, beside those of its link. */
async function addressesOf(ip: string, device: TunnelDevice): Promise<DeviceAddresses> {
  const { code, stdout } = await runTool(ip, ['-j', 'address', 'show', 'dev', device])
  if (code !== 0) return {}
  const all = [...stdout.matchAll(/"local": ?"([\da-f.:]+)"/g)].map(([, address = '']) => address)
  const one = (addresses: readonly string[]) => (addresses.length === 1 ? addresses[0] : undefined)
  return {
    ipv4: one(all.filter((address) => !address.includes(':'))),
    ipv6: one(all.filter((address) => address.includes(':') && !address.startsWith('fe80:'))),
  }
}

/** Reason of the failed first command of a step, with its remedy. */
function reasonOf({ step }: RouteStep, because: string): string {
  if (step !== 'openWireguard' || !/unknown device type|not supported/i.test(because)) return because
  return `The kernel has no WireGuard (${because}): run 'modprobe wireguard', and install a kernel that has this module, as those of Debian and Raspberry Pi OS have`
}

type Tool = 'ip' | 'bridge'
type Command = {
  readonly tool: Tool
  readonly line: string
  readonly step: RouteStep
  /** Failures that mean that it is done. */
  readonly mayFail?: RegExp
}

/** Runs of commands for the same tool, in their order. */
function batches(
  steps: readonly RouteStep[],
): readonly { readonly tool: Tool; readonly commands: readonly Command[] }[] {
  const all: { tool: Tool; commands: Command[] }[] = []
  for (const command of steps.flatMap(commandsOf)) {
    const last = all.at(-1)
    if (last?.tool === command.tool) last.commands.push(command)
    else all.push({ tool: command.tool, commands: [command] })
  }
  return all
}

function linesOf(commands: readonly Command[]): string {
  return commands.map(({ line }) => `${line}\n`).join('')
}

function commandsOf(step: RouteStep): readonly Command[] {
  const with_ = (tool: Tool, line: string, mayFail?: RegExp): Command => ({
    tool,
    line,
    step,
    ...(mayFail && { mayFail }),
  })
  switch (step.step) {
    case 'addRoute':
      return [with_('ip', `route add ${routeText(step.route)}`)]
    case 'removeRoute':
      return [with_('ip', `route del ${routeText(step.route)}`, /No such process/)]
    case 'openTunnel':
      return [
        with_(
          'ip',
          `link add ${tunnelDevice} type vxlan id ${tunnelId} dstport ${tunnelPort} nolearning`,
          /File exists/,
        ),
        with_('ip', `link set dev ${tunnelDevice} address ${step.mac} mtu ${step.mtu} up`),
        with_('ip', `address flush dev ${tunnelDevice}`),
        with_('ip', `address replace ${step.address}/32 dev ${tunnelDevice}`),
      ]
    case 'addTunnelPeer': {
      const { address, mac, node, ipv6 } = step.peer
      const isAt = `lladdr ${mac} dev ${tunnelDevice} nud permanent`
      return [
        with_('ip', `neighbour replace ${address} ${isAt}`),
        ...(ipv6 === undefined ? [] : [with_('ip', `neighbour replace ${ipv6} ${isAt}`, ofIPv6)]),
        with_('bridge', `fdb replace ${mac} dev ${tunnelDevice} dst ${node} self permanent`),
      ]
    }
    case 'removeTunnelPeer': {
      const { address, mac, node, ipv6 } = step.peer
      return [
        with_('ip', `neighbour del ${address} dev ${tunnelDevice}`, /No such file/),
        ...(ipv6 === undefined ? [] : [with_('ip', `neighbour del ${ipv6} dev ${tunnelDevice}`, ofIPv6)]),
        with_('bridge', `fdb del ${mac} dev ${tunnelDevice} dst ${node} self`, /No such file/),
      ]
    }
    case 'setTunnelMtu':
      return [with_('ip', `link set dev ${step.device} mtu ${step.mtu}`)]
    case 'addTunnelIPv6':
      // A node alone has the address: the kernel need not look for another holder.
      return [with_('ip', `address replace ${step.address}/128 dev ${step.device} nodad`)]
    case 'removeTunnelIPv6':
      return [with_('ip', `address del ${step.address}/128 dev ${step.device}`, /Cannot assign/)]
    case 'closeTunnel':
      return [with_('ip', `link del ${tunnelDevice}`, /Cannot find device/)]
    case 'openWireguard':
      return [
        // One that is there may be of another implementation, such as wireguard-go.
        with_('ip', `link add ${wireguardDevice} type wireguard`, /File exists/),
        with_('ip', `link set dev ${wireguardDevice} mtu ${step.mtu} up`),
        with_('ip', `address flush dev ${wireguardDevice}`),
        with_('ip', `address replace ${step.address}/32 dev ${wireguardDevice}`),
      ]
    case 'closeWireguard':
      return [with_('ip', `link del ${wireguardDevice}`, /Cannot find device/)]
    case 'addGuard':
      return [with_('ip', `route add ${guardText(step.range)}`, /File exists/)]
    case 'removeGuard':
      return [with_('ip', `route del ${guardText(step.range)}`, /No such process/)]
    case 'addServiceRoute':
      return [with_('ip', `route add ${serviceRouteText(step.route)}`)]
    case 'removeServiceRoute':
      return [with_('ip', `route del ${serviceRouteText({ range: step.route.range })}`, /No such process/)]
  }
}

/** Without IPv6 on the device its address has failed, which is reported; the peer has IPv4. */
const ofIPv6 = /./

function routeText({ range, gateway, device, source }: PodRoute): string {
  const link = device === undefined ? '' : ` dev ${device} onlink`
  const from = source === undefined ? '' : ` src ${source}`
  return `${range} via ${gateway}${link}${from} proto ${routeProtocol}`
}

/** Senders of this machine and its pods get an error at once. The metric is above those of routes that others make. */
function guardText(range: string): string {
  return `unreachable ${range} metric 1048576 proto ${routeProtocol}`
}

/** The same metric: a route of others to the range comes first. */
function serviceRouteText({ range, source }: ServiceRoute): string {
  const from = source === undefined ? '' : ` src ${source}`
  return `${range} dev ${loopback}${from} metric 1048576 proto ${routeProtocol}`
}

/** By the number of the line in the batch, from 1: what ip printed before "Command failed -:3". */
function failuresIn(stderr: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  let last = 'it failed'
  for (const line of stderr.split('\n')) {
    const failed = /^Command failed .*:(\d+)$/.exec(line)
    if (failed !== null) found.set(Number(failed[1]), last)
    else if (line.trim() !== '')
      last = line
        .trim()
        .replace(/^(RTNETLINK answers|Error): /, '')
        .slice(0, 200)
  }
  return found
}

const tunnelDevices: readonly TunnelDevice[] = [tunnelDevice, wireguardDevice]

type ListedRoutes = Pick<MadeRoutes, 'routes'> & Required<Pick<MadeRoutes, 'guards' | 'serviceRoutes'>>

function routesIn(text: string): ListedRoutes {
  const rows: unknown = text.trim() === '' ? [] : JSON.parse(text)
  if (!Array.isArray(rows)) return { routes: [], guards: [], serviceRoutes: [] }
  const all: readonly { readonly [name: string]: unknown }[] = rows
  return {
    routes: all.flatMap(({ dst, gateway, dev }) => {
      if (typeof dst !== 'string' || typeof gateway !== 'string') return []
      const device = tunnelDevices.find((one) => one === dev)
      return [{ range: dst, gateway, ...(device && { device }) }]
    }),
    guards: all.flatMap(({ type, dst }) => (type === 'unreachable' && typeof dst === 'string' ? [dst] : [])),
    serviceRoutes: all.flatMap(({ type = 'unicast', dst, dev, gateway, prefsrc }) => {
      if (typeof dst !== 'string' || dev !== loopback || type !== 'unicast' || gateway !== undefined) return []
      return [{ range: dst, ...(typeof prefsrc === 'string' && { source: prefsrc }) }]
    }),
  }
}
