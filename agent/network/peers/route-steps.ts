/** From the routes that the kernel has to those that are wanted: steps that leave the routes of others alone. */
import { type Cidr, formatCidr } from '../../../api/text/cidr.ts'
import { homeNetworkOverlaps } from './home-networks.ts'
import type { PeerNetwork } from './peer-network.ts'
import { type PodRoute, type TunnelPeer, tunnelDevice, wireguardDevice } from './tunnels.ts'

export type RouteStep =
  | { readonly step: 'addRoute'; readonly route: PodRoute }
  | { readonly step: 'removeRoute'; readonly route: PodRoute }
  | { readonly step: 'openTunnel'; readonly address: string; readonly mac: string }
  | { readonly step: 'addTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'removeTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'closeTunnel' }
  | { readonly step: 'openWireguard'; readonly address: string }
  | { readonly step: 'closeWireguard' }
  | { readonly step: 'addGuard'; readonly range: string }
  | { readonly step: 'removeGuard'; readonly range: string }

/** A route in the kernel's main table. */
export type HostRoute = {
  readonly interface: string
  readonly range: Cidr
  /** Undefined: the range is on the link itself. */
  readonly gateway?: string
  readonly metric?: number
}

export type HostLinks = {
  readonly routes: readonly HostRoute[]
  readonly hasTunnel: boolean
  readonly hasWireguard: boolean
}

/** What this node has made of it, as far as that is certain. */
export type MadeRoutes = {
  /** With those of an earlier agent. */
  readonly routes: readonly PodRoute[]
  readonly tunnelPeers: readonly TunnelPeer[]
  /** Its end of VXLAN, with that of an earlier agent. */
  readonly tunnelAddress?: string
  /** The same of WireGuard; undefined: the interface may be another one's. */
  readonly wireguardAddress?: string
  /** Ranges to which packets without another route are refused, with those of an earlier agent. */
  readonly guards?: readonly string[]
}

export type RoutePlan = {
  readonly steps: readonly RouteStep[]
  /** Routes of others for the addresses of pods, as sentences: they stay, and pods there are not reached. */
  readonly inTheWay: readonly string[]
  /** Networks of the machine that have addresses of the fleet, as sentences. */
  readonly overlaps: readonly string[]
}

/** `wanted` undefined: the fleet has no network. */
export function planRoutes(wanted: PeerNetwork | undefined, made: MadeRoutes, host: HostLinks): RoutePlan {
  const routes = wanted?.routes ?? []
  const steps: RouteStep[] = []
  const present = routesByRange(host)
  const kept = new Set(routes.map(routeKey))
  for (const route of made.routes) {
    if (!kept.has(routeKey(route)) && isThere(present, route)) steps.push({ step: 'removeRoute', route })
  }
  steps.push(...guardSteps(wanted, made, host))
  steps.push(...tunnelSteps(wanted?.tunnel, made, host), ...wireguardSteps(wanted, made, host))
  const inTheWay: string[] = []
  const own = new Set(made.routes.map(({ range, gateway }) => `${range} ${gateway}`))
  for (const route of routes) {
    if (isThere(present, route)) continue
    const other = foreignRoute(present, route, own)
    if (other === undefined) steps.push({ step: 'addRoute', route })
    else inTheWay.push(`the route to ${route.range} on ${other.interface} is not Bramble's: remove it`)
  }
  return { steps, inTheWay, overlaps: wanted === undefined ? [] : homeNetworkOverlaps(wanted, host.routes) }
}

function tunnelSteps(tunnel: PeerNetwork['tunnel'], made: MadeRoutes, { hasTunnel }: HostLinks): readonly RouteStep[] {
  if (tunnel?.kind !== 'vxlan') return hasTunnel ? [{ step: 'closeTunnel' }] : []
  const { address, mac, peers } = tunnel
  const known = hasTunnel ? made.tunnelPeers : []
  const keyOf = ({ mac, node }: TunnelPeer) => `${mac} ${node}`
  const lacking = (from: readonly TunnelPeer[], all: readonly TunnelPeer[]) => {
    const there = new Set(all.map(keyOf))
    return from.filter((peer) => !there.has(keyOf(peer)))
  }
  return [
    // To open it again would take its routes away, with its address.
    ...(hasTunnel && (known.length > 0 || made.tunnelAddress === address)
      ? []
      : [{ step: 'openTunnel', address, mac } as const]),
    ...lacking(known, peers).map((peer) => ({ step: 'removeTunnelPeer', peer }) as const),
    ...lacking(peers, known).map((peer) => ({ step: 'addTunnelPeer', peer }) as const),
  ]
}

