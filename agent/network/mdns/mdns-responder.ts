/**
 * The names of a link, from the first probe until they are withdrawn, and the answers to messages of others (RFC 6762). Times are in
 * milliseconds.
 */
import type { NameText } from '../names/dns-name.ts'
import { dnsTypes } from '../names/dns-query.ts'
import {
  type AddressRecord,
  addressData,
  anyType,
  type MdnsMessage,
  type MdnsQuestion,
  type MdnsRecord,
  mdnsTtl,
} from './mdns-message.ts'

/** `taken`: by another machine. `left`: another program of this machine answers for the name. */
export type NamePhase =
  | { readonly phase: 'probing' | 'announcing'; readonly sent: number; readonly dueMs: number }
  | { readonly phase: 'held' }
  | { readonly phase: 'taken' | 'left'; readonly dueMs: number }

export type MdnsName = AddressRecord & {
  readonly state: NamePhase
  /** When it was sent to all of the link. */
  readonly multicastMs: number
}
export type MdnsNames = ReadonlyMap<NameText, MdnsName>

/** Sections 8.1 and 8.3. */
const probes = 3
const probeMs = 250
const announcements = 2
const announceMs = 1_000
/** Section 8.2: the probe of another machine had the higher address. */
const deferMs = 1_000
/** A name that another one has is probed again after so long: the node has no other name. */
const retryMs = 60_000
/** Section 6: a record is sent to all once a second, and faster only to defend its name. */
const repeatMs = 1_000
const defendMs = 250
/** Section 5.4: what all have not received for so long is sent to all, although one asked for itself. */
const recentMs = (mdnsTtl * 1_000) / 4
/** Some 700 bytes with their statements about other types. Who asks for more names asks again, without those that it has. */
export const namesInMessage = 8

/** The names of before with what is wanted now. `withdrawn`: were announced, and are not wanted any more. */
export function withWanted(
  names: MdnsNames,
  wanted: readonly AddressRecord[],
  nowMs: number,
  random: () => number,
): { readonly names: MdnsNames; readonly withdrawn: readonly AddressRecord[] } {
  const next = new Map<NameText, MdnsName>()
  for (const { name, address } of wanted) {
    const known = names.get(name)
    if (known?.address === address) next.set(name, known)
    else if (known !== undefined && isAnnounced(known))
      // An update of a name that is held needs no probe (section 8.4).
      next.set(name, { ...known, address, state: { phase: 'announcing', sent: 0, dueMs: nowMs } })
    else {
      const state = { phase: 'probing', sent: 0, dueMs: nowMs + random() * probeMs } as const
      next.set(name, { name, address, state, multicastMs: Number.NEGATIVE_INFINITY })
    }
  }
  const withdrawn = [...names.values()].filter((one) => isAnnounced(one) && !next.has(one.name))
  return { names: next, withdrawn }
}

/** Those that this machine answers for. */
export function announcedNames(names: MdnsNames): readonly MdnsName[] {
  return [...names.values()].filter(isAnnounced)
}

function isAnnounced({ state: { phase } }: MdnsName): boolean {
  return phase === 'announcing' || phase === 'held'
}

export type MdnsStep = {
  readonly names: MdnsNames
  readonly probes: readonly AddressRecord[]
  readonly announcements: readonly AddressRecord[]
  /** When the next step is due; undefined: none is. */
  readonly dueMs: number | undefined
}

/** What is due now. */
export function stepNames(names: MdnsNames, nowMs: number): MdnsStep {
  const next = new Map(names)
  const [probing, announcing]: [AddressRecord[], AddressRecord[]] = [[], []]
  for (const name of names.values()) {
    const { state } = name
    if (state.phase === 'held' || state.dueMs > nowMs) continue
    if (state.phase === 'announcing' || (state.phase === 'probing' && state.sent >= probes)) {
      const sent = state.phase === 'announcing' ? state.sent + 1 : 1
      announcing.push(name)
      const after = sent >= announcements ? { phase: 'held' as const } : announcingAfter(sent, nowMs)
      next.set(name.name, { ...name, state: after, multicastMs: nowMs })
    } else {
      const sent = state.phase === 'probing' ? state.sent + 1 : 1
      probing.push(name)
      next.set(name.name, { ...name, state: { phase: 'probing', sent, dueMs: nowMs + probeMs } })
    }
  }
  const due = [...next.values()].flatMap(({ state }) => (state.phase === 'held' ? [] : [state.dueMs]))
  const dueMs = due.length === 0 ? undefined : Math.min(...due)
  return { names: next, probes: probing, announcements: announcing, dueMs }
}

function announcingAfter(sent: number, nowMs: number): NamePhase {
  return { phase: 'announcing', sent, dueMs: nowMs + announceMs }
}

/** `isOwn`: it came from this machine, by another program or from this one. */
export type Sender = { readonly isOwn: boolean; readonly isLegacy: boolean }

export type MdnsReception = {
  readonly names: MdnsNames
  /** To all of the link. */
  readonly multicast: MdnsReply
  /** To the one who asked. */
  readonly unicast: MdnsReply
  /** To one who uses plain DNS. */
  readonly legacy: { readonly question: MdnsQuestion; readonly addresses: readonly AddressRecord[] } | undefined
  /** Names that another machine has. */
  readonly lost: readonly NameText[]
}

