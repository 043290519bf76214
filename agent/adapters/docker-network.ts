/** The network of a node's pods: a bridge of Docker's with the addresses the controller gave the node. */
import type Dockerode from 'dockerode'
import { call } from './docker-call.ts'
import { nodeLabel } from './docker-labels.ts'

export interface PodNetwork {
  /** It is there. Earlier ones of this node go once nothing is on them. */
  ensure(podCIDR: string): Promise<void>
  /** It may have been removed: look again the next time. */
  doubt(): void
}

const askMs = 30_000

export function podNetwork(docker: Dockerode, nodeName: string): PodNetwork {
  let sure: string | undefined

  return {
    async ensure(podCIDR) {
      if (sure === podCIDR) return
      const name = networkName(nodeName, podCIDR)
      const tried = `Cannot make network ${name} for addresses ${podCIDR}`
      const filters = { label: [`${nodeLabel}=${nodeName}`] }
      const present = await call(tried, askMs, () => docker.listNetworks({ filters: JSON.stringify(filters) }))
      if (!present.some((one) => one.Name === name)) {
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

export function networkName(nodeName: string, podCIDR: string): string {
  return `bramble_${nodeName}_${podCIDR.replace(/[^0-9a-f.]/g, '-')}`
}