/**
 * Its peers are not routes: see `planWireguard`. An interface that no route needs stays while the fleet uses WireGuard: it may be of
 * another implementation, whose program ends with it. For the same reason one without an address is not closed.
 */
function wireguardSteps(wanted: PeerNetwork | undefined, made: MadeRoutes, { hasWireguard }: HostLinks): RouteStep[] {
  const isMade = hasWireguard && made.wireguardAddress !== undefined
  if (wanted?.tunnel?.kind !== 'wireguard') return isMade ? [{ step: 'closeWireguard' }] : []
  const isNeeded = wanted.routes.some(({ device, source }) => device === wireguardDevice || source !== undefined)
  const { address } = wanted.tunnel
  const isOpen = hasWireguard && made.wireguardAddress === address
  return isOpen || !(isNeeded || hasWireguard) ? [] : [{ step: 'openWireguard', address }]
}

/** It outlives the interface of a tunnel, which takes its routes with it. */
function guardSteps(wanted: PeerNetwork | undefined, { guards = [] }: MadeRoutes, { routes }: HostLinks): RouteStep[] {
  const range = wanted?.isGuarded ? wanted.clusterCIDR : undefined
  const isGuard = (text: string) =>
    routes.some((one) => one.interface === noInterface && formatCidr(one.range) === text)
  return [
    ...guards
      .filter((one) => one !== range && isGuard(one))
      .map((one) => ({ step: 'removeGuard', range: one }) as const),
    ...(range === undefined || isGuard(range) ? [] : [{ step: 'addGuard', range } as const]),
  ]
}

/** Of a route that refuses packets (/proc/net/route). */
const noInterface = '*'

/** By the text of their range: a fleet has a route for each node. */
type RoutesByRange = ReadonlyMap<string, readonly HostRoute[]>

function routesByRange({ routes }: HostLinks): RoutesByRange {
  const found = new Map<string, HostRoute[]>()
  for (const route of routes) {
    const range = formatCidr(route.range)
    const others = found.get(range)
    if (others === undefined) found.set(range, [route])
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

/** The kernel holds one route for a range and metric; ours have metric 0. `own`: range and gateway of those that this node made. */
function foreignRoute(present: RoutesByRange, { range }: PodRoute, own: ReadonlySet<string>): HostRoute | undefined {
  return present.get(range)?.find((one) => one.metric === 0 && !own.has(`${range} ${one.gateway}`))
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
  let { routes, tunnelPeers, wireguardAddress, guards = [] } = made
  for (const step of steps) {
    const isDone = !failed.some((failure) => failure.step === step)
    if (step.step === 'closeTunnel') tunnelPeers = []
    else if (step.step === 'closeWireguard') wireguardAddress = undefined
    else if (!isDone) continue
    else if (step.step === 'addRoute') routes = [...routes, step.route]
    else if (step.step === 'removeRoute') routes = routes.filter((route) => !isSameRoute(route, step.route))
    else if (step.step === 'addTunnelPeer') tunnelPeers = [...tunnelPeers, step.peer]
    else if (step.step === 'removeTunnelPeer') tunnelPeers = tunnelPeers.filter(({ mac }) => mac !== step.peer.mac)
    else if (step.step === 'openTunnel') tunnelPeers = []
    else if (step.step === 'openWireguard') wireguardAddress = step.address
    else if (step.step === 'addGuard') guards = [...guards, step.range]
    else guards = guards.filter((range) => range !== step.range)
  }
  return { routes, tunnelPeers, ...(wireguardAddress && { wireguardAddress }), ...(guards.length > 0 && { guards }) }
}
