/**
 * The names of a link, from the first probe until they are withdrawn, and the answers to messages of others (RFC 6762). Times are in
 * milliseconds.
 */
import type { NameText } from '../names/dns-name.ts'
import {
  type AddressData,
  anyType,
  type HostName,
  type MdnsAnswer,
  type MdnsMessage,
  type MdnsQuestion,
  type MdnsRecord,
  mdnsTtl,
  recordsOfType,
} from './mdns-message.ts'

/** `taken`: by another machine. `left`: another program of this machine answers for the name. */
export type NamePhase =
  | { readonly phase: 'probing' | 'announcing'; readonly sent: number; readonly dueMs: number }
  | { readonly phase: 'held' }
  | { readonly phase: 'taken' | 'left'; readonly dueMs: number }

export type MdnsName = HostName & {
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
/** Wait until a name that another host has is probed again: the node has no other name. */
const retryMs = 60_000
/** Section 6: a record is sent to all once a second, and faster only to defend its name. */
const repeatMs = 1_000
const defendMs = 250
/** Section 5.4: an answer not multicast for this long is multicast, even if the question asked for a unicast answer. */
const recentMs = (mdnsTtl * 1_000) / 4
/**
 * About 1,100 bytes with their statements about other types. A host that asks for more names repeats its question
 * without those that it has.
 */
export const namesInMessage = 6

/** The names of before with what is wanted now. `withdrawn`: names with addresses that were announced, and are not wanted any more. */
export function withWanted(
  names: MdnsNames,
  wanted: readonly HostName[],
  nowMs: number,
  random: () => number,
): { readonly names: MdnsNames; readonly withdrawn: readonly HostName[] } {
  const next = new Map<NameText, MdnsName>()
  for (const { name, addresses } of wanted) {
    const known = names.get(name)
    if (known !== undefined && known.addresses.join() === addresses.join()) next.set(name, known)
    else if (known !== undefined && isAnnounced(known))
      // An update of a name that is held needs no probe (section 8.4).
      next.set(name, { ...known, addresses, state: { phase: 'announcing', sent: 0, dueMs: nowMs } })
    else {
      const state = { phase: 'probing', sent: 0, dueMs: nowMs + random() * probeMs } as const
      next.set(name, { name, addresses, state, multicastMs: Number.NEGATIVE_INFINITY })
    }
  }
  const withdrawn = announcedNames(names).flatMap(({ name, addresses }) => {
    const kept = next.get(name)?.addresses ?? []
    const gone = addresses.filter((one) => !kept.includes(one))
    return gone.length === 0 ? [] : [{ name, addresses: gone }]
  })
  return { names: next, withdrawn }
}

/** Those that this machine answers for. */
export function announcedNames(names: MdnsNames): readonly MdnsName[] {
  return [...names.values()].filter(isAnnounced)
}

/** Those that another machine has, or another program of this one. */
export function namesOfOthers(names: MdnsNames): readonly NameText[] {
  return [...names.values()].flatMap(({ name, state }) => (['taken', 'left'].includes(state.phase) ? [name] : []))
}

function isAnnounced({ state: { phase } }: MdnsName): boolean {
  return phase === 'announcing' || phase === 'held'
}

export type MdnsStep = {
  readonly names: MdnsNames
  readonly probes: readonly HostName[]
  readonly announcements: readonly HostName[]
  /** When the next step is due; undefined: none is. */
  readonly dueMs: number | undefined
}

/** What is due now. */
export function stepNames(names: MdnsNames, nowMs: number): MdnsStep {
  const next = new Map(names)
  const [probing, announcing]: [HostName[], HostName[]] = [[], []]
  for (const name of names.values()) {
    const { state } = name
    if (state.phase === 'held' || state.dueMs > nowMs) continue
    const after = phaseAfterSending(state, nowMs)
    if (after.phase === 'probing') {
      probing.push(name)
      next.set(name.name, { ...name, state: after })
    } else {
      announcing.push(name)
      next.set(name.name, { ...name, state: after, multicastMs: nowMs })
    }
  }
  const due = [...next.values()].flatMap(({ state }) => (state.phase === 'held' ? [] : [state.dueMs]))
  const dueMs = due.length === 0 ? undefined : Math.min(...due)
  return { names: next, probes: probing, announcements: announcing, dueMs }
}

/** Behind a probe, or behind an announcement. */
function phaseAfterSending(state: NamePhase, nowMs: number): NamePhase {
  const isProbed = state.phase === 'probing' && state.sent >= probes
  if (state.phase === 'announcing' || isProbed) {
    const sent = state.phase === 'announcing' ? state.sent + 1 : 1
    return sent >= announcements ? { phase: 'held' } : { phase: 'announcing', sent, dueMs: nowMs + announceMs }
  }
  return { phase: 'probing', sent: state.phase === 'probing' ? state.sent + 1 : 1, dueMs: nowMs + probeMs }
}

/** `isOwn`: it came from this machine, by another program or from this one. */
export type Sender = { readonly isOwn: boolean; readonly isLegacy: boolean }

export type MdnsReception = {
  readonly names: MdnsNames
  /** To all of the link. */
  readonly multicast: MdnsReply
  /** To the host that asked. */
  readonly unicast: MdnsReply
  /** To a host that uses plain DNS. */
  readonly legacy: { readonly question: MdnsQuestion; readonly host: HostName } | undefined
  /** Names that another machine has. */
  readonly lost: readonly NameText[]
}

/** Each name once; at most `namesInMessage`. */
export type MdnsReply = readonly MdnsAnswer[]

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
    const state = phaseAfter(record, known, isOwn, nowMs)
    if (state === undefined) continue
    next.set(record.name, { ...known, state })
    if (state.phase === 'taken') lost.push(record.name)
  }
  return { names: next, multicast: [], unicast: [], legacy: undefined, lost }
}

