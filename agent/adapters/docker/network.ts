/** The network of a node's pods: a Docker bridge with the addresses that the controller assigned to the node. */
import type Dockerode from 'dockerode'
import { cidrsOverlap, formatCidr, parseCidr } from '../../../api/text/cidr.ts'
import { storyOf } from '../../../daemon/log.ts'
import { isUnreachable, RuntimeError } from '../../pods/runtime/runtime.ts'
import type { Route } from '../kernel/host-routes.ts'
import { askMs, call } from './call.ts'
import { nodeLabel } from './labels.ts'
import { type DockerNetwork, isOn, networkOf, networksInTheWay, networkUsed, outdatedNetworks } from './networks.ts'

export interface PodNetwork {
  /** Resolves when the network exists. Bramble's networks without containers are removed if they conflict with it. */
  ensure(podCIDR: string): Promise<void>
  /** The network may have been removed: the next `ensure` checks it again. */
  invalidate(): void
  /** Why there is no network for the range of the last `ensure`, after another try. Undefined when it exists. */
  problem(): Promise<string | undefined>
}

/** The second try handles a network that another agent created between the check and the request. */
const mostTries = 2

/** `routes`: the routes of the machine. */
export function podNetwork(docker: Dockerode, nodeName: string, routes: () => Promise<readonly Route[]>): PodNetwork {
  let sure: string | undefined
  /** Pods that start at once share one attempt: Docker rejects one of two concurrent requests (moby, libnetwork ipam). */
  let pending: { readonly podCIDR: string; readonly done: Promise<void> } | undefined
  let failed: { readonly podCIDR: string; readonly problem: string } | undefined

  const list = async (tried: string): Promise<readonly DockerNetwork[]> =>
    (await call(tried, askMs, (abortSignal) => docker.listNetworks({ abortSignal }))).map(networkOf)

  /** Including stopped containers, which could not be started without it. */
  const usersOf = async (network: DockerNetwork): Promise<number> => {
    const tried = `Cannot list the containers of network ${network.name}`
    const all = await call(tried, askMs, (abortSignal) => docker.listContainers({ all: true, abortSignal }))
    return all.filter((container) => isOn(network, container)).length
  }

  /** 403: a container is still attached; 404: the network does not exist (Docker Engine API, NetworkDelete). */
  const remove = ({ id, name }: DockerNetwork) =>
    call(`Cannot remove network ${name}`, askMs, () => docker.getNetwork(id).remove(), 403, 404)

  /** Removes conflicting networks if allowed; returns the reason if one must stay. */
  const obstacle = async (podCIDR: string, networks: readonly DockerNetwork[]): Promise<string | undefined> => {
    for (const network of networksInTheWay(podCIDR, networks)) {
      const users = network.node === undefined ? 0 : await usersOf(network)
      if (network.node === undefined || users > 0) return networkUsed(podCIDR, network, users)
      await remove(network)
    }
    return routeInTheWay(podCIDR, await routes())
  }

  const make = async (podCIDR: string) => {
    const name = networkName(nodeName, podCIDR)
    const tried = `Cannot make network ${name} for addresses ${podCIDR}`
    const request = {
      Name: name,
      CheckDuplicate: true,
      Driver: 'bridge',
      IPAM: { Config: [{ Subnet: podCIDR }] },
      Labels: { [nodeLabel]: nodeName },
    }
    for (let tries = 1; ; tries++) {
      const networks = await list(tried)
      if (networks.some((network) => network.name === name)) return networks
      const reason = await obstacle(podCIDR, networks)
      if (reason !== undefined) throw new RuntimeError('Failed', tried, { cause: new Error(reason) })
      try {
        await call(tried, askMs, (abortSignal) => docker.createNetwork({ ...request, abortSignal }), 409)
        return networks
      } catch (error) {
        if (tries >= mostTries || !isOverlap(error)) throw error
      }
    }
  }

  const attempt = async (podCIDR: string) => {
    try {
      const networks = await make(podCIDR)
      // Networks with pods are removed when an agent starts.
      for (const network of outdatedNetworks(nodeName, networkName(nodeName, podCIDR), networks)) await remove(network)
      sure = podCIDR
      failed = undefined
    } catch (error) {
      if (!isUnreachable(error)) failed = { podCIDR, problem: storyOf(error) }
      throw error
    }
  }

  const ended = () => {
    pending = undefined
  }

  const ensure = async (podCIDR: string): Promise<void> => {
    while (pending !== undefined && pending.podCIDR !== podCIDR) await pending.done.catch(() => undefined)
    if (sure === podCIDR) return
    pending ??= { podCIDR, done: attempt(podCIDR).finally(ended) }
    await pending.done
  }

  return {
    ensure,
    invalidate() {
      sure = undefined
    },
    async problem() {
      if (failed !== undefined) await ensure(failed.podCIDR).catch(() => undefined)
      return failed?.problem
    },
  }
}

/** Docker's error is "Pool overlaps with other one on this address space", with status 403 or, from version 25 on, 400. */
function isOverlap(error: unknown): boolean {
  return /pool overlaps/i.test(storyOf(error))
}

/** The bridges of Docker's networks: Docker itself avoids conflicts with them, or they remain from a deleted network. */
const ofDocker = /^br-[0-9a-f]{12}$/

/**
 * Docker would route the addresses to the bridge, and the machine could no longer reach their owners. A wider network behind a
 * gateway stays reachable, except for the range of the pods.
 */
export function routeInTheWay(podCIDR: string, routes: readonly Route[]): string | undefined {
  const pods = parseCidr(podCIDR)
  if (pods === undefined) return undefined
  const route = routes.find(
    ({ interface: name, range, direct }) =>
      !ofDocker.test(name) && cidrsOverlap(range, pods) && (direct || range.bits >= pods.bits),
  )
  if (route === undefined) return undefined
  const range = formatCidr(route.range)
  return `addresses of podCIDR ${podCIDR} belong to the network ${range} on ${route.interface} of this machine (give the fleet a clusterCIDR that none of its networks has, and the node another podCIDR; or renumber ${route.interface})`
}

export function networkName(nodeName: string, podCIDR: string): string {
  return `bramble_${nodeName}_${podCIDR.replace(/[^0-9a-f.]/g, '-')}`
}
