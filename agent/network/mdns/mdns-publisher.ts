/** The names of this node on one link: its socket, what others send to it, and what is due. */
import { isWithin } from '../../../api/text/cidr.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { sourceLimit } from '../names/source-limit.ts'
import { type AddressRecord, readMdnsMessage, writeLegacyResponse, writeProbe, writeResponse } from './mdns-message.ts'
import type { MdnsLink } from './mdns-names.ts'
import {
  announcedNames,
  type MdnsNames,
  type MdnsReply,
  namesInMessage,
  receiveMdns,
  stepNames,
  withWanted,
} from './mdns-responder.ts'

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
  /** One for each address of IPv4 that others reach. */
  links(): readonly MdnsLink[]
  /** All addresses of this machine, those of load balancers too. */
  addresses(): ReadonlySet<string>
  /** Port 5353 of the link, beside other programs of the machine. Rejects with the reason. */
  open(link: MdnsLink, receive: (message: Buffer, from: MdnsPeer) => void): Promise<MdnsSocket>
}

export type PublisherNeeds = {
  readonly host: MdnsHost
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  /** Called when a step may be due earlier. */
  readonly wake: () => void
}

export interface MdnsPublisher {
  readonly link: MdnsLink
  /** The error that ended it; undefined: it works. */
  failure(): Error | undefined
  want(names: readonly AddressRecord[]): void
  /** Takes the steps that are due; returns when the next one is (`monotonicMs`), undefined: none. */
  step(): number | undefined
  /** Withdraws the names first. */
  close(): Promise<void>
}

const mdnsPort = 5353
/** Of messages. A link with avahi on every machine has some a second; what one machine sends beyond that is not read. */
const ofSource = { perSecond: 20, atOnce: 100 }
const ofLink = { perSecond: 200, atOnce: 400 }

export async function openMdnsPublisher(link: MdnsLink, needs: PublisherNeeds): Promise<MdnsPublisher> {
  const { host, clock, random, log, wake } = needs
  const [sources, all] = [sourceLimit(clock, ofSource), sourceLimit(clock, ofLink)]
  let names: MdnsNames = new Map()
  let own = host.addresses()
  let failure: Error | undefined

  const receive = (bytes: Buffer, from: MdnsPeer) => {
    // Section 11: what comes from another link is not of this one.
    if (!isWithin(from.address, link.range) || !sources.take(from.address) || !all.take('')) return
    const message = readMdnsMessage(bytes)
    if (message === undefined) return
    const sender = { isOwn: own.has(from.address), isLegacy: from.port !== mdnsPort }
    // A response from another port is forged, or of a program that does not take part (section 6).
    if (message.isResponse && sender.isLegacy) return
    const before = names
    const received = receiveMdns(names, message, sender, clock.monotonicMs())
    names = received.names
    for (const name of received.lost)
      log.warn('Another machine has a name of this node on the link', { name, address: from.address })
    if (hasRecords(received.multicast)) void socket.multicast(responseOf(received.multicast))
    if (hasRecords(received.unicast)) void socket.unicast(responseOf(received.unicast), from)
    const { legacy } = received
    if (legacy !== undefined)
      void socket.unicast(writeLegacyResponse(message.id, legacy.question, legacy.addresses), from)
    if (before !== names && message.isResponse) wake()
  }

  const socket = await host.open(link, receive)
  void socket.ended.then((error) => {
    failure = error
    wake()
  })

  const withdraw = async (records: readonly AddressRecord[]) => {
    for (const some of chunks(records)) await socket.multicast(writeResponse(some, [], 0))
  }

  return {
    link,
    failure: () => failure,
    want(wanted) {
      own = host.addresses()
      const { names: next, withdrawn } = withWanted(names, wanted, clock.monotonicMs(), random)
      names = next
      void withdraw(withdrawn)
    },
    step() {
      const { names: next, probes, announcements, dueMs } = stepNames(names, clock.monotonicMs())
      names = next
      for (const some of chunks(probes)) void socket.multicast(writeProbe(some))
      for (const some of chunks(announcements)) void socket.multicast(writeResponse(some))
      return dueMs
    },
    async close() {
      await withdraw(announcedNames(names))
      names = new Map()
      await socket.close()
    },
  }
}

function hasRecords({ addresses, absent }: MdnsReply): boolean {
  return addresses.length + absent.length > 0
}

function responseOf({ addresses, absent }: MdnsReply): Buffer {
  return writeResponse(addresses, absent)
}

function chunks(records: readonly AddressRecord[]): readonly (readonly AddressRecord[])[] {
  const count = Math.ceil(records.length / namesInMessage)
  return Array.from({ length: count }, (_, index) =>
    records.slice(index * namesInMessage, (index + 1) * namesInMessage),
  )
}
