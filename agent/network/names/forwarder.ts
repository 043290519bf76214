/** Asks other servers for names that are not the fleet's. */
import type { Clock } from '../../../daemon/clock.ts'
import type { AnswerCache } from './answer-cache.ts'
import { dnsCodes } from './dns-query.ts'
import {
  readUpstreamAnswer,
  type UpstreamAnswer,
  type UpstreamQuestion,
  writeUpstreamQuery,
} from './upstream-answer.ts'

/** One question to one server, over a socket of its own with a port that is not predictable. */
export interface UpstreamSockets {
  /** Resolves with the first datagram of that server that `accepts` takes. Rejects without one in time. */
  askUdp<T>(server: string, message: Buffer, accepts: (bytes: Buffer) => T | undefined, withinMs: number): Promise<T>
  askTcp<T>(server: string, message: Buffer, accepts: (bytes: Buffer) => T | undefined, withinMs: number): Promise<T>
}

export type ForwarderNeeds = {
  readonly sockets: UpstreamSockets
  /** The name servers of the machine, the preferred one first; without this server itself. */
  readonly servers: () => Promise<readonly string[]>
  readonly cache: AnswerCache
  /** 0 to 65535, unpredictable. */
  readonly randomId: () => number
  readonly clock: Clock
}

export type Forwarded = { readonly answer: UpstreamAnswer; readonly ageSeconds: number }

export interface Forwarder {
  /**
   * undefined: no server has answered in time, or too many questions are open. A question that is open already is not asked twice.
   * `source`: the client. Never rejects.
   */
  forward(query: UpstreamQuestion, source: string): Promise<Forwarded | undefined>
}

/**
 * Time for one server: two have been asked when a client retries after 5 s, as resolvers do (resolv.conf(5), timeout).
 */
const tryMs = 2_000
const mostTries = 3
/** Each holds a socket; more than dnsmasq's usual 150, and no pod can use up all of them. */
export const forwardLimits = { open: 256, ofSource: 64 }

export function dnsForwarder({ sockets, servers, cache, randomId, clock }: ForwarderNeeds): Forwarder {
  const open = new Map<string, Promise<UpstreamAnswer | undefined>>()
  const waiting = new Map<string, number>()
  /** Answered last. */
  let preferred: string | undefined

  const ask = async (server: string, query: UpstreamQuestion): Promise<UpstreamAnswer> => {
    const attempt = (hasOptions: boolean, over: 'askUdp' | 'askTcp') => {
      const id = randomId()
      const message = writeUpstreamQuery(query, id, hasOptions)
      return sockets[over](server, message, (bytes) => readUpstreamAnswer(bytes, query, id), tryMs)
    }
    const first = await attempt(true, 'askUdp')
    // Some servers of home routers refuse EDNS (RFC 6891, section 7).
    const refusesOptions = first.code === dnsCodes.formatError || first.code === dnsCodes.notImplemented
    const answer = refusesOptions ? await attempt(false, 'askUdp') : first
    return answer.isTruncated ? await attempt(!refusesOptions, 'askTcp').catch(() => answer) : answer
  }

  const askAll = async (query: UpstreamQuestion): Promise<UpstreamAnswer | undefined> => {
    const known = await servers().catch((): readonly string[] => [])
    const order = [...known].sort((a, b) => Number(b === preferred) - Number(a === preferred))
    const [only] = order
    let failure: UpstreamAnswer | undefined
    // A datagram can get lost.
    for (const server of order.length === 1 && only !== undefined ? [only, only] : order.slice(0, mostTries)) {
      const answer = await ask(server, query).catch(() => undefined)
      if (answer?.code === dnsCodes.noError || answer?.code === dnsCodes.nameError) {
        preferred = server
        return answer
      }
      if (preferred === server) preferred = undefined
      failure ??= answer
    }
    return failure
  }

  const shared = (key: string, query: UpstreamQuestion): Promise<UpstreamAnswer | undefined> => {
    const present = open.get(key)
    if (present !== undefined) return present
    const asked = askAll(query)
      .then((answer) => {
        if (answer !== undefined) cache.set(key, answer, clock.monotonicMs())
        return answer
      })
      .finally(() => open.delete(key))
    open.set(key, asked)
    return asked
  }

  return {
    async forward(query, source) {
      const key = keyOf(query)
      const kept = cache.get(key, clock.monotonicMs())
      if (kept !== undefined) return kept
      const own = waiting.get(source) ?? 0
      if (own >= forwardLimits.ofSource || (open.size >= forwardLimits.open && !open.has(key))) return undefined
      waiting.set(source, own + 1)
      try {
        const answer = await shared(key, query).catch(() => undefined)
        return answer && { answer, ageSeconds: 0 }
      } finally {
        const left = (waiting.get(source) ?? 1) - 1
        if (left > 0) waiting.set(source, left)
        else waiting.delete(source)
      }
    },
  }
}

function keyOf({ name, type, isCheckingDisabled, isSecurityAware }: UpstreamQuestion): string {
  return `${type} ${isCheckingDisabled ? 'c' : ''}${isSecurityAware ? 's' : ''} ${name}`
}
