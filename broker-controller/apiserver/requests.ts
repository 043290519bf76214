/** One request from its credentials to its answer: authentication, routing, authorization, handler. */
import { isApiError } from '../../api/api-error.ts'
import type { Identity } from '../../api/identity.ts'
import type { FlowAdmission } from './access/flow-control.ts'
import { connectionOwner, flowOf, strangersFlow, streamOwner, streamWeights } from './access/flow-levels.ts'
import type { AccessCheck } from './access/held-access.ts'
import { addressKey } from './access/peer-address.ts'
import { type Answered, type ApiRequest, firstHeader, type RequestNeeds } from './api-request.ts'
import type { RequestSender } from './audit/audit-event.ts'
import type { Dashboard } from './dashboard/dashboard.ts'
import { type DashboardRequest, isPublicPath, privateAnswer, publicAnswer } from './dashboard/dashboard-requests.ts'
import { componentAnswer } from './figures/component-answers.ts'
import { usageAnswer } from './figures/usage-answers.ts'
import { isAnsweredHere, refuseStale, waitUntilReadable } from './forwarding/replica.ts'
import { changeObject } from './handlers/changing.ts'
import { createObject } from './handlers/creating.ts'
import { deleteCollection, deleteObject } from './handlers/deleting.ts'
import { getObject, listObjects, watchObjects } from './handlers/reading.ts'
import { type ResourceNeeds, type ResourceRequest, subresourceOf } from './handlers/strategy.ts'
import { judgeConnection } from './handlers/webhook-actions.ts'
import { answerOfLeader, asSentToController, isOfLeader } from './passed-requests.ts'
import { attributesOf, permitRequest, rightsCheck } from './request-rights.ts'
import { credentialsCheck, identifyByLatest, tokenHolder, withoutToken } from './request-sender.ts'
import { reviewAnswer } from './reviews/review-answers.ts'
import { type ApiRoute, routeOf } from './routes.ts'
import { sessionAnswer } from './streams/session-answer.ts'
import { systemAnswer } from './system-paths.ts'
import type { ApiResponse } from './wire/answers.ts'
import { answerEncoding } from './wire/content-negotiation.ts'
import { refuseWrongTimeout } from './wire/query.ts'
import { errorAnswer, methodNotAllowed, unknownPath } from './wire/status-errors.ts'

