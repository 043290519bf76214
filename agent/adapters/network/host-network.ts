/** Routes and the tunnel of the pod network, through ip(8) and bridge(8), and the rule among Docker's own, through iptables(8). */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tunnelPort } from '../../../api/network/pod-network.ts'
import { forwardMark } from '../../network/peers/peer-rules.ts'
import type { RouteStep } from '../../network/peers/route-steps.ts'
import type { HostNetwork, StepFailure } from '../../network/peers/route-sync.ts'
import {
  type PodRoute,
  type TunnelDevice,
  tunnelDevice,
  tunnelMtu,
  wireguardDevice,
  wireguardMtu,
} from '../../network/peers/tunnels.ts'
import { readRoutes } from '../kernel/host-routes.ts'
import { runTool, runToolOrThrow } from './run-tool.ts'

/** Marks our routes in the kernel: none of those that /etc/iproute2/rt_protos names. */
const routeProtocol = 98
/** Of VXLAN, as flannel: all nodes are in one. */
const tunnelId = 1

export type HostNetworkTools = { readonly ip: string; readonly bridge: string; readonly iptables: string }

const usualTools: HostNetworkTools = { ip: 'ip', bridge: 'bridge', iptables: 'iptables' }

/** `root`: where the kernel's files are found. */
export function hostNetwork(
  root: string,
  tools = usualTools,
): HostNetwork & {
  /** The rule among Docker's own is there. */
  isAccepting(): Promise<boolean>
} {
  const { ip, iptables } = tools

  /** `--wait`: another program may hold the lock of iptables, for seconds while it starts. */
  const docker = (...args: readonly string[]) => runTool(iptables, ['--wait', '5', ...args])
  const isAccepting = async () => (await docker('--check', ...markRule)).code === 0

  return {
    isAccepting,

    async links() {
      const devices = await readFile(join(root, 'proc/net/dev'), 'utf8')
      const has = (device: TunnelDevice) => new RegExp(`^ *${device}:`, 'm').test(devices)
      return { routes: await readRoutes(root), hasTunnel: has(tunnelDevice), hasWireguard: has(wireguardDevice) }
    },

    async made() {
      const tried = 'Cannot list the routes to pods'
      const text = await runToolOrThrow(tried, ip, ['-j', '-4', 'route', 'show', 'proto', `${routeProtocol}`])
      const tunnelAddress = await addressOf(ip, tunnelDevice)
      const wireguardAddress = await addressOf(ip, wireguardDevice)
      const addresses = { ...(tunnelAddress && { tunnelAddress }), ...(wireguardAddress && { wireguardAddress }) }
      return { ...routesIn(text), tunnelPeers: [], ...addresses }
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

    async acceptMarked() {
      if (await isAccepting()) return
      const { code, stderr } = await docker('--insert', ...markRule)
      if (code === 0) return
      const remedy = 'Docker makes the chain DOCKER-USER when it starts, unless it runs with "iptables": false'
      throw new Error(`Cannot add a rule to DOCKER-USER: ${stderr.trim().slice(0, 200)} (${remedy})`)
    },

    async refuseMarked() {
      if (await isAccepting()) await docker('--delete', ...markRule)
    },
  }
}

/** Undefined: there is no interface, or it has none or several. */
async function addressOf(ip: string, device: TunnelDevice): Promise<string | undefined> {
  const { code, stdout } = await runTool(ip, ['-j', '-4', 'address', 'show', 'dev', device])
  if (code !== 0) return undefined
  const [address, ...others] = [...stdout.matchAll(/"local": ?"([\d.]+)"/g)].map((match) => match[1])
  return others.length === 0 ? address : undefined
}

/** Whether Docker's chain for rules of others is there; undefined: this user may not see it, or iptables is missing. */
export async function hasDockerRules(iptables = 'iptables'): Promise<boolean | undefined> {
  try {
    const { code, stderr } = await runTool(iptables, ['--wait', '2', '--list-rules', 'DOCKER-USER'])
    return /permission denied/i.test(stderr) ? undefined : code === 0
  } catch {
    return undefined
  }
}

/** Of the first command of a step that failed. */
function reasonOf({ step }: RouteStep, because: string): string {
  if (step !== 'openWireguard' || !/unknown device type|not supported/i.test(because)) return because
  return `The kernel has no WireGuard (${because}): run 'modprobe wireguard', and install a kernel that has this module, as those of Debian and Raspberry Pi OS have`
}

const markRule = ['DOCKER-USER', '--match', 'mark', '--mark', `${forwardMark}/${forwardMark}`, '--jump', 'ACCEPT']

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
        with_('ip', `link set dev ${tunnelDevice} address ${step.mac} mtu ${tunnelMtu} up`),
        with_('ip', `address flush dev ${tunnelDevice}`),
        with_('ip', `address replace ${step.address}/32 dev ${tunnelDevice}`),
      ]
    case 'addTunnelPeer': {
      const { address, mac, node } = step.peer
      return [
        with_('ip', `neighbour replace ${address} lladdr ${mac} dev ${tunnelDevice} nud permanent`),
        with_('bridge', `fdb replace ${mac} dev ${tunnelDevice} dst ${node} self permanent`),
      ]
    }
    case 'removeTunnelPeer': {
      const { address, mac, node } = step.peer
      return [
        with_('ip', `neighbour del ${address} dev ${tunnelDevice}`, /No such file/),
        with_('bridge', `fdb del ${mac} dev ${tunnelDevice} dst ${node} self`, /No such file/),
      ]
    }
    case 'closeTunnel':
      return [with_('ip', `link del ${tunnelDevice}`, /Cannot find device/)]
    case 'openWireguard':
      return [
        // One that is there may be of another implementation, such as wireguard-go.
        with_('ip', `link add ${wireguardDevice} type wireguard`, /File exists/),
        with_('ip', `link set dev ${wireguardDevice} mtu ${wireguardMtu} up`),
        with_('ip', `address flush dev ${wireguardDevice}`),
        with_('ip', `address replace ${step.address}/32 dev ${wireguardDevice}`),
      ]
    case 'closeWireguard':
      return [with_('ip', `link del ${wireguardDevice}`, /Cannot find device/)]
    case 'addGuard':
      return [with_('ip', `route add ${guardText(step.range)}`, /File exists/)]
    case 'removeGuard':
      return [with_('ip', `route del ${guardText(step.range)}`, /No such process/)]
  }
}

function routeText({ range, gateway, device, source }: PodRoute): string {
  const link = device === undefined ? '' : ` dev ${device} onlink`
  const from = source === undefined ? '' : ` src ${source}`
  return `${range} via ${gateway}${link}${from} proto ${routeProtocol}`
}

/** Senders of this machine and its pods get an error at once. The metric is above those of routes that others make. */
function guardText(range: string): string {
  return `unreachable ${range} metric 1048576 proto ${routeProtocol}`
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

function routesIn(text: string): { readonly routes: readonly PodRoute[]; readonly guards: readonly string[] } {
  const rows: unknown = text.trim() === '' ? [] : JSON.parse(text)
  if (!Array.isArray(rows)) return { routes: [], guards: [] }
  const all: readonly { readonly [name: string]: unknown }[] = rows
  return {
    routes: all.flatMap(({ dst, gateway, dev }) => {
      if (typeof dst !== 'string' || typeof gateway !== 'string') return []
      const device = tunnelDevices.find((one) => one === dev)
      return [{ range: dst, gateway, ...(device && { device }) }]
    }),
    guards: all.flatMap(({ type, dst }) => (type === 'unreachable' && typeof dst === 'string' ? [dst] : [])),
  }
}