/** `absent`: of these only another type was asked for. At most `namesInMessage` of both. */
export type MdnsReply = { readonly addresses: readonly AddressRecord[]; readonly absent: readonly AddressRecord[] }

export const noReply: MdnsReply = { addresses: [], absent: [] }

export function receiveMdns(names: MdnsNames, message: MdnsMessage, sender: Sender, nowMs: number): MdnsReception {
  return message.isResponse
    ? receiveResponse(names, message, sender, nowMs)
    : answerQuery(names, message, sender, nowMs)
}

/** Section 9: another machine has other data for a name of this one. While it is probed, any record is another's. */
function receiveResponse(names: MdnsNames, { answers }: MdnsMessage, { isOwn }: Sender, nowMs: number): MdnsReception {
  const next = new Map(names)
  const lost: NameText[] = []
  for (const record of answers) {
    const known = next.get(record.name)
    if (known === undefined || record.ttl === 0) continue
    const isSame = record.type === dnsTypes.A && Buffer.compare(record.data, addressData(known.address)) === 0
    if (known.state.phase === 'probing') {
      if (isSame && !isOwn) continue
      next.set(record.name, { ...known, state: { phase: isOwn ? 'left' : 'taken', dueMs: nowMs + retryMs } })
      if (!isOwn) lost.push(record.name)
    } else if (isAnnounced(known) && !isOwn && record.type === dnsTypes.A && !isSame) {
      next.set(record.name, { ...known, state: { phase: 'probing', sent: 0, dueMs: nowMs } })
    }
  }
  return { names: next, multicast: noReply, unicast: noReply, legacy: undefined, lost }
}

function answerQuery(names: MdnsNames, message: MdnsMessage, sender: Sender, nowMs: number): MdnsReception {
  const next = new Map(sender.isOwn ? names : deferred(names, message.authorities, nowMs))
  const [first] = message.questions
  if (sender.isLegacy) {
    const known = first && next.get(first.name)
    const isAsked = known !== undefined && isAnnounced(known) && [dnsTypes.A, anyType].includes(first?.type ?? 0)
    const legacy = isAsked && first !== undefined ? { question: first, addresses: [known] } : undefined
    return { names: next, multicast: noReply, unicast: noReply, legacy, lost: [] }
  }
  const replies = { multicast: emptyReply(), unicast: emptyReply() }
  for (const { name, type, wantsUnicast } of message.questions) {
    const known = next.get(name)
    if (known === undefined || !isAnnounced(known) || isKnown(known, type, message.answers)) continue
    const isProbe = message.authorities.some((record) => record.name === name)
    const sinceMs = nowMs - known.multicastMs
    const isUnicast = wantsUnicast && sinceMs < recentMs
    if (!isUnicast && sinceMs < (isProbe ? defendMs : repeatMs)) continue
    const reply = isUnicast ? replies.unicast : replies.multicast
    // What is not sent is not marked as sent: others may ask for it.
    if (reply.addresses.length + reply.absent.length >= namesInMessage) continue
    if (!isUnicast) next.set(name, { ...known, multicastMs: nowMs })
    const list = type === dnsTypes.A || type === anyType ? reply.addresses : reply.absent
    if (!list.some((one) => one.name === name)) list.push(known)
  }
  return { names: next, ...replies, legacy: undefined, lost: [] }
}

function emptyReply(): { readonly addresses: AddressRecord[]; readonly absent: AddressRecord[] } {
  return { addresses: [], absent: [] }
}

/** Section 7.1: the one who asks has the answer, for at least half of its time to live. */
function isKnown({ name, address }: MdnsName, type: number, answers: readonly MdnsRecord[]): boolean {
  if (type !== dnsTypes.A && type !== anyType) return false
  const data = addressData(address)
  return answers.some(
    (one) =>
      one.name === name && one.type === dnsTypes.A && one.ttl >= mdnsTtl / 2 && Buffer.compare(one.data, data) === 0,
  )
}

/**
 * Section 8.2: two machines probe for one name at the same time. The records of each are compared as sorted lists, by type and then by
 * data; the one with the later list goes on.
 */
function deferred(names: MdnsNames, authorities: readonly MdnsRecord[], nowMs: number): MdnsNames {
  const next = new Map(names)
  for (const known of names.values()) {
    if (known.state.phase !== 'probing') continue
    const theirs = authorities.filter(({ name }) => name === known.name).sort(compareRecords)
    if (theirs.length === 0) continue
    const [first] = theirs
    const own = { name: known.name, type: dnsTypes.A, ttl: mdnsTtl, data: addressData(known.address) }
    const order = first === undefined ? 1 : compareRecords(own, first)
    if (order > 0 || (order === 0 && theirs.length === 1)) continue
    next.set(known.name, { ...known, state: { phase: 'probing', sent: 0, dueMs: nowMs + deferMs } })
  }
  return next
}

function compareRecords(one: MdnsRecord, other: MdnsRecord): number {
  return one.type - other.type || Buffer.compare(one.data, other.data)
}
