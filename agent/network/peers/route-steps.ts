/** From the routes that the kernel has to those that are wanted: steps that leave the routes of others alone. */
import { formatCidr } from '../../../api/text/cidr.ts'
import type { PeerNetwork } from './family-network.ts'
import { homeNetworkOverlaps } from './home-networks.ts'
import type { HostIPv6Route, HostRoute, RouteStep, ServiceRoute } from './host-routes.ts'
import { serviceRouteSteps } from './service-route.ts'
import { tunnelMtu } from './tunnel-mtu.ts'
import { type PodRoute, type TunnelDevice, type TunnelPeer, tunnelDevice, wireguardDevice } from './tunnels.ts'

export type HostLinks = {
  readonly routes: readonly HostRoute[]
  /** undefined: they were not requested. */
  readonly ipv6Routes?: readonly HostIPv6Route[]
  readonly hasTunnel: boolean
  readonly hasWireguard: boolean
  /** MTU of the link with the requested address; undefined: no such link, or the kernel does not show it. */
  readonly linkMtu?: number
  /** MTUs of the existing tunnels, as far as the kernel shows them. */
  readonly tunnelMtus?: TunnelMtus
}

export type TunnelMtus = { readonly [D in TunnelDevice]?: number }

/** What this node has made of it, as far as that is certain. */
export type MadeRoutes = {
  /** With those of an earlier agent. */
  readonly routes: readonly PodRoute[]
  readonly tunnelPeers: readonly TunnelPeer[]
  /** Its end of VXLAN, with that of an earlier agent. */
  readonly tunnelAddress?: string
  /** The same of WireGuard; undefined: the interface may be another one's. */
  readonly wireguardAddress?: string
  /** The IPv6 addresses of both, with those of an earlier agent. */
  readonly tunnelIPv6?: TunnelIPv6
  /** Ranges to which packets without another route are refused, with those of an earlier agent. */
  readonly guards?: readonly string[]
  /** With those of an earlier agent. */
  readonly serviceRoutes?: readonly ServiceRoute[]
}

export type TunnelIPv6 = { readonly [D in TunnelDevice]?: string }

export type RoutePlan = {
  readonly steps: readonly RouteStep[]
  /** Routes of others for the addresses of pods, as sentences: they stay, and pods there are not reached. */
  readonly inTheWay: readonly string[]
  /** The same for IPv6 addresses. */
  readonly ipv6InTheWay: readonly string[]
  /** Networks of the machine that have addresses of the fleet, as sentences. */
  readonly overlaps: readonly string[]
}

/** `wanted` undefined: the fleet has no network. */
export function planRoutes(wanted: PeerNetwork | undefined, made: MadeRoutes, host: HostLinks): RoutePlan {
  const routes = [...(wanted?.routes ?? []), ...(wanted?.ipv6?.routes ?? [])]
  const steps: RouteStep[] = []
  const present = routesByRange(host)
  const kept = new Set(routes.map(routeKey))
  for (const route of made.routes) {
    if (!kept.has(routeKey(route)) && isThere(present, route)) steps.push({ step: 'removeRoute', route })
  }
  steps.push(
    ...guardSteps(wanted, made, host),
    ...serviceRouteSteps(wanted?.ipv6?.serviceRoute, made.serviceRoutes, present),
  )
  steps.push(...tunnelSteps(wanted?.tunnel, made, host), ...wireguardSteps(wanted, made, host))
  steps.push(...mtuSteps(wanted?.tunnel, host, steps))
  steps.push(...tunnelIPv6Steps(wanted?.tunnel, made, host, steps))
  const own = new Set(made.routes.map(({ range, gateway }) => `${range} ${gateway}`))
  const blocked: { readonly range: string; readonly because: string }[] = []
  for (const route of routes.filter((one) => !isThere(present, one))) {
    const { range } = route
    const other = foreignRoute(present, route, own)
    if (other === undefined) steps.push({ step: 'addRoute', route })
    else blocked.push({ range, because: `the route to ${range} on ${other.interface} is not Bramble's: remove it` })
  }
  const isOfIPv6 = (range: string) => range.includes(':')
  return {
    steps,
    inTheWay: blocked.flatMap(({ range, because }) => (isOfIPv6(range) ? [] : [because])),
    ipv6InTheWay: blocked.flatMap(({ range, because }) => (isOfIPv6(range) ? [because] : [])),
    overlaps: wanted === undefined ? [] : homeNetworkOverlaps(wanted, [...host.routes, ...(host.ipv6Routes ?? [])]),
  }
}

