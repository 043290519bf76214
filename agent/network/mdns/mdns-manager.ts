/** Loop: publishes this node, and load balancers whose address it has, to the machines of the house by multicast DNS. */
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ByFamily } from '../../../api/text/ip-address.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import type { HostName } from './mdns-message.ts'
import { linksToUse, type MdnsLink, type MdnsSettings, namesToPublish } from './mdns-names.ts'
import { type MdnsChannel, type MdnsHost, type MdnsPublisher, openMdnsPublisher } from './mdns-publisher.ts'
import { ipv6MdnsRules, mdnsRules } from './mdns-rules.ts'

export type MdnsManagerNeeds = {
  readonly nodeName: string
  readonly host: MdnsHost
  /** The InternalIP of the node; undefined until it was found. */
  readonly nodeAddress: () => string | undefined
  readonly reads: {
    readonly serviceStates: Reader<ServiceStates | undefined>
    readonly networkMessage: Reader<NetworkMessage | undefined>
    readonly podLink: Reader<string | undefined>
  }
  /** Undefined: nothing is published, or the fleet has no network of the family. */
  readonly writes: { readonly mdnsRules: ByFamily<Cell<RuleSet | undefined>> }
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
  /** Names that each publisher publishes, unless another host has them. */
  let wanted: ReadonlyMap<MdnsPublisher, readonly HostName[]> = new Map()
  /** What each link has now. */
  let links: ReadonlyMap<MdnsPublisher, MdnsLink> = new Map()
  let own: ReadonlySet<string> = new Set()
  let verifyAtMs = 0
  let isUnread = false
  /** By channel. */
  const problems = new Map<string, string>()

  /** A channel that cannot be opened is tried again, and keeps no other one closed. */
  const open = async (key: string, channel: MdnsChannel) => {
    const { device, address } = channel.link
    try {
      publishers.set(key, await openMdnsPublisher(channel, { ...needs, wake: woken.ring }))
      problems.delete(key)
      log.info('Names are published on a link', { interface: device, address, family: channel.family })
    } catch (error) {
      if (problems.get(key) !== storyOf(error)) log.warn('Names are not published on a link', { error })
      problems.set(key, storyOf(error))
    }
  }

  const closeUnused = async (used: ReturnType<typeof channelsOf>) => {
    for (const [key, publisher] of publishers) {
      if (used.has(key) && publisher.failure() === undefined) continue
      publishers.delete(key)
      await publisher.close()
    }
  }

  /** Sockets of the links that are used now. */
  const verify = async (used: MdnsSettings) => {
    const channels = channelsOf(linksToUse(host.links(), used, needs.nodeAddress()))
    await closeUnused(channels)
    for (const key of problems.keys()) if (!channels.has(key)) problems.delete(key)
    for (const [key, channel] of channels) if (!publishers.has(key)) await open(key, channel)
    own = host.addresses()
    const facts = { nodeName, services: reads.serviceStates.get()?.services ?? new Map(), balancers: own }
    links = new Map([...publishers].map(([key, one]) => [one, channels.get(key)?.link ?? one.channel.link]))
    wanted = new Map([...links].map(([one, link]) => [one, namesToPublish(facts, link, used)]))
  }

  const want = () => {
    const allowed = [...wanted].map(([one, names]) => [one, withoutLost(one, names, publishers.values())] as const)
    for (const [one, names] of allowed) one.want(names, { own, link: links.get(one) ?? one.channel.link })
  }

  /** The system may refuse its list of addresses for a moment: names that are published stay. */
  const attempt = async (used: MdnsSettings) => {
    try {
      await verify(used)
      isUnread = false
    } catch (error) {
      if (!isUnread) log.warn('Cannot read the addresses of this machine: published names are not updated', { error })
      isUnread = true
    }
  }

  /** Resolves with the time to wait. */
  const pass = async (used: MdnsSettings): Promise<number> => {
    const hasFailed = [...publishers.values()].some((one) => one.failure() !== undefined)
    if (clock.monotonicMs() >= verifyAtMs || (hasFailed && !isUnread)) {
      await attempt(used)
      verifyAtMs = clock.monotonicMs() + verifyMs
    }
    want()
    const due = [...publishers.values()].map((one) => one.step() ?? verifyAtMs)
    return Math.max(0, Math.min(verifyAtMs, ...due) - clock.monotonicMs())
  }

  const setRules = () => writeRules(needs, settings)

  return {
    name: 'mdns',
    async run(signal) {
      const stops = [
        reads.serviceStates.onChange(() => {
          verifyAtMs = 0
          woken.ring()
        }),
        reads.networkMessage.subscribe(setRules),
        reads.podLink.onChange(setRules),
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

/** A name that others have by one family is not this node's by the other one either: who resolves it would get both. */
function withoutLost(publisher: MdnsPublisher, names: readonly HostName[], publishers: Iterable<MdnsPublisher>) {
  const { device } = publisher.channel.link
  const beside = [...publishers].filter((one) => one !== publisher && one.channel.link.device === device)
  const lost = new Set(beside.flatMap((one) => [...one.lost()]))
  const known = new Set(publisher.lost())
  return names.filter(({ name }) => known.has(name) || !lost.has(name))
}

function writeRules({ reads, writes }: MdnsManagerNeeds, settings: MdnsSettings | undefined): void {
  const message = settings && reads.networkMessage.get()
  writes.mdnsRules.IPv4.set(message && mdnsRules(message))
  writes.mdnsRules.IPv6.set(message?.ipv6 && ipv6MdnsRules(message.ipv6, reads.podLink.get()))
}

/** By their keys. An interface has one of IPv6, with the first of its links, and none without an address of the link. */
function channelsOf(links: readonly MdnsLink[]): ReadonlyMap<string, MdnsChannel> {
  const channels = new Map<string, MdnsChannel>()
  for (const link of links) {
    const { device, address, range } = link
    channels.set(`${device} ${address} ${range}`, { link, family: 'IPv4' })
    const key = `${device} IPv6`
    if (link.ipv6 !== undefined && !channels.has(key)) channels.set(key, { link, family: 'IPv6' })
  }
  return channels
}
