/** The filters of `answer-request.ts`, but the last: who sends a request, who answers it, and whether it may be answered now. */
import { anonymous } from '../../../api/identity.ts'
import { addressKey } from '../authentication/peer-address.ts'
import { impersonated } from '../authorization/impersonation.ts'
import { isPublicPath } from '../browser-sessions/dashboard-paths.ts'
import { refuseMachines } from '../browser-sessions/dashboard-users.ts'
import { connectionOwner, type Flow, flowOf, strangersFlow } from '../flow-control/flow-levels.ts'
import { isAnsweredHere, refuseStale, waitUntilLatest, waitUntilReadable } from '../forwarding/replica.ts'
import type { ApiRoute } from '../routes.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { refuseWrongTimeout } from '../wire/query.ts'
import type { RequestNeeds } from './api-request.ts'
import { attributesOf, permitRequest } from './attributes.ts'
import { failed, type RequestFilter, type RequestState, receivedState } from './filter-state.ts'
import { answerOfLeader, isOfLeader, sentToController } from './leader-routing.ts'
import { answeredWith, dashboardOf, encodedAnswer, ofDashboard } from './routed-answer.ts'
import { authenticated } from './sender.ts'

/** A request that another controller passed on is that of its sender there. */
export const forwardedSender: RequestFilter = async (state, { replica }) =>
  replica === undefined ? state : { ...state, ...(await sentToController(state, replica)) }

/** What is answered before its sender is known takes from the share of its address. */
export const strangersShare: RequestFilter = async (state, needs) => {
  const { request, route, streamWeight } = state
  if (isOfLeader(route, request, needs)) return admitted(state, needs, strangersFlow(request.address), streamWeight)
  return isPublic(route) ? admitted(state, needs, strangersFlow(request.address), streamWeight) : state
}

/** Sessions of the dashboard are in the leader, which identifies their users. */
export const leadersSessions: RequestFilter = async (state, needs) => {
  const { request, route, streamWeight, sender } = state
  if (!isOfLeader(route, request, needs)) return state
  const answer = await answerOfLeader(request, streamWeight > 0, sender, needs)
  if (isSessionAccepted(route, answer)) request.onIdentified?.(`sessions of ${addressKey(request.address)}`)
  return { ...state, outcome: { kind: 'answered', answer, isForwarded: true } }
}

/** The files of the page and its login, which come before any credentials. */
export const publicPage: RequestFilter = async (state, needs) => {
  if (!isPublic(state.route)) return state
  const answer = await dashboardOf(needs).publicAnswer(ofDashboard(state))
  return { ...state, outcome: { kind: 'answered', answer: encodedAnswer(answer, state.request) } }
}

/** The sender by its credentials, unless another controller or a part of this program vouches for it. */
export const authentication: RequestFilter = async (state, needs) => {
  if (state.sender.identity !== undefined) return state
  const { identity, session } = await authenticated(state.request, state.route, needs)
  return { ...state, sender: { ...state.sender, identity }, session }
}

export const impersonation: RequestFilter = async (state, { access }) => {
  const { identity: own = anonymous } = state.sender
  const identity = await impersonated(own, state.request.headers, access)
  return { ...state, identity, ...(identity !== own && { sender: { ...state.sender, impersonated: identity } }) }
}

/** The dashboard is for people: it needs a login, and no machine gets one. */
export const dashboardUsers: RequestFilter = (state) => {
  if (state.route.kind === 'dashboard') refuseMachines(state.identity, state.route.path)
  return state
}

/** A sender that is refused pays for that as well: by its own share as soon as it is known. */
export function paidIfRefused(filter: RequestFilter): RequestFilter {
  return async (state, needs) => {
    try {
      return await filter(state, needs)
    } catch (error) {
      return failed(await admitted(state, needs, flowFor(state), 0), error)
    }
  }
}