function tunnelSteps(tunnel: PeerNetwork['tunnel'], made: MadeRoutes, host: HostLinks): readonly RouteStep[] {
  const { hasTunnel, linkMtu } = host
  if (tunnel?.kind !== 'vxlan') return hasTunnel ? [{ step: 'closeTunnel' }] : []
  const { address, mac, peers } = tunnel
  const known = hasTunnel ? made.tunnelPeers : []
  const keyOf = ({ mac, node, ipv6 = '' }: TunnelPeer) => `${mac} ${node} ${ipv6}`
  const lacking = (from: readonly TunnelPeer[], all: readonly TunnelPeer[]) => {
    const there = new Set(all.map(keyOf))
    return from.filter((peer) => !there.has(keyOf(peer)))
  }
  return [
    // To open it again would take its routes away, with its address.
    ...(hasTunnel && (known.length > 0 || made.tunnelAddress === address)
      ? []
      : [{ step: 'openTunnel', address, mac, mtu: tunnelMtu(tunnelDevice, linkMtu) } as const]),
    ...lacking(known, peers).map((peer) => ({ step: 'removeTunnelPeer', peer }) as const),
    ...lacking(peers, known).map((peer) => ({ step: 'addTunnelPeer', peer }) as const),
  ]
}

/**
 * Its peers are not routes: see `planWireguard`. An interface that no route needs stays while the fleet uses WireGuard: it may be of
 * another implementation, whose program ends with it. For the same reason one without an address is not closed.
 */
function wireguardSteps(wanted: PeerNetwork | undefined, made: MadeRoutes, host: HostLinks): RouteStep[] {
  const { hasWireguard, linkMtu } = host
  const isMade = hasWireguard && made.wireguardAddress !== undefined
  if (wanted?.tunnel?.kind !== 'wireguard') return isMade ? [{ step: 'closeWireguard' }] : []
  const isNeeded = wanted.routes.some(({ device, source }) => device === wireguardDevice || source !== undefined)
  const { address } = wanted.tunnel
  const isOpen = hasWireguard && made.wireguardAddress === address
  if (isOpen || !(isNeeded || hasWireguard)) return []
  return [{ step: 'openWireguard', address, mtu: tunnelMtu(wireguardDevice, linkMtu) }]
}

/**
 * Steps for a tunnel that stays open while the MTU of its link changes, or that an earlier agent opened. While the link
 * is not known, as without its address, the tunnel keeps its own MTU.
 */
function mtuSteps(
  tunnel: PeerNetwork['tunnel'],
  { linkMtu, tunnelMtus = {} }: HostLinks,
  steps: readonly RouteStep[],
): readonly RouteStep[] {
  if (tunnel === undefined || linkMtu === undefined) return []
  const device = tunnel.kind === 'vxlan' ? tunnelDevice : wireguardDevice
  const opens = steps.some(({ step }) => step === 'openTunnel' || step === 'openWireguard')
  const [mtu, present] = [tunnelMtu(device, linkMtu), tunnelMtus[device]]
  return opens || present === undefined || present === mtu ? [] : [{ step: 'setTunnelMtu', device, mtu }]
}

