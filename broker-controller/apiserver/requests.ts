/** One request from its credentials to its answer: authentication, routing, authorization, handler. */
import { ApiError, isApiError } from '../../api/api-error.ts'
import type { Identity } from '../../api/identity.ts'
import { decodeToken, tokenNamespace, tokenSecretName } from '../../api/node/bootstrap-token.ts'
import type { RevocationList } from '../store/revocations.ts'
import type { UsageBoard } from '../usage/usage-board.ts'
import { authenticate, type ClientCertificate, identityOfToken } from './access/authentication.ts'
import { permit } from './access/authorizer.ts'
import { offeredToken, refuseForeignPage } from './access/browser-credentials.ts'
import type { FlowAdmission, FlowControl } from './access/flow-control.ts'
import { flowOf, strangersFlow } from './access/flow-levels.ts'
import { impersonated } from './access/impersonation.ts'
import { narrowerAttributes } from './access/kubelet-paths.ts'
import { otherAudience, type ServiceAccountTokens, tokenIssuer } from './access/tokens/service-account-tokens.ts'
import type { RequestSender } from './audit/audit-event.ts'
import type { AuditLog } from './audit/audit-log.ts'
import type { Dashboard } from './dashboard/dashboard.ts'
import { refuseForgery, sessionCookie } from './dashboard/dashboard-credentials.ts'
import {
  type DashboardRequest,
  isPublicPath,
  privateAnswer,
  publicAnswer,
  refuseMachines,
} from './dashboard/dashboard-requests.ts'
import type { DashboardSession } from './dashboard/dashboard-sessions.ts'
import { usageAnswer } from './figures/usage-answers.ts'
import { forwardRequest } from './forwarding/forward-request.ts'
import { remoteSender } from './forwarding/remote-identity.ts'
import {
  isAnsweredHere,
  leaderAddress,
  noLeader,
  type Replica,
  refuseStale,
  waitUntilReadable,
} from './forwarding/replica.ts'
import type { Attributes } from './handlers/authorizer.ts'
import { changeObject } from './handlers/changing.ts'
import { createObject } from './handlers/creating.ts'
import { deleteCollection, deleteObject } from './handlers/deleting.ts'
import { exactFields } from './handlers/list-options.ts'
import { getObject, listObjects, watchObjects } from './handlers/reading.ts'
import {
  type OfferedProtocols,
  type RawRequest,
  type ResourceNeeds,
  type ResourceRequest,
  subresourceOf,
} from './handlers/strategy.ts'
import { judgeConnection } from './handlers/webhook-actions.ts'
import { reviewAnswer, type TokenHolder } from './reviews/review-answers.ts'
import { reviewKinds } from './reviews/review-kinds.ts'
import { type ApiRoute, routeOf } from './routes.ts'
import { sessionAnswer } from './streams/session-answer.ts'
import { type SystemNeeds, systemAnswer } from './system-paths.ts'
import type { ApiResponse } from './wire/answers.ts'
import { answerEncoding } from './wire/content-negotiation.ts'
import { errorAnswer, methodNotAllowed, unknownPath } from './wire/status-errors.ts'

export type ApiRequest = {
  readonly method: string
  /** As in the request line, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly certificate: ClientCertificate | undefined
  /** The other end of its connection, where there is one. */
  readonly address?: string | undefined
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
  /** Throws RequestEntityTooLarge. */
  readonly readBody: () => Promise<Buffer>
  /** undefined: the request does not ask to leave HTTP. */
  readonly offered?: OfferedProtocols | undefined
  /** undefined: it cannot be passed on. */
  readonly raw?: RawRequest | undefined
  /** Aborts when the client is gone or the server closes. */
  readonly signal: AbortSignal
}

