/** The network of a node's pods: a bridge of Docker's with the addresses the controller gave the node. */
import type Dockerode from 'dockerode'
import { cidrsOverlap, formatCidr, parseCidr } from '../../api/cidr.ts'
import { RuntimeError } from '../pods/runtime.ts'
import { askMs, call } from './docker-call.ts'
import { nodeLabel } from './docker-labels.ts'
import type { Route } from './host-routes.ts'

export interface PodNetwork {
  /** It is there. Earlier ones of this node go once nothing is on them. */
  ensure(podCIDR: string): Promise<void>
  /** It may have been removed: look again the next time. */
  doubt(): void
}

/** `routes`: the machine's. */
export function podNetwork(docker: Dockerode, nodeName: string, routes: () => Promise<readonly Route[]>): PodNetwork {
  let sure: string | undefined

  return {
    async ensure(podCIDR) {
      if (sure === podCIDR) return
      const name = networkName(nodeName, podCIDR)
      const tried = `Cannot make network ${name} for addresses ${podCIDR}`
      const filters = { label: [`${nodeLabel}=${nodeName}`] }
      const present = await call(tried, askMs, () => docker.listNetworks({ filters: JSON.stringify(filters) }))
      if (!present.some((one) => one.Name === name)) {
        const taken = routeInTheWay(podCIDR, await routes())
        if (taken !== undefined) throw new RuntimeError('Failed', tried, { cause: new Error(taken) })
        const request = {
          Name: name,
          CheckDuplicate: true,
          Driver: 'bridge',
          IPAM: { Config: [{ Subnet: podCIDR }] },
          Labels: { [nodeLabel]: nodeName },
        }
        await call(tried, askMs, (abortSignal) => docker.createNetwork({ ...request, abortSignal }), 409)
      }
      for (const { Id, Name } of present) {
        // 403: pods are still on it; it is tried again when an agent starts.
        if (Name !== name)
          await call(`Cannot remove network ${Name}`, askMs, () => docker.getNetwork(Id).remove(), 403, 404)
      }
      sure = podCIDR
    },
    doubt() {
      sure = undefined
    },
  }
}

/** The bridges of Docker's networks: those it keeps apart itself, or they are left of a network that is no more. */
const ofDocker = /^br-[0-9a-f]{12}$/

/**
 * Docker would take the addresses, and the machine could no longer reach who has them. A wider network behind a gateway
 * goes on to be reached, but for the pods' part of it, as anywhere.
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