/** Never rejects: what went wrong is the answer. `sender`: with the identity of a sender that needs no credentials. */
export async function answerRequest(
  received: ApiRequest,
  needs: RequestNeeds,
  sender: RequestSender = {},
): Promise<Answered> {
  const route = routeOf(received.method, received.path, received.query, needs.kinds)
  const weight = streamWeight(route)
  const isLong = weight > 0
  let user = ''
  let admission: FlowAdmission | undefined
  let request = received
  /** Holds the access of an answer that lasts. Called once the answer is there: nothing releases it before. */
  const holds = (checks: readonly (AccessCheck | undefined)[]) =>
    isLong ? needs.heldAccess?.hold(checks.filter((check) => check !== undefined)) : undefined
  const flowFor = (identity: Identity) => flowOf(identity, route, request.address)
  try {
    if (needs.replica !== undefined) request = await asSentToController(received, needs.replica, sender)
    if (isOfLeader(route, request, needs)) {
      admission = needs.flowControl?.admit(strangersFlow(request.address), weight)
      const answer = await answerOfLeader(request, isLong, sender, needs)
      if (isSessionAccepted(route, answer)) request.onIdentified?.(`sessions of ${addressKey(request.address)}`)
      return { answer, route, user, sender, admission, isForwarded: true }
    }
    if (route.kind === 'dashboard' && isPublicPath(route.path)) {
      admission = needs.flowControl?.admit(strangersFlow(request.address), 0)
      const answer = encoded(await publicAnswer(ofDashboard(request, admission), dashboardOf(needs)), request)
      return { answer, route, user, sender, admission }
    }
    const { identity, session } = await identifyByLatest(request, route, needs, sender).catch((error: unknown) => {
      // Who is not allowed to impersonate, or to use this path, pays as itself, too.
      const flow = sender.identity === undefined ? strangersFlow(request.address) : flowFor(sender.identity)
      admission = needs.flowControl?.admit(flow, 0)
      throw error
    })
    user = identity.user
    const owner = connectionOwner(sender.identity ?? identity)
    if (owner !== undefined) request.onIdentified?.(owner)
    admission = needs.flowControl?.admit(flowFor(sender.identity ?? identity), weight)
    if (needs.replica !== undefined && !needs.replica.isLeading()) {
      if (!isAnsweredHere(route)) {
        await refuseStale(needs.replica)
        const answer = await answerOfLeader(request, isLong, sender, needs)
        const held = holds([credentialsCheck(request, sender, needs)])
        return { answer, route, user, sender, admission, held, isForwarded: true }
      }
      await waitUntilReadable(route, request.query, needs.replica, needs.log)
    }
    if (!isLong && route.kind !== 'dashboard') refuseWrongTimeout(request.query)
    sender.decision = 'forbid'
    // What is below /ui/ shows each identity what it may see.
    const attributes = route.kind === 'dashboard' ? undefined : attributesOf(route, request)
    if (attributes !== undefined) await permitRequest(attributes, identity, needs.access)
    sender.decision = 'allow'
    const answer = encoded(
      route.kind === 'dashboard'
        ? await privateAnswer(ofDashboard(request, admission), { identity, session }, dashboardOf(needs))
        : await answerTo(route, identity, measured(withoutToken(request), admission), sender, needs),
      request,
    )
    const rights = attributes && rightsCheck(attributes, identity, request, sender, needs.access)
    const held = holds([credentialsCheck(request, sender, needs), rights])
    return { answer, route, user, sender, admission, held, ...(session && { sessionEnded: session.ended }) }
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

/** The leader identifies the session of a request that is passed on, except for paths that need none. */
function isSessionAccepted(route: ApiRoute, answer: ApiResponse): boolean {
  const isPublic = route.kind === 'dashboard' && isPublicPath(route.path)
  return !isPublic && 'code' in answer && answer.code < 400
}

/** As kube-apiserver's longRunningRequestCheck: watches, streams and proxies hold no seat, but memory. 0: a short request. */
function streamWeight(route: ApiRoute): number {
  if (route.kind === 'dashboard') return route.path === '/ui/api/stream' ? streamWeights.dashboard : 0
  if (route.kind !== 'resource') return 0
  if (route.verb === 'watch') return streamWeights.watch
  const access = subresourceOf(route.resource, route.subresource)?.access
  return access === 'get' || access === 'connect' || access === 'proxy' ? streamWeights.connection : 0
}

/** The answer in the text that the client accepts. An answer with a content type of its own has no other. */
function encoded(answer: ApiResponse, { headers }: ApiRequest): ApiResponse {
  if (answer.kind !== 'object' || answer.contentType !== undefined) return answer
  const encoding = answerEncoding(firstHeader(headers['accept']))
  return encoding === 'json' ? answer : { ...answer, encoding }
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

function ofDashboard(request: ApiRequest, admission: FlowAdmission | undefined): DashboardRequest {
  const { method, path, query, headers, offered, address, signal } = request
  return { method, path, query, headers, offered, address, signal, readBody: measured(request, admission).readBody }
}

function dashboardOf({ dashboard }: RequestNeeds): Dashboard {
  if (dashboard === undefined) throw unknownPath()
  return dashboard
}

function answerTo(
  route: ApiRoute,
  identity: Identity,
  request: ApiRequest,
  sender: RequestSender,
  needs: RequestNeeds,
): Promise<ApiResponse> {
  const { query, headers, readBody, offered, raw, signal } = request
  const accept = firstHeader(headers['accept'])
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
          ifNoneMatch: firstHeader(headers['if-none-match']),
          host: firstHeader(headers['host'] ?? headers[':authority']),
        },
        needs,
      )
    case 'session':
      return sessionAnswer({ id: route.id, identity, offered }, needs)
    case 'usage':
      return usageAnswer({ route, query, accept, signal }, needs)
    case 'component':
      return componentAnswer({ route, query, accept }, needs)
    case 'review': {
      const contentType = firstHeader(headers['content-type'])
      const identityOfToken = (token: string, audiences: readonly string[]) => tokenHolder(token, audiences, needs)
      return reviewAnswer({ route, identity, query, accept, contentType, readBody }, { ...needs, identityOfToken })
    }
    case 'resource': {
      const contentType = firstHeader(headers['content-type'])
      const userAgent = firstHeader(headers['user-agent'])
      const annotate = (key: string, value: string) => {
        sender.annotations = { ...sender.annotations, [key]: value }
      }
      const sent = { accept, contentType, userAgent, readBody, offered, raw, annotate, signal }
      const owner = streamOwner(sender.identity ?? identity, identity)
      return resourceAnswer({ route, identity, streamOwner: owner, query, ...sent }, needs)
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
