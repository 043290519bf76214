/** Addresses of the names of other nodes, by the resolver of this machine. */
import { lookup } from 'node:dns/promises'
import { type Clock, systemClock } from '../../../daemon/clock.ts'
import { withinOr } from '../../../daemon/deadline.ts'

/** The address of a name; undefined: it has none, or not in time. Another call gets the answer that came too late. Never rejects. */
export type HostLookup = (name: string) => Promise<string | undefined>

const patienceMs = 5_000
/** A name that was not asked for since is not wanted any more. */
const wantedMs = 60_000

type Pending = { readonly answer: Promise<string | undefined>; askedAtMs: number; isDone: boolean }

/**
 * One at a time: each takes one of the two threads that Node.js has for names until the resolver gives up, and connections to the
 * controller need one too. Without an answering server that is 10 s and more, and the names of a site may be many.
 */
export function hostLookup(
  find: (name: string) => Promise<string | undefined> = addressOf,
  clock: Pick<Clock, 'monotonicMs' | 'sleep'> = systemClock,
): HostLookup {
  const pending = new Map<string, Pending>()
  let last: Promise<unknown> = Promise.resolve()

  const isWanted = (one: Pending) => clock.monotonicMs() - one.askedAtMs <= wantedMs
  const begin = (name: string): Pending => {
    const answer = last.then(async () => (isWanted(one) ? await find(name).catch(() => undefined) : undefined))
    const one: Pending = { answer, askedAtMs: clock.monotonicMs(), isDone: false }
    last = answer.then(() => {
      one.isDone = true
    })
    pending.set(name, one)
    return one
  }

  return async (name) => {
    for (const [other, one] of pending) if (one.isDone && !isWanted(one)) pending.delete(other)
    const one = pending.get(name) ?? begin(name)
    one.askedAtMs = clock.monotonicMs()
    const found = one.answer.then((address) => ({ address }))
    const inTime = await withinOr(patienceMs, undefined, found, clock)
    if (inTime !== undefined && pending.get(name) === one) pending.delete(name)
    return inTime?.address
  }
}

/** One of IPv6 in brackets. */
async function addressOf(name: string): Promise<string> {
  const { address, family } = await lookup(name, { verbatim: true })
  return family === 6 ? `[${address}]` : address
}
