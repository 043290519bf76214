/** Who sends a request: its credentials, as an identity. */
import { ApiError, isApiError } from '../../api/api-error.ts'
import type { Identity } from '../../api/identity.ts'
import { decodeToken, tokenNamespace, tokenSecretName } from '../../api/node/bootstrap-token.ts'
import { authenticate, identityOfToken } from './access/authentication.ts'
import { offeredToken, refuseForeignPage } from './access/browser-credentials.ts'
import { impersonated } from './access/impersonation.ts'
import { otherAudience, tokenIssuer } from './access/tokens/service-account-tokens.ts'
import { type ApiRequest, firstHeader, type RequestNeeds } from './api-request.ts'
import type { RequestSender } from './audit/audit-event.ts'
import { refuseForgery, sessionCookie } from './dashboard/dashboard-credentials.ts'
import { refuseMachines } from './dashboard/dashboard-requests.ts'
import type { DashboardSession } from './dashboard/dashboard-sessions.ts'
import { subresourceOf } from './handlers/strategy.ts'
import type { TokenHolder } from './reviews/review-answers.ts'
import type { ApiRoute } from './routes.ts'

export type Identified = { readonly identity: Identity; readonly session?: DashboardSession | undefined }

/** What the credentials name may have been created a moment ago, with another controller: a standby may not have it yet. */
export async function identifyByLatest(
  request: ApiRequest,
  route: ApiRoute,
  needs: RequestNeeds,
  sender: RequestSender,
): Promise<Identified> {
  const { replica } = needs
  try {
    return await identify(request, route, needs, sender)
  } catch (error) {
    // A refusal without a reason is one of a signature, or of what is no token.
    const isOfObject = isApiError(error, 'Unauthorized') && error.message !== 'Unauthorized'
    if (!isOfObject || replica === undefined || replica.isLeading()) throw error
    if (!(await replica.freshness.latest().catch(() => false))) throw error
    return identify(request, route, needs, sender)
  }
}

async function identify(
  request: ApiRequest,
  route: ApiRoute,
  needs: RequestNeeds,
  sender: RequestSender,
): Promise<Identified> {
  const identified = await identifySender(request, route, needs, sender)
  if (route.kind === 'dashboard') refuseMachines(identified.identity, route.path)
  return identified
}

async function identifySender(
  request: ApiRequest,
  route: ApiRoute,
  needs: RequestNeeds,
  sender: RequestSender,
): Promise<Identified> {
  const { method, certificate, headers, offered } = request
  const { access, revocations, lapsedWindowMs, origin, checkpoints, dashboard } = needs
  if (sender.identity !== undefined) {
    return { identity: await impersonatedBy(sender.identity, headers, access, sender) }
  }
  const cookie = dashboard && headers['authorization'] === undefined ? sessionCookie(headers) : undefined
  if (dashboard !== undefined && cookie !== undefined) {
    refuseForgery({ method, headers, offered })
    const { identity, session } = await dashboard.identify(cookie)
    if (session !== undefined && isProxied(route)) throw pageOfOthers()
    sender.identity = identity
    return { identity: await impersonatedBy(identity, headers, access, sender), session }
  }
  const token = offered && offeredToken(offered).token
  const authorization = firstHeader(headers['authorization']) ?? (token && `Bearer ${token}`)
  if (certificate !== undefined) refuseForeignPage({ headers, offered, hasToken: authorization !== undefined })
  const identity = await authenticate(
    { certificate, authorization },
    {
      ...tokenNeeds(needs),
      ...(revocations && { revoked: revocations.because }),
      ...(lapsedWindowMs !== undefined && { lapsedWindowMs }),
      ...(origin && checkpoints?.isOpen() && { acceptingStore: origin.id }),
    },
  )
  sender.identity = identity
  return { identity: await impersonatedBy(identity, headers, access, sender) }
}

function isProxied(route: ApiRoute): boolean {
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

async function impersonatedBy(
  identity: Identity,
  headers: ApiRequest['headers'],
  access: RequestNeeds['access'],
  sender: RequestSender,
): Promise<Identity> {
  const acting = await impersonated(identity, headers, access)
  if (acting !== identity) sender.impersonated = acting
  return acting
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