/** From here on the connection counts among those of its sender. */
export const acceptedConnection: RequestFilter = (state) => {
  const { request, sender, identity } = state
  const owner = connectionOwner(sender.identity ?? identity)
  if (owner !== undefined) request.onIdentified?.(owner)
  return { ...state, user: identity.user }
}

/** As API priority and fairness; see `flow-control/flow-control.ts`. */
export const flowControlled: RequestFilter = (state, needs) =>
  admitted(state, needs, flowFor(state), state.streamWeight)

/**
 * The kind of a path may have been defined a moment ago, with the controller that leads. Discovery and OpenAPI show it, too. It comes after
 * the limits, for it asks etcd; a watch of such a kind takes its place among streams then.
 */
export const latestKinds: RequestFilter = async (state, needs) => {
  const { request, route, sender } = state
  const { replica, log } = needs
  if (replica === undefined || replica.isLeading() || !isOfKinds(route)) return state
  await waitUntilLatest(replica, log)
  const { route: latest, streamWeight } = receivedState(request, needs, sender)
  const next = { ...state, route: latest, streamWeight }
  return streamWeight === state.streamWeight ? next : await admitted(next, needs, flowFor(next), streamWeight)
}

function isOfKinds(route: ApiRoute): boolean {
  return route.kind === 'path' && /^\/(apis|openapi)(\/|$)/.test(route.path)
}

/** The controller that does not lead answers reads, once it has what they may expect, and passes the others on. */
export const leadersRequests: RequestFilter = async (state, needs) => {
  const { request, route, streamWeight, sender } = state
  const { replica, log } = needs
  if (replica === undefined || replica.isLeading()) return state
  if (isAnsweredHere(route) && !showsExtensions(route, needs)) {
    await waitUntilReadable(route, request.query, replica, log)
    return state
  }
  await refuseStale(replica)
  const answer = await answerOfLeader(request, streamWeight > 0, sender, needs)
  return answeredWith(state, needs, { answer, isForwarded: true })
}

/** What extension servers serve is in the leader, which asks them. */
function showsExtensions(route: ApiRoute, { apiServices }: RequestNeeds): boolean {
  const isMerged = route.kind === 'path' && ['/apis', '/openapi/v2', '/openapi/v3'].includes(route.path)
  return isMerged && apiServices !== undefined && apiServices.remotes().length > 0
}

export const deadline: RequestFilter = (state) => {
  if (state.streamWeight === 0 && state.route.kind !== 'dashboard') refuseWrongTimeout(state.request.query)
  return state
}

export const authorization: RequestFilter = async (state, { access }) => {
  const { request, route, identity, sender } = state
  const allowed = { ...state, sender: { ...sender, decision: 'allow' as const } }
  // What is below /ui/ shows each identity what it may see.
  if (route.kind === 'dashboard') return allowed
  try {
    const attributes = attributesOf(route, request)
    await permitRequest(attributes, identity, access)
    return { ...allowed, attributes }
  } catch (error) {
    return failed({ ...state, sender: { ...sender, decision: 'forbid' } }, error)
  }
}

/** Throws TooManyRequests. A place that the request has already is given back: whether it is the leader's may change on its way. */
async function admitted(
  state: RequestState,
  { flowControl }: Pick<RequestNeeds, 'flowControl'>,
  flow: Flow,
  streamWeight: number,
): Promise<RequestState> {
  state.admission?.release()
  const admission = await flowControl?.admitInTurn(flow, streamWeight, state.request.signal)
  return { ...state, admission }
}

/** The sender pays, not the user that it acts as. */
function flowFor({ request, route, sender }: RequestState): Flow {
  if (sender.identity === undefined) return strangersFlow(request.address)
  return flowOf(sender.identity, route, request.address)
}

function isPublic(route: ApiRoute): boolean {
  return route.kind === 'dashboard' && isPublicPath(route.path)
}

/** The leader identifies the session of a request that is passed on, except for paths that need none. */
function isSessionAccepted(route: ApiRoute, answer: ApiResponse): boolean {
  return !isPublic(route) && 'code' in answer && answer.code < 400
}
