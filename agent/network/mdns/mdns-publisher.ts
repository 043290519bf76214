/** The names of this node on one link by one family of IP: its socket, what others send to it, and what is due. */
import type { IPFamily } from '../../../api/text/ip-address.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { sourceLimit } from '../names/source-limit.ts'
import {
  anyType,
  type HostName,
  readMdnsMessage,
  writeLegacyResponse,
  writeProbe,
  writeResponse,
  writeWithdrawal,
} from './mdns-message.ts'
import { isOnLink, type MdnsLink, withoutZone } from './mdns-names.ts'
import {
  announcedNames,
  type MdnsNames,
  type MdnsReception,
  namesInMessage,
  namesOfOthers,
  receiveMdns,
  stepNames,
  withWanted,
} from './mdns-responder.ts'

/**
 * A link by the messages of one family. Machines with the other family only do not receive them, so each is probed, announced and answered by itself,
 * as if there were two links (RFC 6762, section 20).
 */
export type MdnsChannel = { readonly link: MdnsLink; readonly family: IPFamily }

export type MdnsPeer = { readonly address: string; readonly port: number }

/** Sending never rejects: the link may be gone. */
export interface MdnsSocket {
  /** Resolves with the error that ended it. */
  readonly ended: Promise<Error>
  multicast(message: Buffer): Promise<void>
  unicast(message: Buffer, to: MdnsPeer): Promise<void>
  close(): Promise<void>
}

export interface MdnsHost {
  /** One for each IPv4 address that others reach. */
  links(): readonly MdnsLink[]
  /** All addresses of this machine, those of load balancers too, without zones. */
  addresses(): ReadonlySet<string>
  /** Port 5353 of the link, beside other programs of the machine. Rejects with the reason. */
  open(channel: MdnsChannel, receive: (message: Buffer, from: MdnsPeer) => void): Promise<MdnsSocket>
}

export type PublisherNeeds = {
  readonly host: MdnsHost
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Called when a step may be due earlier. */
  readonly wake: () => void
}

/** `own`: all of this machine. `link`: what it has now. */
export type MachineAddresses = { readonly own: ReadonlySet<string>; readonly link: MdnsLink }

export interface MdnsPublisher {
  readonly channel: MdnsChannel
  /** The error that ended it; undefined: it works. */
  failure(): Error | undefined
  want(names: readonly HostName[], now: MachineAddresses): void
  /** Names that another machine or program has by this family. */
  lost(): readonly string[]
  /** Takes the steps that are due; returns when the next one is (`monotonicMs`), undefined: none. */
  step(): number | undefined
  /** Withdraws the names first. */
  close(): Promise<void>
}

const mdnsPort = 5353
/**
 * Messages read per source and per link; more are dropped. A link with avahi on every machine carries a few per second.
 */
const ofSource = { perSecond: 20, atOnce: 100 }
const ofLink = { perSecond: 200, atOnce: 400 }
/** `charge` takes 32 records for a message: so does a message for each 512 characters of names, which take 0.1 ms of a fast machine. */
const charactersOfRecord = 16

export async function openMdnsPublisher(channel: MdnsChannel, needs: PublisherNeeds): Promise<MdnsPublisher> {
  const { host, clock, random, log, wake } = needs
  let { link } = channel
  const [sources, all] = [sourceLimit(clock, ofSource), sourceLimit(clock, ofLink)]
  let names: MdnsNames = new Map()
  let own = host.addresses()
  let failure: Error | undefined

  const answer = ({ multicast, unicast, legacy }: MdnsReception, id: number, from: MdnsPeer) => {
    if (multicast.length > 0) void socket.multicast(writeResponse(multicast))
    if (unicast.length > 0) void socket.unicast(writeResponse(unicast), from)
    if (legacy !== undefined) void socket.unicast(writeLegacyResponse(id, legacy.question, legacy.host), from)
  }

  const receive = (bytes: Buffer, from: MdnsPeer) => {
    // Section 11: what comes from another link is not of this one.
    if (!isOnLink(from.address, link) || !sources.take(from.address) || !all.take('')) return
    const { message, nameCharacters } = readMdnsMessage(bytes)
    sources.charge(from.address, nameCharacters / charactersOfRecord)
    all.charge('', nameCharacters / charactersOfRecord)
    if (message === undefined) return
    const sender = { isOwn: own.has(withoutZone(from.address)), isLegacy: from.port !== mdnsPort }
    // A response from another port is forged, or of a program that does not take part (section 6).
    if (message.isResponse && sender.isLegacy) return
    const before = names
    const received = receiveMdns(names, message, sender, clock.monotonicMs())
    names = received.names
    for (const name of received.lost)
      log.warn('Another machine has a name of this node on the link', { name, address: from.address })
    answer(received, message.id, from)
    if (before !== names && message.isResponse) wake()
  }

  const socket = await host.open(channel, receive)
  void socket.ended.then((error) => {
    failure = error
    wake()
  })

  const withdraw = async (withdrawn: readonly HostName[]) => {
    for (const some of chunks(withdrawn)) await socket.multicast(writeWithdrawal(some))
  }

  return {
    channel,
    failure: () => failure,
    lost: () => namesOfOthers(names),
    want(wanted, now) {
      ;({ own, link } = now)
      const { names: next, withdrawn } = withWanted(names, wanted, clock.monotonicMs(), random)
      names = next
      void withdraw(withdrawn)
    },
    step() {
      const { names: next, probes, announcements, dueMs } = stepNames(names, clock.monotonicMs())
      names = next
      for (const some of chunks(probes)) void socket.multicast(writeProbe(some))
      for (const some of chunks(announcements)) void socket.multicast(writeResponse(some.map(allOf)))
      return dueMs
    },
    async close() {
      await withdraw(announcedNames(names))
      names = new Map()
      await socket.close()
    },
  }
}

function allOf(host: HostName) {
  return { ...host, type: anyType }
}

function chunks(names: readonly HostName[]): readonly (readonly HostName[])[] {
  const count = Math.ceil(names.length / namesInMessage)
  return Array.from({ length: count }, (_, index) => names.slice(index * namesInMessage, (index + 1) * namesInMessage))
}
