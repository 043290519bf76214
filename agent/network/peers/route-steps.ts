/** From the routes that the kernel has to those that are wanted: steps that leave the routes of others alone. */
import { type Cidr, formatCidr } from '../../../api/text/cidr.ts'
import { type PeerNetwork, type PodRoute, type TunnelPeer, tunnelDevice } from './peer-network.ts'

export type RouteStep =
  | { readonly step: 'addRoute'; readonly route: PodRoute }
  | { readonly step: 'removeRoute'; readonly route: PodRoute }
  | { readonly step: 'openTunnel'; readonly address: string; readonly mac: string }
  | { readonly step: 'addTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'removeTunnelPeer'; readonly peer: TunnelPeer }
  | { readonly step: 'closeTunnel' }

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
}

/** What this node has made of it, as far as that is certain. */
export type MadeRoutes = {
  /** With those of an earlier agent. */
  readonly routes: readonly PodRoute[]
  readonly tunnelPeers: readonly TunnelPeer[]
}

export type RoutePlan = {
  readonly steps: readonly RouteStep[]
  /** Routes of others for the addresses of pods, as sentences: they stay, and pods there are not reached. */
  readonly inTheWay: readonly string[]
}

/** `wanted` undefined: the fleet has no network. */
export function planRoutes(wanted: PeerNetwork | undefined, made: MadeRoutes, host: HostLinks): RoutePlan {
  const routes = wanted?.routes ?? []
  const steps: RouteStep[] = []
  for (const route of made.routes) {
    if (!routes.some((other) => isSameRoute(route, other)) && isThere(host, route))
      steps.push({ step: 'removeRoute', route })
  }
  steps.push(...tunnelSteps(wanted?.tunnel, made, host))
  const inTheWay: string[] = []
  for (const route of routes) {
    if (isThere(host, route)) continue
    const other = foreignRoute(host, route, made)
    if (other === undefined) steps.push({ step: 'addRoute', route })
    else inTheWay.push(`the route to ${route.range} on ${other.interface} is not Bramble's: remove it`)
  }
  return { steps, inTheWay }
}

function tunnelSteps(tunnel: PeerNetwork['tunnel'], made: MadeRoutes, { hasTunnel }: HostLinks): readonly RouteStep[] {
  if (tunnel === undefined) return hasTunnel ? [{ step: 'closeTunnel' }] : []
  const { address, mac, peers } = tunnel
  const known = hasTunnel ? made.tunnelPeers : []
  const lacking = (from: readonly TunnelPeer[], all: readonly TunnelPeer[]) =>
    from.filter((peer) => !all.some((other) => other.mac === peer.mac && other.node === peer.node))
  return [
    ...(hasTunnel && known.length > 0 ? [] : [{ step: 'openTunnel', address, mac } as const]),
    ...lacking(known, peers).map((peer) => ({ step: 'removeTunnelPeer', peer }) as const),
    ...lacking(peers, known).map((peer) => ({ step: 'addTunnelPeer', peer }) as const),
  ]
}

/** Also if it was made by hand. */
function isThere({ routes }: HostLinks, { range, gateway, device }: PodRoute): boolean {
  return routes.some(
    (one) =>
      one.gateway === gateway &&
      formatCidr(one.range) === range &&
      (device === undefined ? one.interface !== tunnelDevice : one.interface === device),
  )
}

/** The kernel holds one route for a range and metric; ours have metric 0. */
function foreignRoute({ routes }: HostLinks, { range }: PodRoute, made: MadeRoutes): HostRoute | undefined {
  return routes.find(
    (one) =>
      one.metric === 0 &&
      formatCidr(one.range) === range &&
      !made.routes.some((own) => own.range === range && own.gateway === one.gateway),
  )
}

function isSameRoute(one: PodRoute, other: PodRoute): boolean {
  return one.range === other.range && one.gateway === other.gateway && one.device === other.device
}

/** What is made after the steps; `failed`: those of them that failed. */
export function afterSteps(
  made: MadeRoutes,
  steps: readonly RouteStep[],
  failed: readonly { readonly step: RouteStep }[],
): MadeRoutes {
  let { routes, tunnelPeers } = made
  for (const step of steps) {
    const isDone = !failed.some((failure) => failure.step === step)
    if (step.step === 'closeTunnel') tunnelPeers = []
    else if (!isDone) continue
    else if (step.step === 'addRoute') routes = [...routes, step.route]
    else if (step.step === 'removeRoute') routes = routes.filter((route) => !isSameRoute(route, step.route))
    else if (step.step === 'addTunnelPeer') tunnelPeers = [...tunnelPeers, step.peer]
    else if (step.step === 'removeTunnelPeer') tunnelPeers = tunnelPeers.filter(({ mac }) => mac !== step.peer.mac)
    else if (step.step === 'openTunnel') tunnelPeers = []
  }
  return { routes, tunnelPeers }
}