/** Behind the steps that open and close the devices: those lose their addresses then. */
function tunnelIPv6Steps(
  tunnel: PeerNetwork['tunnel'],
  { tunnelIPv6 = {} }: MadeRoutes,
  { hasTunnel, hasWireguard }: HostLinks,
  steps: readonly RouteStep[],
): readonly RouteStep[] {
  const has = (name: RouteStep['step']) => steps.some(({ step }) => name === step)
  const change = (device: TunnelDevice, isThere: boolean, last: string | undefined, next: string | undefined) => {
    if (!isThere || last === next) return []
    const removal: readonly RouteStep[] =
      last === undefined ? [] : [{ step: 'removeTunnelIPv6', device, address: last }]
    return next === undefined ? removal : [...removal, { step: 'addTunnelIPv6', device, address: next } as const]
  }
  const wanted = (kind: 'vxlan' | 'wireguard') => (tunnel?.kind === kind ? tunnel.ipv6 : undefined)
  const [opensTunnel, opensWireguard] = [has('openTunnel'), has('openWireguard')]
  const isTunnelThere = opensTunnel || (hasTunnel && !has('closeTunnel'))
  const isWireguardThere = opensWireguard || (hasWireguard && !has('closeWireguard'))
  const lastOf = (device: TunnelDevice, isOpened: boolean) => (isOpened ? undefined : tunnelIPv6[device])
  return [
    ...change(tunnelDevice, isTunnelThere, lastOf(tunnelDevice, opensTunnel), wanted('vxlan')),
    ...change(wireguardDevice, isWireguardThere, lastOf(wireguardDevice, opensWireguard), wanted('wireguard')),
  ]
}

/** Whether it is about IPv6 alone: where it fails, IPv4 has its routes. */
export function isOfIPv6(step: RouteStep): boolean {
  if (step.step === 'addTunnelIPv6' || step.step === 'removeTunnelIPv6') return true
  if (step.step === 'addRoute' || step.step === 'removeRoute') return step.route.range.includes(':')
  if (step.step === 'addServiceRoute' || step.step === 'removeServiceRoute') return true
  return (step.step === 'addGuard' || step.step === 'removeGuard') && step.range.includes(':')
}

/** It outlives the interface of a tunnel, which takes its routes with it. */
function guardSteps(wanted: PeerNetwork | undefined, { guards = [] }: MadeRoutes, host: HostLinks): RouteStep[] {
  const ranges = wanted?.isGuarded ? [wanted.clusterCIDR, ...(wanted.ipv6 ? [wanted.ipv6.clusterCIDR] : [])] : []
  const present = routesByRange(host)
  const isGuard = (text: string) => present.get(text)?.some((one) => one.interface === noInterface) === true
  return [
    ...guards
      .filter((one) => !ranges.includes(one) && isGuard(one))
      .map((one) => ({ step: 'removeGuard', range: one }) as const),
    ...ranges.filter((range) => !isGuard(range)).map((range) => ({ step: 'addGuard', range }) as const),
  ]
}

/** Interface of a route that refuses packets (/proc/net/route); IPv6 routes are read in the same way. */
const noInterface = '*'

/** By the text of their range: a fleet has a route for each node. */
type RoutesByRange = ReadonlyMap<string, readonly HostIPv6Route[]>

function routesByRange({ routes, ipv6Routes = [] }: HostLinks): RoutesByRange {
  const found = new Map<string, HostIPv6Route[]>()
  const ofIPv4 = routes.map((route) => ({ ...route, range: formatCidr(route.range) }))
  for (const route of [...ofIPv4, ...ipv6Routes]) {
    const others = found.get(route.range)
    if (others === undefined) found.set(route.range, [route])
    else others.push(route)
  }
  return found
}

/** Also if it was made by hand. */
function isThere(present: RoutesByRange, { range, gateway, device }: PodRoute): boolean {
  return (present.get(range) ?? []).some(
    (one) =>
      one.gateway === gateway &&
      (device === undefined ? !tunnelDevices.includes(one.interface) : one.interface === device),
  )
}

const tunnelDevices: readonly string[] = [tunnelDevice, wireguardDevice]

/**
 * The kernel holds one route for a range and metric; ours have metric 0, and those of IPv6 1024 (Linux, IP6_RT_PRIO_USER). `own`: range and gateway of those that this
 * node made.
 */