export type RequestNeeds = SystemNeeds &
  ResourceNeeds & {
    readonly usage: UsageBoard
    readonly tokens?: ServiceAccountTokens
    /** undefined: every certificate of the authority is good until its end. */
    readonly revocations?: Pick<RevocationList, 'because'>
    /** For so long after its end a node's certificate still serves to ask for a new one; 0: not at all. */
    readonly lapsedWindowMs?: number
    /** undefined: there is no audit log. */
    readonly audit?: AuditLog
    /** undefined: requests are not limited. */
    readonly flowControl?: FlowControl
    /** undefined: there is no dashboard, and no session of it. */
    readonly dashboard?: Dashboard
    /** undefined: this is the only controller. */
    readonly replica?: Replica
  }

/** With what was asked, for counters. `admission` is to be released when the answer is written. */
export type Answered = {
  readonly answer: ApiResponse
  readonly route: ApiRoute
  readonly user: string
  readonly sender: RequestSender
  readonly admission?: FlowAdmission | undefined
  /** Aborts when the session of the dashboard ends that the request came with: its answer ends with it. */
  readonly sessionEnded?: AbortSignal | undefined
  /** Another controller has answered, which counts the request and writes it down. */
  readonly isForwarded?: boolean
}

/** Never rejects: what went wrong is the answer. */
export async function answerRequest(received: ApiRequest, needs: RequestNeeds): Promise<Answered> {
  const route = routeOf(received.method, received.path, received.query, needs.kinds)
  const isLong = isLongRunning(route)
  const sender: RequestSender = {}
  let user = ''
  let admission: FlowAdmission | undefined
  let request = received
  try {
    if (needs.replica !== undefined) request = await asSentToController(received, needs.replica, sender)
    if (isOfLeader(route, request, needs)) {
      admission = needs.flowControl?.admit(strangersFlow(request.address), isLong)
      const answer = await answerOfLeader(request, isLong, sender, needs)
      return { answer, route, user, sender, admission, isForwarded: true }
    }
    if (route.kind === 'dashboard' && isPublicPath(route.path)) {
      admission = needs.flowControl?.admit(strangersFlow(request.address), false)
      const answer = encoded(await publicAnswer(ofDashboard(request, admission), dashboardOf(needs)), request)
      return { answer, route, user, sender, admission }
    }
    const { identity, session } = await identifyByLatest(request, route, needs, sender).catch((error: unknown) => {
      admission = needs.flowControl?.admit(strangersFlow(request.address), false)
      throw error
    })
    user = identity.user
    admission = needs.flowControl?.admit(flowOf(identity, route, request.address), isLong)
    if (needs.replica !== undefined && !needs.replica.isLeading()) {
      if (!isAnsweredHere(route)) {
        await refuseStale(needs.replica)
        const answer = await answerOfLeader(request, isLong, sender, needs)
        return { answer, route, user, sender, admission, isForwarded: true }
      }
      await waitUntilReadable(route, request.query, needs.replica, needs.log)
    }
    sender.decision = 'forbid'
    // What is below /ui/ shows each identity what it may see.
    if (route.kind !== 'dashboard') await permitRequest(route, request, identity, needs.access)
    sender.decision = 'allow'
    const answer = encoded(
      route.kind === 'dashboard'
        ? await privateAnswer(ofDashboard(request, admission), { identity, session }, dashboardOf(needs))
        : await answerTo(route, identity, measured(withoutToken(request), admission), sender, needs),
      request,
    )
    return { answer, route, user, sender, admission, ...(session && { sessionEnded: session.ended }) }
  } catch (error) {
    if (!isApiError(error)) {
      const { method, path } = request
      const facts = { method, path, user, error }
      if (needs.limited === undefined) needs.log.error('Request failed', facts)
      else needs.limited.error(user, 'Request failed', facts)
    }
    return { answer: encoded(errorAnswer(error), request), route, user, sender, admission }
  }
}

/** A request that another controller passed on is that of its sender: the connection's certificate is the controller's. */
async function asSentToController(received: ApiRequest, replica: Replica, sender: RequestSender): Promise<ApiRequest> {
  const remote = await remoteSender(received, replica)
  if (remote === undefined) return received
  Object.assign(sender, remote)
  return { ...received, certificate: undefined, address: remote.address }
}

