/** Docker's calls for networks of pods. */
import { actMs, askMs, call } from './call.ts'
import type { Engine } from './engine.ts'
import { nodeLabel } from './labels.ts'
import {
  type AttachedContainer,
  addressPools,
  attachedShape,
  type DockerNetwork,
  isOn,
  type NetworkMode,
  networkName,
  networkOf,
  networkSettings,
  networksShape,
  protectsContainers,
} from './networks.ts'

export type NewNetwork = {
  readonly podCIDR: string
  readonly mode: NetworkMode
  /** IPv6 range in the mode `dual`. */
  readonly ipv6CIDR: string | undefined
  /** See `protectsContainers`. */
  readonly protects: boolean
}

/** Each call rejects with a `RuntimeError`. `tried`: the operation and its object. */
export function networkCalls({ docker, answers }: Engine, nodeName: string) {
  const list = async (tried: string): Promise<readonly DockerNetwork[]> =>
    (await call(tried, askMs, (signal) => answers.read('/networks', networksShape, signal))).map(networkOf)

  /** Including stopped containers, which could not be started without it. */
  const usersOf = async (network: DockerNetwork): Promise<readonly AttachedContainer[]> => {
    const tried = `Cannot list the containers of network ${network.name}`
    const all = await call(tried, askMs, (signal) => answers.read('/containers/json?all=true', attachedShape, signal))
    return all.filter((container) => isOn(network, container))
  }

  /** 403: a container is still attached; 404: the network does not exist (Docker Engine API, NetworkDelete). */
  const remove = ({ id, name }: DockerNetwork) =>
    call(`Cannot remove network ${name}`, askMs, () => docker.getNetwork(id).remove(), 403, 404)

  /** Those of this node which `isMeant`: the agent starts their pods again. */
  const removeSandboxes = async (
    network: DockerNetwork,
    isMeant: (container: AttachedContainer) => boolean = () => true,
  ) => {
    for (const container of await usersOf(network)) {
      const { Id = '', Labels } = container
      if (Labels?.[nodeLabel] !== nodeName || !isMeant(container)) continue
      const tried = `Cannot remove container ${Id}, which is on network ${network.name}`
      await call(tried, actMs, () => docker.getContainer(Id).remove({ force: true, v: true }), 404, 409)
    }
  }

  /** Removes its sandboxes and the network; not what others attached to it. */
  const retire = async (network: DockerNetwork) => {
    await removeSandboxes(network)
    await remove(network)
  }

  /** See `protectsContainers`. */
  const isProtecting = async (tried: string): Promise<boolean> => {
    const shape = { fields: { ApiVersion: 'text' } } as const
    const { ApiVersion } = await call(tried, askMs, (signal) => answers.read('/version', shape, signal))
    return protectsContainers(ApiVersion)
  }

  /** The id of a new network; undefined: there is one by its name (409). */
  const create = async (
    tried: string,
    { podCIDR, mode, ipv6CIDR, protects }: NewNetwork,
  ): Promise<string | undefined> => {
    const isDual = mode === 'dual'
    const { labels, options } = networkSettings(mode, protects)
    const request = {
      Name: networkName(nodeName, podCIDR, mode),
      CheckDuplicate: true,
      Driver: 'bridge',
      IPAM: { Config: addressPools(podCIDR, isDual ? ipv6CIDR : undefined) },
      // A daemon may have it on for each network that leaves it open ("default-network-opts").
      EnableIPv6: isDual,
      Labels: { [nodeLabel]: nodeName, ...labels },
      ...(mode !== 'node' && { Options: { ...options } }),
    }
    return (await call(tried, askMs, (abortSignal) => docker.createNetwork({ ...request, abortSignal }), 409))?.id
  }

  return { list, usersOf, remove, removeSandboxes, retire, isProtecting, create }
}
