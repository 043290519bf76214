/** Loop: the rules of Services that this node wants, from the fleet's messages. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import type { RuleFamily } from '../rule-family.ts'
import type { RuleSet } from '../rule-set.ts'
import { controllerAddresses } from './controller-addresses.ts'
import { ipv6Services } from './ipv6-services.ts'
import { preparePieces, rulesOfServices, type ServicePieces } from './rules-of-services.ts'
import type { ServiceNode } from './service-rules.ts'

type RulesOf = ReturnType<typeof rulesOfServices>

/** Rules, and their Services as they are in the family of the rules. */
export type ServiceRules = RuleSet & { readonly services: ServiceStates['services'] }

export type ServiceManagerNeeds = {
  readonly nodeName: string
  /** Family of the rules. Default: IPv4. */
  readonly family: RuleFamily
  /** URLs of the controllers: their API and MQTT. */
  readonly controllerUrls?: () => readonly string[]
  readonly reads: {
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly serviceStates: Reader<ServiceStates | undefined>
    readonly networkCurrent: Reader<boolean>
    /** Nodes that do not answer, sorted. */
    readonly silentNodes: Reader<readonly string[]>
  }
  readonly writes: {
    /** Undefined: the fleet has no network of the family, or not all of its Services were received. */
    readonly serviceRules: Cell<ServiceRules | undefined>
    /** `serviceRules` follows what the controller publishes, and not only what the checkpoint had. */
    readonly rulesCurrent: Cell<boolean>
  }
  readonly clock: Clock
}

/**
 * The cell is written before this resolves: rules that an earlier agent left in the kernel are then changed, and not removed
 * first. Messages that arrive together, as after a connection, are one change.
 */
export async function openServiceManager(needs: ServiceManagerNeeds): Promise<Loop> {
  const { nodeName, family, controllerUrls = () => [], reads, writes, clock } = needs
  const inFamily = family.family === 'IPv4' ? (services: ServiceStates['services']) => services : ipv6Services()
  const changed = alarm(clock)
  let made: { readonly of: string; readonly pieces: ServicePieces; readonly rulesOf: RulesOf } | undefined

  const update = async () => {
    const isCurrent = reads.networkCurrent.get()
    writes.serviceRules.set(await wanted())
    writes.rulesCurrent.set(isCurrent)
  }

  const wanted = async (): Promise<ServiceRules | undefined> => {
    const network = reads.networkMessage.get()
    const states = reads.serviceStates.get()
    const place = network && placeOf(nodeName, network, family)
    if (place === undefined || states === undefined) made = undefined
    // Part of the Services would close connections to the others (kube-proxy waits likewise, proxier.go, isInitialized).
    if (place === undefined || states?.isComplete !== true) return undefined
    const services = inFamily(states.services)
    const controllers = controllerAddresses(controllerUrls(), services, family)
    const node = { ...place, controllers, silentNodes: reads.silentNodes.get() }
    const key = JSON.stringify(node)
    if (made?.of !== key) {
      const pieces: ServicePieces = new WeakMap()
      made = { of: key, pieces, rulesOf: rulesOfServices(node, pieces) }
    }
    const { pieces, rulesOf } = made
    await preparePieces(services, node, pieces)
    return { ...rulesOf(services), services }
  }

  const watch = (reader: { readonly onChange: (listener: () => void) => () => void }) => reader.onChange(changed.ring)

  await update()
  return {
    name: family.family === 'IPv4' ? 'services' : 'services-ipv6',
    async run(signal) {
      const { networkMessage, serviceStates, networkCurrent, silentNodes } = reads
      const stops = [networkMessage, serviceStates, networkCurrent, silentNodes].map(watch)
      try {
        await update()
        while (!signal.aborted) {
          await changed.sleep(longestTimerMs, signal)
          if (!signal.aborted) await update()
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
  }
}

/** undefined: the fleet has no network of the family. */
function placeOf(nodeName: string, network: NetworkMessage, family: RuleFamily): ServiceNode | undefined {
  const own = network.nodes.find(({ name }) => name === nodeName)
  const isIPv4 = family.family === 'IPv4'
  const ranges = isIPv4 ? network : network.ipv6
  if (ranges === undefined) return undefined
  const { clusterCIDR, serviceCIDR } = ranges
  const address = isIPv4 ? own?.address : own?.ipv6?.address
  const addresses = address === undefined ? [] : [address]
  return { nodeName, zone: own?.zone ?? '', addresses, clusterCIDR, serviceCIDR, family }
}
