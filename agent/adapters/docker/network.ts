/** The network of a node's pods: a Docker bridge with the addresses that the controller assigned to the node. */
import { isDeepStrictEqual } from 'node:util'
import { cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { storyOf } from '../../../daemon/log.ts'
import { isUnreachable, RuntimeError } from '../../runtime/runtime.ts'
import type { Route } from '../kernel/host-routes.ts'
import type { Engine } from './engine.ts'
import { networkCalls } from './network-calls.ts'
import {
  type AttachedContainer,
  bridgeOf,
  type DockerNetwork,
  modeOfNetwork,
  type NetworkMode,
  networkName,
  networksInTheWay,
  networkUsed,
  outdatedNetworks,
} from './networks.ts'

/** A network that pods can be attached to. */
export type AttachableNetwork = {
  readonly name: string
  /** Its interface on this machine. */
  readonly bridge: string
  readonly mode: NetworkMode
  /** Range of its IPv6 addresses, in the mode `dual`. */
  readonly ipv6CIDR?: string
}

export interface PodNetwork {
  /** Resolves when the network exists. Bramble's networks without containers are removed if they conflict with it. */
  ensure(podCIDR: string): Promise<AttachableNetwork>
  /**
   * If pods may move: removes this node's networks of the other mode, or all of a node that is off the network of its fleet, and those
   * that the engine keeps other nodes from, with the sandboxes on them; sandboxes on the engine's own network; and sandboxes whose host
   * ports are open on IPv6 addresses, as earlier agents left them. Their pods are started again.
   * Resolves with the bridges of the networks with routes that are there then.
   */
  adjust(): Promise<readonly string[]>
  /**
   * Whether pods still belong on this network, undefined: on the engine's own. To be asked once a sandbox has started: an `adjust` of
   * meanwhile did not find it.
   */
  isWanted(on: AttachableNetwork | undefined): boolean
  /** The network may have been removed: the next `ensure` checks it again. */
  invalidate(): void
  /** Why there is no network for the range of the last `ensure`, after another try. Undefined when it exists. */
  problem(): Promise<string | undefined>
}

/** The second try handles a network that another agent created between the check and the request. */
const mostTries = 2

export type PodNetworkNeeds = {
  readonly engine: Engine
  readonly nodeName: string
  /** The routes of the machine. */
  readonly routes: () => Promise<readonly Route[]>
  readonly wanted: () => WantedNetwork
  /** Before a network with IPv6 is made: Docker lets the kernel forward IPv6 then. */
  readonly prepareIPv6?: (() => Promise<void>) | undefined
}

export type WantedNetwork = {
  /** Mode of a network that is created. */
  readonly mode: NetworkMode
  /** IPv6 range in the mode `dual`. */
  readonly ipv6CIDR?: string
  /** If false, an existing network of the other mode is used as it is. */
  readonly podsMayMove: boolean
  /** The node has addresses for its pods: those that started on the engine's own network before leave it. */
  readonly hasRange?: boolean
  /** The node has no part in the network of its fleet: pods are on the engine's own network, and on none of ours. */
  readonly isOff?: boolean
}

type Sure = { readonly podCIDR: string; readonly wanted: WantedNetwork; readonly on: AttachableNetwork }

export function podNetwork(needs: PodNetworkNeeds): PodNetwork {
  const { engine, nodeName, wanted } = needs
  let sure: Sure | undefined
  /** Pods that start at once share one attempt: Docker rejects one of two concurrent requests (moby, libnetwork ipam). */
  let pending: { readonly podCIDR: string; readonly done: Promise<AttachableNetwork> } | undefined
  let failed: { readonly podCIDR: string; readonly problem: string } | undefined

  const calls = networkCalls(engine, nodeName)
  const { list, remove, removeSandboxes, retire } = calls
  const { make, outdatedBy, protectsNow } = networkMaker(needs, calls)

  const attempt = async (podCIDR: string) => {
    try {
      const attempted = wanted()
      const { networks, on } = await make(podCIDR)
      // Networks with pods are removed when an agent starts.
      for (const network of outdatedNetworks(nodeName, on.name, networks)) await remove(network)
      sure = { podCIDR, wanted: attempted, on }
      failed = undefined
      return on
    } catch (error) {
      if (!isUnreachable(error)) failed = { podCIDR, problem: storyOf(error) }
      throw error
    }
  }

  const ended = () => {
    pending = undefined
  }

  const ensure = async (podCIDR: string): Promise<AttachableNetwork> => {
    while (pending !== undefined && pending.podCIDR !== podCIDR) await pending.done.catch(() => undefined)
    if (sure?.podCIDR === podCIDR && isDeepStrictEqual(sure.wanted, wanted())) return sure.on
    pending ??= { podCIDR, done: attempt(podCIDR).finally(ended) }
    return await pending.done
  }

  return {
    ensure,
    async adjust() {
      const tried = 'Cannot list the networks of pods'
      const all = await list(tried)
      const networks = all.filter(({ node }) => node === nodeName)
      const isOutdated = outdatedBy(await protectsNow(tried))
      for (const network of networks.filter(isOutdated)) {
        sure = undefined
        await retire(network)
      }
      const routed = networks.filter((network) => !isOutdated(network) && modeOfNetwork(network) !== 'node')
      if (wanted().podsMayMove) for (const network of routed) await removeSandboxes(network, hasIPv6Port)
      for (const network of all.filter((one) => mustBeLeft(one, wanted()))) await removeSandboxes(network)
      return routed.map(({ id }) => bridgeOf(id))
    },
    isWanted: (on) => !mustMove(on, wanted()),
    invalidate() {
      sure = undefined
    },
    async problem() {
      if (failed !== undefined) await ensure(failed.podCIDR).catch(() => undefined)
      return failed?.problem
    },
  }
}

/** Finds or creates the network for a range. */
function networkMaker(
  { nodeName, routes, wanted, prepareIPv6 }: PodNetworkNeeds,
  calls: ReturnType<typeof networkCalls>,
) {
  const { list, retire, isProtecting, create } = calls

  /** Asked each time: the engine may have been replaced since the last call. Irrelevant in the mode `node`. */
  const protectsNow = async (tried: string) => wanted().mode !== 'node' && (await isProtecting(tried))
  const outdatedBy = (protects: boolean) => (network: DockerNetwork) =>
    network.node === nodeName && mustGo(network, wanted(), protects)

  const chosenMode = (podCIDR: string, networks: readonly DockerNetwork[]): NetworkMode => {
    const { mode, podsMayMove } = wanted()
    const isThere = (one: NetworkMode) => networks.some(({ name }) => name === networkName(nodeName, podCIDR, one))
    const other = modes.find((one) => one !== mode && isThere(one))
    return !podsMayMove && other !== undefined ? other : mode
  }

  const find = async (podCIDR: string, tried: string) => {
    const networks = await list(tried)
    const protects = await protectsNow(tried)
    const isOutdated = outdatedBy(protects)
    const mode = chosenMode(podCIDR, networks)
    const name = networkName(nodeName, podCIDR, mode)
    const present = networks.find((network) => network.name === name && !isOutdated(network))
    return { networks, protects, isOutdated, mode, name, present }
  }

  /** Removes what is outdated. Rejects if something else has addresses of the range. */
  const makeRoom = async (
    podCIDR: string,
    { networks, isOutdated }: Awaited<ReturnType<typeof find>>,
    tried: string,
  ): Promise<void> => {
    for (const network of networks.filter(isOutdated)) await retire(network)
    const others = networks.filter((network) => !isOutdated(network))
    const reason = (await networkInTheWay(calls, podCIDR, others)) ?? routeInTheWay(podCIDR, await routes())
    if (reason !== undefined) throw new RuntimeError('Failed', tried, { cause: new Error(reason) })
  }

  /** `again`: another network was created meanwhile. */
  const createOnce = async (
    podCIDR: string,
    { protects, mode, name }: Awaited<ReturnType<typeof find>>,
    tried: string,
  ): Promise<{ readonly on: AttachableNetwork } | { readonly again: unknown }> => {
    try {
      const { ipv6CIDR } = wanted()
      if (mode === 'dual') await prepareIPv6?.()
      const id = await create(tried, { podCIDR, mode, ipv6CIDR, protects })
      if (id !== undefined) return { on: attachable(name, mode, id, ipv6CIDR) }
      return { again: new RuntimeError('Failed', `${tried}: Docker has ${name} and does not list it`) }
    } catch (error) {
      if (isOverlap(error)) return { again: error }
      throw error
    }
  }

  const make = async (podCIDR: string) => {
    const tried = `Cannot create a network for addresses ${podCIDR}`
    for (let tries = 1; ; tries++) {
      const found = await find(podCIDR, tried)
      const { networks, mode, name, present } = found
      if (present !== undefined) return { networks, on: attachable(name, mode, present.id, present.ipv6Ranges[0]) }
      await makeRoom(podCIDR, found, tried)
      const created = await createOnce(podCIDR, found, tried)
      if ('on' in created) return { networks, on: created.on }
      if (tries >= mostTries) throw created.again
    }
  }

  return { make, outdatedBy, protectsNow }
}

/** Removes conflicting networks if allowed; returns the reason if one must stay. */
async function networkInTheWay(
  { usersOf, remove }: Pick<ReturnType<typeof networkCalls>, 'usersOf' | 'remove'>,
  podCIDR: string,
  networks: readonly DockerNetwork[],
): Promise<string | undefined> {
  for (const network of networksInTheWay(podCIDR, networks)) {
    const { length: users } = network.node === undefined ? [] : await usersOf(network)
    if (network.node === undefined || users > 0) return networkUsed(podCIDR, network, users)
    await remove(network)
  }
  return undefined
}

/** The engine's own network, for containers that name none: its pods belong on that of the fleet. */
function mustBeLeft({ name }: DockerNetwork, { mode, podsMayMove, hasRange = false }: WantedNetwork): boolean {
  return name === 'bridge' && mode !== 'node' && podsMayMove && hasRange
}

const modes: readonly NetworkMode[] = ['node', 'routed', 'dual']

function attachable(name: string, mode: NetworkMode, id: string, ipv6CIDR: string | undefined): AttachableNetwork {
  return { name, mode, bridge: bridgeOf(id), ...(mode === 'dual' && ipv6CIDR !== undefined && { ipv6CIDR }) }
}

/**
 * In the mode `routed` no rules see IPv6, which an earlier agent left to the settings of the daemon. `protects`: what other nodes send to
 * pods is dropped on a network that an earlier version of Docker made.
 */
function mustGo(
  network: DockerNetwork,
  { mode, ipv6CIDR = '', podsMayMove, isOff = false }: WantedNetwork,
  protects: boolean,
): boolean {
  const isProtected = mode !== 'node' && protects && !network.isUnprotected
  const isOther = modeOfNetwork(network) !== mode || isProtected || (mode === 'routed' && network.hasIPv6)
  return podsMayMove && (isOff || isOther || (mode === 'dual' && !network.ipv6Ranges.includes(ipv6CIDR)))
}

/** The same of a network that a sandbox was attached to. */
function mustMove(on: AttachableNetwork | undefined, wanted: WantedNetwork): boolean {
  const { mode, ipv6CIDR, podsMayMove, hasRange = false, isOff = false } = wanted
  if (on === undefined) return podsMayMove && mode !== 'node' && hasRange
  return podsMayMove && (isOff || on.mode !== mode || (mode === 'dual' && on.ipv6CIDR !== ipv6CIDR))
}

/** Docker's proxy would give a client the address of the node, which policies let pass. */
function hasIPv6Port({ Ports = [] }: AttachedContainer): boolean {
  return Ports.some(({ IP }) => IP?.includes(':'))
}

/** Docker's error is "Pool overlaps with other one on this address space", with status 403 or, from version 25 on, 400. */
function isOverlap(error: unknown): boolean {
  return /pool overlaps/i.test(storyOf(error))
}

/** The bridges of Docker's networks: Docker itself avoids conflicts with them, or they remain from a deleted network. */
const ofDocker = /^br-[0-9a-f]{12}$/

/**
 * Docker would route the addresses to the bridge, and the machine could no longer reach their owners. A wider network behind a
 * gateway stays reachable, except for the range of the pods. `*` is not an interface: packets there are refused.
 */
export function routeInTheWay(podCIDR: string, routes: readonly Route[]): string | undefined {
  const pods = parseCidr(podCIDR)
  if (pods === undefined) return undefined
  const route = routes.find(
    ({ interface: name, range, direct }) =>
      !ofDocker.test(name) && name !== '*' && cidrsOverlap(range, pods) && (direct || range.bits >= pods.bits),
  )
  if (route === undefined) return undefined
  const range = formatCidr(route.range)
  return `addresses of podCIDR ${podCIDR} belong to the network ${range} on ${route.interface} of this machine (give the fleet a clusterCIDR that none of its networks has, and the node another podCIDR; or renumber ${route.interface})`
}