/** Sessions of the dashboard are in the leader, which identifies their users. */
function isOfLeader(route: ApiRoute, { headers }: ApiRequest, { replica, dashboard }: RequestNeeds): boolean {
  if (replica === undefined || replica.isLeading() || dashboard === undefined) return false
  const isPublic = route.kind === 'dashboard' && isPublicPath(route.path)
  return isPublic || (headers['authorization'] === undefined && sessionCookie(headers) !== undefined)
}

/** Throws ServiceUnavailable while none leads. */
function answerOfLeader(
  { raw, offered, signal }: ApiRequest,
  isLong: boolean,
  { identity, via }: RequestSender,
  { replica, clock }: RequestNeeds,
): Promise<ApiResponse> {
  // Each of two controllers may take the other one for the leader.
  if (replica === undefined || via !== undefined) throw noLeader()
  const leader = leaderAddress(replica)
  const isUpgrade = offered !== undefined
  return forwardRequest({ raw, identity, isUpgrade, isLong, leader, credentials: replica.credentials(), clock, signal })
}

/** As kube-apiserver's longRunningRequestCheck: watches, streams and proxies hold no seat, but their number is bounded. */
function isLongRunning(route: ApiRoute): boolean {
  if (route.kind === 'dashboard') return route.path === '/ui/api/stream'
  if (route.kind !== 'resource') return false
  const access = subresourceOf(route.resource, route.subresource)?.access
  return route.verb === 'watch' || access === 'get' || access === 'connect' || access === 'proxy'
}

/** The answer in the text that the client accepts. An answer with a content type of its own has no other. */
function encoded(answer: ApiResponse, { headers }: ApiRequest): ApiResponse {
  if (answer.kind !== 'object' || answer.contentType !== undefined) return answer
  const encoding = answerEncoding(oneOf(headers['accept']))
  return encoding === 'json' ? answer : { ...answer, encoding }
}

function withoutToken(request: ApiRequest): ApiRequest {
  return request.offered === undefined ? request : { ...request, offered: offeredToken(request.offered).offered }
}

/** The request, whose body counts against its share once it is read. */
function measured(request: ApiRequest, admission: FlowAdmission | undefined): ApiRequest {
  if (admission === undefined) return request
  const readBody = async () => {
    const body = await request.readBody()
    admission.readBody(body.length)
    return body
  }
  return { ...request, readBody }
}

function isProxied(route: ApiRoute): boolean {
  return route.kind === 'resource' && subresourceOf(route.resource, route.subresource)?.access === 'proxy'
}

