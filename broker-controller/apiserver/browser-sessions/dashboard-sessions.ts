/**
 * The sessions of the dashboard and the one-time links that begin them. In memory only: a restart of the controller ends them.
 * Secrets are kept as SHA-256 digests.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { ownerOf } from '../../../api/access/service-account-names.ts'
import type { Identity } from '../../../api/identity.ts'
import type { Clock } from '../../../daemon/clock.ts'

/** What a session acts as. It is checked again with each request. */
export type SessionProof =
  /** Holds until certificates of this user from before `sinceMs` are revoked. */
  | {
      readonly kind: 'identity'
      readonly identity: Identity
      readonly sinceMs: number
      /** When the session was opened that made its link, monotonic milliseconds. */
      readonly openedAtMs?: number
    }
  /** Holds as long as the token of a service account does. */
  | { readonly kind: 'token'; readonly token: string }
  /** Holds until the Secret of this kiosk link expires or is deleted. */
  | { readonly kind: 'kiosk'; readonly id: string }

/** What a list of sessions shows. Times are milliseconds since 1970. */
export type SessionFacts = {
  /** No secret: it names the session. */
  readonly id: string
  readonly user: string
  readonly address: string
  readonly userAgent: string
  readonly openedMs: number
}

export type DashboardSession = SessionFacts & {
  readonly proof: SessionProof
  /** Aborts when the session ends: its requests that still run end with it. */
  readonly ended: AbortSignal
}

export interface DashboardSessions {
  /**
   * A link for one login as this identity, and when it expires. Made by a session (its id), the login ends when that session would
   * have ended: otherwise links would make a session last for ever.
   */
  createLink(identity: Identity, session?: string): { readonly link: string; readonly expiresMs: number }
  /** The identity of a link that was neither used nor expired, and the time of its creation; it is used from now on. */
  redeemLink(link: string): (SessionProof & { readonly kind: 'identity' }) | undefined
  /** The secret for the cookie. Over the limits the session that was used least recently ends. */
  open(proof: SessionProof, facts: Omit<SessionFacts, 'id' | 'openedMs'>): string
  /** The session of a cookie; it counts as used. */
  find(cookie: string): DashboardSession | undefined
  /** The session counts as used. */
  touch(id: string): void
  list(): readonly SessionFacts[]
  /** Ends those whose time is over; the others with their proofs. */
  remaining(): readonly { readonly id: string; readonly proof: SessionProof }[]
  /** False: there is no such session. */
  end(id: string): boolean
  close(): void
}

/** Sessions end after a working day, and two hours after the last request. */
export const sessionLifeMs = 12 * 3600_000
const idleMs = 2 * 3600_000
const linkLifeMs = 10 * 60_000
const mostSessions = 1_000
const mostPerUser = 50
const mostLinks = 1_000
const mostLinksPerUser = 50

type Kept = DashboardSession & {
  readonly digest: Buffer
  readonly openedAtMs: number
  usedAtMs: number
  readonly ending: AbortController
}

type Link = {
  readonly digest: Buffer
  readonly identity: Identity
  readonly sinceMs: number
  readonly atMs: number
  readonly openedAtMs: number | undefined
}

export function dashboardSessions({ clock }: { readonly clock: Clock }): DashboardSessions {
  /** The least recently used first. */
  const sessions = new Map<string, Kept>()
  const links = new Map<string, Link>()

  const end = (id: string) => {
    const found = sessions.get(id)
    sessions.delete(id)
    found?.ending.abort()
    return found !== undefined
  }
  const touch = (one: Kept) => {
    one.usedAtMs = clock.monotonicMs()
    sessions.delete(one.id)
    sessions.set(one.id, one)
  }
  const isOver = ({ openedAtMs, usedAtMs }: Kept) => {
    const now = clock.monotonicMs()
    return now - openedAtMs >= sessionLifeMs || now - usedAtMs >= idleMs
  }
  const sweep = () => {
    for (const [id, one] of sessions) if (isOver(one)) end(id)
    for (const [id, { atMs }] of links) if (clock.monotonicMs() - atMs >= linkLifeMs) links.delete(id)
  }

  return {
    createLink(identity, session = '') {
      sweep()
      const own = [...links].filter(([, one]) => one.identity.user === identity.user)
      const [surplus] = own.length >= mostLinksPerUser ? own : links.size >= mostLinks ? links : []
      if (surplus !== undefined) links.delete(surplus[0])
      const { id, secret, digest } = newSecret()
      const openedAtMs = sessions.get(session)?.openedAtMs
      links.set(id, { digest, identity, sinceMs: clock.wallMs(), atMs: clock.monotonicMs(), openedAtMs })
      return { link: `${id}.${secret}`, expiresMs: clock.wallMs() + linkLifeMs }
    },
    redeemLink(link) {
      sweep()
      const { id, digest } = partsOf(link)
      const found = links.get(id)
      if (found === undefined || !timingSafeEqual(found.digest, digest)) return undefined
      links.delete(id)
      const { identity, sinceMs, openedAtMs } = found
      return { kind: 'identity', identity, sinceMs, ...(openedAtMs !== undefined && { openedAtMs }) }
    },
    open(proof, facts) {
      sweep()
      const owner = ownerOf(facts.user)
      const own = [...sessions.values()].filter(({ user }) => ownerOf(user) === owner)
      const [surplus] = own.length >= mostPerUser ? own : sessions.size >= mostSessions ? sessions.values() : []
      if (surplus !== undefined) end(surplus.id)
      const { id, secret, digest } = newSecret()
      const ending = new AbortController()
      const [openedMs, atMs] = [clock.wallMs(), clock.monotonicMs()]
      const openedAtMs = (proof.kind === 'identity' ? proof.openedAtMs : undefined) ?? atMs
      const times = { openedMs, openedAtMs, usedAtMs: atMs }
      sessions.set(id, { ...facts, ...times, id, proof, digest, ending, ended: ending.signal })
      return `${id}.${secret}`
    },
    find(cookie) {
      const { id, digest } = partsOf(cookie)
      const found = sessions.get(id)
      if (found === undefined || !timingSafeEqual(found.digest, digest)) return undefined
      if (isOver(found)) return void end(id)
      touch(found)
      return found
    },
    touch(id) {
      const found = sessions.get(id)
      if (found !== undefined && isOver(found)) end(id)
      else if (found !== undefined) touch(found)
    },
    list() {
      sweep()
      return [...sessions.values()].map(({ id, user, address, userAgent, openedMs }) => ({
        id,
        user,
        address,
        userAgent,
        openedMs,
      }))
    },
    remaining() {
      sweep()
      return [...sessions.values()].map(({ id, proof }) => ({ id, proof }))
    },
    end,
    close() {
      for (const id of [...sessions.keys()]) end(id)
    },
  }
}

/** `id` names it in lists; `secret` has 192 bits. */
function newSecret(): { readonly id: string; readonly secret: string; readonly digest: Buffer } {
  const [id, secret] = [randomBytes(6).toString('hex'), randomBytes(24).toString('base64url')]
  return { id, secret, digest: secretDigest(secret) }
}

function partsOf(text: string): { readonly id: string; readonly digest: Buffer } {
  const dot = text.indexOf('.')
  return { id: text.slice(0, Math.max(0, dot)), digest: secretDigest(text.slice(dot + 1)) }
}

/** SHA-256. The secrets are random, so nothing slower is needed. */
export function secretDigest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
