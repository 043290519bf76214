/** Decides who answers a message of a client: the zone of the fleet, or another server. */
import { writeName } from './dns-name.ts'
import { type DnsQuery, dnsCodes, internetClass, readQuery } from './dns-query.ts'
import { answerLimit, type DnsRecord, writeDnsAnswer } from './dns-response.ts'
import type { Forwarder } from './forwarder.ts'
import type { SourceLimit } from './source-limit.ts'
import { addressRecordsIn, relayAnswer } from './upstream-answer.ts'
import type { Zone, ZoneAnswer } from './zone.ts'

export type Transport = 'udp' | 'tcp'

export type AnswererNeeds = {
  /** That of now. */
  readonly zone: () => Zone
  readonly forwarder: Forwarder
  readonly isClient: (address: string) => boolean
  readonly limit: SourceLimit
  /** 0 to 1. */
  readonly random: () => number
}

export interface Answerer {
  /** Is this address one of a pod or of the node? Others get no answer. */
  isClient(address: string): boolean
  /** undefined: nothing is sent. A promise where another server is asked; it never rejects. */
  answer(message: Buffer, source: string, transport: Transport): Buffer | undefined | Promise<Buffer>
}

export function dnsAnswerer({ zone, forwarder, isClient, limit, random }: AnswererNeeds): Answerer {
  const forward = async (query: DnsQuery, source: string, most: number): Promise<Buffer> => {
    const isSecurityAware = query.edns?.isSecurityAware === true
    const found = await forwarder.forward({ ...query, isSecurityAware }, source)
    if (found === undefined) return writeDnsAnswer(query, { code: dnsCodes.serverFailure }, most)
    return relayAnswer(query, found.answer, found.ageSeconds, most)
  }

  /** As CoreDNS: clients in pods do not follow aliases, so the addresses of the other name are in the same answer. */
  const follow = async (query: DnsQuery, own: ZoneAnswer, target: string, source: string, most: number) => {
    const question = questionFor(target, query)
    const found = question && (await forwarder.forward({ ...query, ...question, isSecurityAware: false }, source))
    const answers = [...own.answers, ...(found === undefined ? [] : addressRecordsIn(found.answer))]
    return writeDnsAnswer(query, { ...own, answers, isAuthoritative: true }, most)
  }

  return {
    isClient,
    answer(message, source, transport) {
      if (!isClient(source) || !limit.take(source)) return undefined
      const read = readQuery(message)
      if (read.kind === 'ignore') return undefined
      const { query } = read
      const most = answerLimit(query, transport)
      if (read.kind === 'refuse') return writeDnsAnswer(query, { code: read.code }, most)
      const own = zone().answer(query.name, query.type)
      if (own === undefined) return forward(query, source, most)
      limit.charge(source, own.answers.length + own.additional.length)
      if (own.target !== undefined) return follow(query, own, own.target, source, most)
      const answers = own.answers.length > 1 ? turned(own.answers, random) : own.answers
      return writeDnsAnswer(query, { ...own, answers, isAuthoritative: true }, most)
    },
  }
}

/** Clients use the first address: each call begins with another one. Aliases stay before what they lead to. */
function turned(records: readonly DnsRecord[], random: () => number): readonly DnsRecord[] {
  const first = records.findIndex(({ type }) => type !== 'CNAME')
  if (first < 0) return records
  const [aliases, others] = [records.slice(0, first), records.slice(first)]
  const at = Math.floor(random() * others.length)
  return [...aliases, ...others.slice(at), ...others.slice(0, at)]
}

function questionFor(name: string, { type }: DnsQuery) {
  const written = writeName(name)
  if (written === undefined) return undefined
  const fixed = Buffer.alloc(4)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(internetClass, 2)
  return { name, question: Buffer.concat([written, fixed]) }
}