function foreignRoute(
  present: RoutesByRange,
  { range }: PodRoute,
  own: ReadonlySet<string>,
): HostIPv6Route | undefined {
  const metric = range.includes(':') ? 1024 : 0
  return present.get(range)?.find((one) => one.metric === metric && !own.has(`${range} ${one.gateway}`))
}

function routeKey({ range, gateway, device }: PodRoute): string {
  return `${range} ${gateway} ${device ?? ''}`
}

function isSameRoute(one: PodRoute, other: PodRoute): boolean {
  return routeKey(one) === routeKey(other)
}

/** What is made after the steps; `failed`: those of them that failed. */
export function afterSteps(
  made: MadeRoutes,
  steps: readonly RouteStep[],
  failed: readonly { readonly step: RouteStep }[],
): MadeRoutes {
  const left = steps.reduce((before, step) => afterStep(before, step, !failed.some((one) => one.step === step)), made)
  const { routes, tunnelPeers, wireguardAddress, tunnelIPv6 = {}, guards = [], serviceRoutes = [] } = left
  return {
    routes,
    tunnelPeers,
    ...(wireguardAddress && { wireguardAddress }),
    ...(Object.keys(tunnelIPv6).length > 0 && { tunnelIPv6 }),
    ...(guards.length > 0 && { guards }),
    ...(serviceRoutes.length > 0 && { serviceRoutes }),
  }
}

/** A device that may be closed counts as closed. */
function afterStep(before: MadeRoutes, step: RouteStep, isDone: boolean): MadeRoutes {
  const device = deviceOf(step)
  const made = device === undefined ? before : { ...before, tunnelIPv6: without(before.tunnelIPv6 ?? {}, device) }
  if (step.step === 'closeTunnel') return { ...made, tunnelPeers: [] }
  if (step.step === 'closeWireguard') {
    const { wireguardAddress: _, ...others } = made
    return others
  }
  return isDone ? afterDone(made, step) : made
}

function afterDone(made: MadeRoutes, step: RouteStep): MadeRoutes {
  const { routes, tunnelPeers, tunnelIPv6, guards = [], serviceRoutes = [] } = made
  switch (step.step) {
    case 'addRoute':
      return { ...made, routes: [...routes, step.route] }
    case 'removeRoute':
      return { ...made, routes: routes.filter((route) => !isSameRoute(route, step.route)) }
    case 'addTunnelPeer':
      return { ...made, tunnelPeers: [...tunnelPeers, step.peer] }
    case 'removeTunnelPeer':
      return { ...made, tunnelPeers: tunnelPeers.filter(({ mac }) => mac !== step.peer.mac) }
    case 'openTunnel':
      return { ...made, tunnelPeers: [] }
    case 'openWireguard':
      return { ...made, wireguardAddress: step.address }
    case 'addTunnelIPv6':
      return { ...made, tunnelIPv6: { ...tunnelIPv6, [step.device]: step.address } }
    case 'addGuard':
      return { ...made, guards: [...guards, step.range] }
    case 'removeGuard':
      return { ...made, guards: guards.filter((range) => range !== step.range) }
    case 'addServiceRoute':
      return { ...made, serviceRoutes: [...serviceRoutes, step.route] }
    case 'removeServiceRoute':
      return { ...made, serviceRoutes: serviceRoutes.filter((one) => one !== step.route) }
    default:
      return made
  }
}

/** The device that has no IPv6 address behind the step. */
function deviceOf({ step, ...more }: RouteStep): TunnelDevice | undefined {
  if (step === 'openTunnel' || step === 'closeTunnel') return tunnelDevice
  if (step === 'openWireguard' || step === 'closeWireguard') return wireguardDevice
  return step === 'removeTunnelIPv6' && 'device' in more ? more.device : undefined
}

function without(all: TunnelIPv6, device: TunnelDevice): TunnelIPv6 {
  const { [device]: _, ...others } = all
  return others
}
