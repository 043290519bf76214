/** Loop: publishes this node, and load balancers whose address it has, to the machines of the house by multicast DNS. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import { linksToUse, type MdnsLink, type MdnsSettings, namesToPublish } from './mdns-names.ts'
import { type MdnsHost, type MdnsPublisher, openMdnsPublisher } from './mdns-publisher.ts'
import { mdnsRules } from './mdns-rules.ts'

export type MdnsManagerNeeds = {
  readonly nodeName: string
  readonly host: MdnsHost
  /** The InternalIP of the node; undefined until it was found. */
  readonly nodeAddress: () => string | undefined
  readonly reads: {
    readonly serviceStates: Reader<ServiceStates | undefined>
    readonly networkMessage: Reader<NetworkMessage | undefined>
  }
  /** Undefined: nothing is published, or the fleet has no network of its own. */
  readonly writes: { readonly mdnsRules: Cell<RuleSet | undefined> }
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** Addresses of links, and of load balancers, are read again: without a process. */
const verifyMs = 10_000

/** `settings` undefined: nothing is published, and no socket is opened. */
export function mdnsManager(needs: MdnsManagerNeeds, settings: MdnsSettings | undefined): Loop {
  const { nodeName, host, reads, clock, log } = needs
  const woken = alarm(clock)
  const publishers = new Map<string, MdnsPublisher>()
  let verifyAtMs = 0
  let problem: string | undefined

  /** Sockets of the links that are used now. What cannot be opened is tried again. */
  const verify = async (used: MdnsSettings) => {
    const links = new Map(linksToUse(host.links(), used, needs.nodeAddress()).map((link) => [keyOf(link), link]))
    for (const [key, publisher] of publishers) {
      if (links.has(key) && publisher.failure() === undefined) continue
      publishers.delete(key)
      await publisher.close()
    }
    for (const [key, link] of links) {
      if (publishers.has(key)) continue
      publishers.set(key, await openMdnsPublisher(link, { ...needs, wake: woken.ring }))
      log.info('Names are published on a link', { interface: link.device, address: link.address })
    }
    const services = reads.serviceStates.get()?.services ?? new Map()
    const facts = { nodeName, services, balancers: host.addresses() }
    for (const publisher of publishers.values()) publisher.want(namesToPublish(facts, publisher.link, used))
  }

  const attempt = async (used: MdnsSettings) => {
    try {
      await verify(used)
      problem = undefined
    } catch (error) {
      if (problem !== storyOf(error)) log.warn('Names are not published on a link', { error })
      problem = storyOf(error)
    }
  }

  /** Resolves with the time to wait. */
  const pass = async (used: MdnsSettings): Promise<number> => {
    const hasFailed = [...publishers.values()].some((one) => one.failure() !== undefined)
    if (clock.monotonicMs() >= verifyAtMs || hasFailed) {
      await attempt(used)
      verifyAtMs = clock.monotonicMs() + verifyMs
    }
    const due = [...publishers.values()].map((one) => one.step() ?? verifyAtMs)
    return Math.max(0, Math.min(verifyAtMs, ...due) - clock.monotonicMs())
  }

  return {
    name: 'mdns',
    async run(signal) {
      const stops = [
        reads.serviceStates.onChange(() => {
          verifyAtMs = 0
          woken.ring()
        }),
        reads.networkMessage.subscribe((message) => {
          needs.writes.mdnsRules.set(settings && message && mdnsRules(message))
        }),
      ]
      try {
        while (!signal.aborted)
          await woken.sleep(settings === undefined ? longestTimerMs : await pass(settings), signal)
      } finally {
        for (const stop of stops) stop()
        for (const publisher of publishers.values()) await publisher.close()
      }
    },
  }
}

function keyOf({ device, address, range }: MdnsLink): string {
  return `${device} ${address} ${range}`
}
