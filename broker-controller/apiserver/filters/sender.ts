/** Who sends a request: its credentials, as an identity. */
import { createHash } from 'node:crypto'
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { Identity } from '../../../api/identity.ts'
import { decodeToken, tokenNamespace, tokenSecretName } from '../../../api/node/bootstrap-token.ts'
import type { RequestSender } from '../audit/audit-event.ts'
import { authenticate, identityOfToken, type RequestCredentials } from '../authentication/authentication.ts'
import { offeredToken, refuseForeignPage } from '../authentication/browser-credentials.ts'
import { expiryOfToken } from '../authentication/tokens/json-web-token.ts'
import { otherAudience, tokenIssuer } from '../authentication/tokens/service-account-tokens.ts'
import type { AccessCheck } from '../authorization/held-access.ts'
import { refuseForgery, sessionCookie } from '../browser-sessions/dashboard-credentials.ts'
import type { DashboardSession } from '../browser-sessions/dashboard-sessions.ts'
import { subresourceOf } from '../handlers/strategy.ts'
import type { TokenHolder } from '../reviews/review-answers.ts'
import type { ApiRoute } from '../routes.ts'
import { type ApiRequest, firstHeader, type RequestNeeds } from './api-request.ts'

export type Identified = { readonly identity: Identity; readonly session?: DashboardSession | undefined }

/** Throws Unauthorized for credentials that are not accepted, Forbidden for those that a page of others could send. */
export function authenticated(request: ApiRequest, route: ApiRoute, needs: RequestNeeds): Promise<Identified> {
  return byLatest(needs.replica, () => identify(request, route, needs))
}

/** What the credentials name may have been created a moment ago, with another controller: a standby may not have it yet. */
async function byLatest<T>(replica: RequestNeeds['replica'], identified: () => Promise<T>): Promise<T> {
  try {
    return await identified()
  } catch (error) {
    // A refusal without a reason is one of a signature, or of an invalid token.
    const isOfObject = isApiError(error, 'Unauthorized') && error.message !== 'Unauthorized'
    if (!isOfObject || replica === undefined || replica.isLeading()) throw error
    if (!(await replica.freshness.latest().catch(() => false))) throw error
    return identified()
  }
}

async function identify(request: ApiRequest, route: ApiRoute, needs: RequestNeeds): Promise<Identified> {
  const { method, certificate, headers, offered } = request
  const { dashboard } = needs
  const cookie = dashboard && headers['authorization'] === undefined ? sessionCookie(headers) : undefined
  if (dashboard !== undefined && cookie !== undefined) {
    refuseForgery({ method, headers, offered })
    const { identity, session } = await dashboard.identify(cookie)
    if (session !== undefined && isProxied(route)) throw pageOfOthers()
    return { identity, session }
  }
  const authorization = authorizationOf(request)
  if (certificate !== undefined) refuseForeignPage({ headers, offered, hasToken: authorization !== undefined })
  return { identity: await authenticatedBy({ certificate, authorization }, needs) }
}

function authorizationOf({ headers, offered }: Pick<ApiRequest, 'headers' | 'offered'>): string | undefined {
  const token = offered && offeredToken(offered).token
  return firstHeader(headers['authorization']) ?? (token && `Bearer ${token}`)
}

function authenticatedBy(credentials: RequestCredentials, needs: RequestNeeds): Promise<Identity> {
  const { revocations, lapsedWindowMs, origin, checkpoints } = needs
  return authenticate(credentials, {
    ...tokenNeeds(needs),
    ...(revocations && { revoked: revocations.because }),
    ...(lapsedWindowMs !== undefined && { lapsedWindowMs }),
    ...(origin && checkpoints?.isOpen() && { acceptingStore: origin.id }),
  })
}

/**
 * Whether the credentials of an answer that lasts still stand for this identity. undefined: there are none here. Another controller, or
 * the dashboard for its sessions, asks that itself.
 */
export function credentialsCheck(
  request: ApiRequest,
  { identity, via }: RequestSender,
  needs: RequestNeeds,
): AccessCheck | undefined {
  const { certificate, headers } = request
  const authorization = authorizationOf(request)
  const isOfSession = needs.dashboard !== undefined && headers['authorization'] === undefined && sessionCookie(headers)
  const isElsewhere = via !== undefined || (certificate === undefined && authorization === undefined) || isOfSession
  if (identity === undefined || isElsewhere) return undefined
  const endsMs = [certificate?.validUntilMs, authorization && expiryOfToken(authorization)]
  const hash = createHash('sha256')
    .update(authorization ?? '')
    .digest('base64')
  return {
    key: `credentials ${identity.user} ${certificate?.fingerprint} ${hash}`,
    // A revoked certificate closes its connection.
    dependsOn: authorization === undefined ? 'time' : 'objects',
    untilMs: Math.min(...endsMs.filter((ms) => typeof ms === 'number')),
    async ask() {
      const now = await byLatest(needs.replica, () => authenticatedBy({ certificate, authorization }, needs))
      const isSame = now.user === identity.user && now.groups.join() === identity.groups.join()
      if (!isSame)
        throw new ApiError('Unauthorized', `the credentials of ${identity.user} are now those of ${now.user}`)
    },
  }
}

function isProxied(route: ApiRoute): boolean {
  if (route.kind === 'aggregated') return true
  return route.kind === 'resource' && subresourceOf(route.resource, route.subresource)?.access === 'proxy'
}

/**
 * A page that comes through the proxy has the origin of the API: its scripts could do all that the session of the dashboard may,
 * and any user who may create a pod can write such a page.
 */
function pageOfOthers(): ApiError {
  const instead = "use 'kubectl proxy' or 'kubectl port-forward'"
  return new ApiError(
    'Forbidden',
    `the session of the dashboard opens no pages of pods, services and nodes; ${instead}`,
  )
}

/** For a TokenReview. Tokens of joining machines are for this API only (audience.WrapAudienceAgnostic of Kubernetes). */
export async function tokenHolder(
  token: string,
  audiences: readonly string[],
  needs: RequestNeeds,
): Promise<TokenHolder> {
  const account = await needs.tokens?.identify(token, audiences, needs.clock.wallMs())
  if (account !== undefined) return account
  const identity = await identityOfToken(token, tokenNeeds(needs))
  const own = [tokenIssuer]
  if (audiences.length === 0 || audiences.includes(tokenIssuer)) return { identity, audiences: own }
  throw otherAudience(own, audiences)
}

function tokenNeeds({ store, clock, tokens }: RequestNeeds) {
  const nowMs = clock.wallMs()
  return {
    nowMs,
    ...(tokens && {
      identifyAccount: async (token: string) => (await tokens.identify(token, [], nowMs))?.identity,
    }),
    findToken: async (id: string) => {
      const secret = await store.get('secrets', { namespace: tokenNamespace, name: tokenSecretName(id) })
      return secret && decodeToken(secret)
    },
  }
}

export function withoutToken(request: ApiRequest): ApiRequest {
  return request.offered === undefined ? request : { ...request, offered: offeredToken(request.offered).offered }
}
