/** The dashboard as the API server sees it: which identity a session cookie stands for, and the answers below /ui/. */
import { timingSafeEqual } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  decodeKioskLink,
  isKioskLinkValid,
  kioskIdentity,
  kioskNamespace,
  kioskSecretName,
} from '../../api/access/kiosk-link.ts'
import { ApiError, isApiError } from '../../api/api-error.ts'
import { authenticatedGroup, type Identity } from '../../api/identity.ts'
import {
  type DashboardSession,
  type DashboardSessions,
  dashboardSessions,
  type SessionProof,
  secretDigest,
} from '../../broker-controller/apiserver/browser-sessions/dashboard-sessions.ts'
import type { Authorizer } from '../../broker-controller/apiserver/handlers/authorizer.ts'
import type { OfferedCards } from '../../broker-controller/cards/offered/offered-cards.ts'
import type { RevocationList } from '../../broker-controller/store/revocations.ts'
import type { Store } from '../../broker-controller/store/store.ts'
import type { Clock } from '../../daemon/clock.ts'
import { tokenBuckets } from '../../daemon/limits/token-bucket.ts'
import type { Log } from '../../daemon/log.ts'
import type { DashboardFiles } from './dashboard-files.ts'
import type { DashboardFleet } from './dashboard-fleet.ts'
import type { NodeDoctor } from './node-doctor.ts'

export type DashboardNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly access: Authorizer
  /** The service account whose token this is; undefined: it is not such a token. Throws Unauthorized. */
  readonly identifyAccount?: (token: string) => Promise<Identity | undefined>
  readonly revocations?: Pick<RevocationList, 'because'>
  readonly files: DashboardFiles
  readonly fleet: DashboardFleet
  /** Undefined: this controller offers no images of cards. */
  readonly cards?: OfferedCards
  /** Undefined: this controller cannot reach its nodes. */
  readonly doctor?: NodeDoctor
  /** The authority's certificates (PEM) with their hash, and `https://HOST:PORT` as other machines reach this API, once it is known. */
  readonly authority: () => { readonly trusted: string; readonly caHash: string; readonly server: string | undefined }
  /** Ours, as in `0.1.0`. */
  readonly version: string
}

export interface Dashboard extends DashboardNeeds {
  readonly sessions: DashboardSessions
  /** The session of a cookie, and its identity now. Throws Unauthorized when it has ended. */
  identify(cookie: string): Promise<{ readonly session: DashboardSession; readonly identity: Identity }>
  /** The identity that a proof stands for now. Throws Unauthorized. */
  identityOf(proof: SessionProof): Promise<Identity>
  /** The link of a kiosk, if `secret` is its secret. */
  kioskProof(link: string): Promise<SessionProof | undefined>
  /** Throws TooManyRequests when this address has tried too often to log in. */
  limitLogins(address: string): void
  /**
   * Ends sessions whose time is over, or whose identity is gone: logs and shells that they opened run without further requests.
   * Resolves when `signal` aborts.
   */
  run(signal: AbortSignal): Promise<void>
}

const checkSessionsMs = 10_000

const loginRate = { perSecond: 0.2, burst: 20 }

export function openDashboard(needs: DashboardNeeds): Dashboard {
  const { store, clock, revocations, identifyAccount } = needs
  const sessions = dashboardSessions({ clock })
  const logins = tokenBuckets(loginRate, clock, 1_000)

  const kioskLink = async (id: string) => {
    if (!/^[0-9a-f]{12}$/.test(id)) return undefined
    const secret = await store.get('secrets', { namespace: kioskNamespace, name: kioskSecretName(id) })
    const link = secret && decodeKioskLink(secret)
    return link && isKioskLinkValid(link, clock.wallMs()) ? link : undefined
  }

  const identityOf = async (proof: SessionProof): Promise<Identity> => {
    switch (proof.kind) {
      case 'identity': {
        const because = revocations?.because(proof.identity.user, proof.sinceMs)
        if (because !== undefined) throw new ApiError('Unauthorized', because)
        return proof.identity
      }
      case 'token': {
        const identity = await identifyAccount?.(proof.token)
        if (identity === undefined) throw new ApiError('Unauthorized', 'the token is not one of a service account')
        return identity
      }
      case 'kiosk': {
        if ((await kioskLink(proof.id)) === undefined)
          throw new ApiError('Unauthorized', 'the kiosk link has expired or was revoked')
        const { user, groups } = kioskIdentity(proof.id)
        return { user, groups: [...groups, authenticatedGroup] }
      }
    }
  }

  /** Whether the error ends the session. Others, as those of the store, do not. */
  const isOut = (error: unknown) => isApiError(error, 'Unauthorized')

  return {
    ...needs,
    sessions,
    identityOf,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(checkSessionsMs, signal)
        for (const { id, proof } of sessions.remaining()) {
          await identityOf(proof).catch((error: unknown) => isOut(error) && sessions.end(id))
          await setImmediate()
        }
      }
    },
    async identify(cookie) {
      const session = sessions.find(cookie)
      if (session === undefined)
        throw new ApiError('Unauthorized', 'the session of the dashboard has ended: log in again')
      try {
        return { session, identity: await identityOf(session.proof) }
      } catch (error) {
        if (isOut(error)) sessions.end(session.id)
        throw error
      }
    },
    async kioskProof(link) {
      const [id = '', secret = ''] = link.split('.')
      const found = await kioskLink(id)
      if (found === undefined) return undefined
      const digest = Buffer.from(found.digest, 'base64')
      const isRight = digest.length === 32 && timingSafeEqual(digest, secretDigest(secret))
      return isRight ? { kind: 'kiosk', id } : undefined
    },
    limitLogins(address) {
      const waitMs = logins.take(address)
      if (waitMs > 0) {
        const retryAfterSeconds = Math.ceil(waitMs / 1000)
        throw new ApiError('TooManyRequests', `too many attempts to log in: try again in ${retryAfterSeconds} s`, {
          retryAfterSeconds,
        })
      }
    },
  }
}