/** What the credentials name may have been created a moment ago, with another controller: a standby may not have it yet. */
async function identifyByLatest(
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

type Identified = { readonly identity: Identity; readonly session?: DashboardSession | undefined }

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
  const authorization = oneOf(headers['authorization']) ?? (token && `Bearer ${token}`)
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

function ofDashboard(request: ApiRequest, admission: FlowAdmission | undefined): DashboardRequest {
  const { method, path, query, headers, offered, address, signal } = request
  return { method, path, query, headers, offered, address, signal, readBody: measured(request, admission).readBody }
}

function dashboardOf({ dashboard }: RequestNeeds): Dashboard {
  if (dashboard === undefined) throw unknownPath()
  return dashboard
}

/** For a TokenReview. Tokens of joining machines are for this API only (audience.WrapAudienceAgnostic of Kubernetes). */
async function tokenHolder(token: string, audiences: readonly string[], needs: RequestNeeds): Promise<TokenHolder> {
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

/** Throws Forbidden. The kubelet's paths have a right of their own, which is narrower than the one to the whole node. */
async function permitRequest(
  route: ApiRoute,
  request: ApiRequest,
  identity: Identity,
  access: RequestNeeds['access'],
): Promise<void> {
  const attributes = attributesOf(route, request)
  const rest = route.kind === 'resource' ? route.rest : undefined
  const isUpgrade = request.offered !== undefined
  const narrower = narrowerAttributes(attributes, { method: request.method, rest, isUpgrade })
  if (narrower !== undefined && (await access.decide(identity, narrower)).allowed) return
  await permit(access, identity, attributes)
}

function attributesOf(route: ApiRoute, { method, query }: ApiRequest): Attributes {
  if (route.kind === 'usage') return { ...route, kind: 'resource', fields: new Map<string, string>() }
  if (route.kind === 'review') {
    const { group, name: resource } = reviewKinds[route.name]
    const { verb, namespace } = route
    return { kind: 'resource', verb, group, resource, subresource: '', namespace, name: '', fields: new Map() }
  }
  if (route.kind !== 'resource') return { kind: 'path', verb: method.toLowerCase(), path: route.path }
  const { verb, resource, namespace, subresource } = route
  const fields = route.name === '' ? exactFields(resource, query) : new Map<string, string>()
  const isSearch = verb === 'list' || verb === 'watch' || verb === 'deletecollection'
  const name = isSearch ? (fields.get('metadata.name') ?? '') : route.name
  // What is done with a namespace is done in it: a RoleBinding there may allow it (RequestInfoFactory.NewRequestInfo).
  const isNamespace = resource.id === 'namespaces' && !isSearch
  return {
    kind: 'resource',
    verb,
    group: resource.group,
    resource: resource.name,
    subresource,
    namespace: isNamespace ? name : namespace,
    name,
    fields,
  }
}

function answerTo(
  route: ApiRoute,
  identity: Identity,
  request: ApiRequest,
  sender: RequestSender,
  needs: RequestNeeds,
): Promise<ApiResponse> {
  const { query, headers, readBody, offered, raw, signal } = request
  const accept = oneOf(headers['accept'])
  switch (route.kind) {
    case 'not-allowed':
      throw methodNotAllowed()
    case 'dashboard':
      throw unknownPath()
    case 'path':
      return systemAnswer(
        {
          verb: route.verb,
          path: route.path,
          query,
          accept,
          ifNoneMatch: oneOf(headers['if-none-match']),
          host: oneOf(headers['host'] ?? headers[':authority']),
        },
        needs,
      )
    case 'session':
      return sessionAnswer({ id: route.id, identity, offered }, needs)
    case 'usage':
      return usageAnswer({ route, query, accept, signal }, needs)
    case 'review': {
      const contentType = oneOf(headers['content-type'])
      const identityOfToken = (token: string, audiences: readonly string[]) => tokenHolder(token, audiences, needs)
      return reviewAnswer({ route, identity, query, accept, contentType, readBody }, { ...needs, identityOfToken })
    }
    case 'resource': {
      const contentType = oneOf(headers['content-type'])
      const userAgent = oneOf(headers['user-agent'])
      const annotate = (key: string, value: string) => {
        sender.annotations = { ...sender.annotations, [key]: value }
      }
      const sent = { accept, contentType, userAgent, readBody, offered, raw, annotate, signal }
      return resourceAnswer({ route, identity, query, ...sent }, needs)
    }
  }
}

/** Throws the ApiError of the answer. */
async function resourceAnswer(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { resource, subresource, verb } = request.route
  const row = subresourceOf(resource, subresource)
  if (row?.access === 'get') return row.get(request, needs)
  if (row?.access === 'connect') {
    await judgeConnection(request, row.kind, needs)
    return row.connect(request, needs)
  }
  if (row?.access === 'proxy') {
    await judgeConnection(request, row.kind, needs)
    return row.proxy(request, needs)
  }
  switch (verb) {
    case 'get':
      return getObject(request, needs)
    case 'list':
      return listObjects(request, needs)
    case 'watch':
      return watchObjects(request, needs)
    case 'create':
      return createObject(request, needs)
    case 'update':
    case 'patch':
      return changeObject(request, needs)
    case 'delete':
      return deleteObject(request, needs)
    case 'deletecollection':
      return deleteCollection(request, needs)
    case '':
      throw methodNotAllowed()
  }
}

function oneOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