/** undefined: it stays as it is. */
function phaseAfter(
  record: MdnsMessage['answers'][number],
  known: MdnsName,
  isOwn: boolean,
  nowMs: number,
): NamePhase | undefined {
  const ofType = recordsOfType(known, record.type)
  const isSame = ofType.some(({ data }) => Buffer.compare(record.data, data) === 0)
  if (known.state.phase === 'probing') {
    return isSame && !isOwn ? undefined : { phase: isOwn ? 'left' : 'taken', dueMs: nowMs + retryMs }
  }
  const isConflict = isAnnounced(known) && !isOwn && ofType.length > 0 && !isSame
  return isConflict ? { phase: 'probing', sent: 0, dueMs: nowMs } : undefined
}

function answerQuery(names: MdnsNames, message: MdnsMessage, sender: Sender, nowMs: number): MdnsReception {
  const next = new Map(sender.isOwn ? names : deferred(names, message.authorities, nowMs))
  if (sender.isLegacy) {
    return { names: next, multicast: [], unicast: [], legacy: legacyAnswer(next, message), lost: [] }
  }
  const [multicast, unicast] = [new Map<NameText, MdnsAnswer>(), new Map<NameText, MdnsAnswer>()]
  for (const question of message.questions) answerQuestion(question, message, { next, multicast, unicast }, nowMs)
  const replies = { multicast: [...multicast.values()], unicast: [...unicast.values()] }
  return { names: next, ...replies, legacy: undefined, lost: [] }
}

type Replies = {
  readonly next: Map<NameText, MdnsName>
  readonly multicast: Map<NameText, MdnsAnswer>
  readonly unicast: Map<NameText, MdnsAnswer>
}

function answerQuestion(
  { name, type, wantsUnicast }: MdnsQuestion,
  message: MdnsMessage,
  { next, multicast, unicast }: Replies,
  nowMs: number,
): void {
  const known = next.get(name)
  if (known === undefined || !isAnnounced(known) || isKnown(known, type, message.answers)) return
  const isUnicast = wantsUnicast && nowMs - known.multicastMs < recentMs
  const reply = isUnicast ? unicast : multicast
  const before = reply.get(name)
  if (before === undefined && !(isUnicast || mayRepeat(known, message, nowMs))) return
  // What is not sent is not marked as sent: others may ask for it.
  if (before === undefined && reply.size >= namesInMessage) return
  if (!isUnicast) next.set(name, { ...known, multicastMs: nowMs })
  const isOther = before !== undefined && before.type !== type
  reply.set(name, { name, addresses: known.addresses, type: isOther ? anyType : type })
}

/** Sooner if another machine probes for the name. */
function mayRepeat({ name, multicastMs }: MdnsName, { authorities }: MdnsMessage, nowMs: number): boolean {
  const isProbe = authorities.some((record) => record.name === name)
  return nowMs - multicastMs >= (isProbe ? defendMs : repeatMs)
}

/** A host that uses plain DNS asks one question. */
function legacyAnswer(names: MdnsNames, { questions: [question] }: MdnsMessage): MdnsReception['legacy'] {
  const host = question && names.get(question.name)
  if (question === undefined || host === undefined || !isAnnounced(host)) return undefined
  return recordsOfType(host, question.type).length > 0 ? { question, host } : undefined
}

/**
 * Section 7.1: the host that asks has the answer, for at least half of its time to live. It must have all addresses of
 * a name: an answer replaces them, so none is sent without the others (section 10.2).
 */
function isKnown(name: MdnsName, type: number, answers: readonly MdnsRecord[]): boolean {
  const has = (own: AddressData) =>
    answers.some(
      (one) =>
        one.name === name.name && one.ttl >= mdnsTtl / 2 && one.type === own.type && compareRecords(one, own) === 0,
    )
  const records = recordsOfType(name, type)
  return records.length > 0 && records.every(has)
}

/**
 * Section 8.2: two machines probe for one name at the same time. The records of each are compared as sorted lists, by type and then by
 * data; the one with the later list continues.
 */
function deferred(names: MdnsNames, authorities: readonly MdnsRecord[], nowMs: number): MdnsNames {
  const next = new Map(names)
  for (const known of names.values()) {
    if (known.state.phase !== 'probing') continue
    const theirs = authorities.filter(({ name }) => name === known.name).sort(compareRecords)
    if (theirs.length === 0) continue
    if (compareLists(recordsOfType(known, anyType).toSorted(compareRecords), theirs) >= 0) continue
    next.set(known.name, { ...known, state: { phase: 'probing', sent: 0, dueMs: nowMs + deferMs } })
  }
  return next
}

function compareRecords(one: AddressData, other: AddressData): number {
  return one.type - other.type || Buffer.compare(one.data, other.data)
}

/** If one list begins with the whole other one, the longer list is later (RFC 6762, 8.2.1). */
function compareLists(own: readonly AddressData[], theirs: readonly AddressData[]): number {
  for (const [index, one] of own.entries()) {
    const other = theirs[index]
    const order = other === undefined ? 1 : compareRecords(one, other)
    if (order !== 0) return order
  }
  return own.length - theirs.length
}
