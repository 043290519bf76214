/** The last filter of `answer-request.ts`: the handler of the route, and what an answer that lasts needs until its end. */

import type { AccessCheck } from '../authorization/held-access.ts'
import type { DashboardRequest, ServedDashboard } from '../browser-sessions/served-dashboard.ts'
import { componentAnswer } from '../figures/component-answers.ts'
import { usageAnswer } from '../figures/usage-answers.ts'
import { streamOwner } from '../flow-control/flow-levels.ts'
import { changeObject } from '../handlers/changing.ts'
import { inVersionOf } from '../handlers/conversion/conversion-gate.ts'
import { createObject } from '../handlers/creating.ts'
import { deleteCollection, deleteObject } from '../handlers/deleting.ts'
import { getObject, listObjects, watchObjects } from '../handlers/reading.ts'
import { type ResourceNeeds, type ResourceRequest, subresourceOf } from '../handlers/strategy.ts'
import { judgeConnection } from '../handlers/webhook-actions.ts'
import { releaseAnswer } from '../releases/release-answer.ts'
import { reviewAnswer } from '../reviews/review-answers.ts'
import { sessionAnswer } from '../streams/session-answer.ts'
import { systemAnswer } from '../system-paths.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { answerEncoding } from '../wire/content-negotiation.ts'
import { methodNotAllowed, unknownPath } from '../wire/status-errors.ts'
import { type ApiRequest, firstHeader, type RequestNeeds } from './api-request.ts'
import { rightsCheck } from './attributes.ts'
import type { RequestFilter, RequestState } from './filter-state.ts'
import { credentialsCheck, tokenHolder, withoutToken } from './sender.ts'

export const routed: RequestFilter = async (state, needs) => {
  const { identity, session, route } = state
  const answer =
    route.kind === 'dashboard'
      ? await dashboardOf(needs).privateAnswer(ofDashboard(state), { identity, session })
      : await routedAnswer(state, needs)
  return answeredWith(state, needs, { answer: encodedAnswer(answer, state.request) })
}

/** Holds the access of an answer that lasts. Called once the answer is there: nothing releases it before. */
export function answeredWith(
  state: RequestState,
  needs: RequestNeeds,
  answered: { readonly answer: ApiResponse; readonly isForwarded?: true },
): RequestState {
  const held = state.streamWeight > 0 ? needs.heldAccess?.hold(accessChecks(state, needs)) : undefined
  return { ...state, outcome: { kind: 'answered', ...answered, held } }
}

function accessChecks({ request, sender, identity, attributes }: RequestState, needs: RequestNeeds): AccessCheck[] {
  const rights = attributes && rightsCheck(attributes, identity, request, sender, needs.access)
  return [credentialsCheck(request, sender, needs), rights].filter((check) => check !== undefined)
}

/** The answer in the text that the client accepts. An answer with a content type of its own has no other. */
export function encodedAnswer(answer: ApiResponse, { headers }: ApiRequest): ApiResponse {
  if (answer.kind !== 'object' || answer.contentType !== undefined) return answer
  const encoding = answerEncoding(firstHeader(headers['accept']))
  return encoding === 'json' ? answer : { ...answer, encoding }
}

export function ofDashboard(state: RequestState): DashboardRequest {
  const { method, path, query, headers, offered, address, signal, readBody } = measured(state)
  return { method, path, query, headers, offered, address, signal, readBody }
}

export function dashboardOf({ dashboard }: RequestNeeds): ServedDashboard {
  if (dashboard === undefined) throw unknownPath()
  return dashboard
}

/** The request, whose body counts against its share once it is read. */
function measured({ request, admission }: RequestState): ApiRequest {
  if (admission === undefined) return request
  const readBody = async () => {
    const body = await request.readBody()
    admission.readBody(body.length)
    return body
  }
  return { ...request, readBody }
}

function routedAnswer(state: RequestState, needs: RequestNeeds): Promise<ApiResponse> {
  const { route, identity, sender, annotations } = state
  const { query, headers, readBody, offered, raw, signal } = withoutToken(measured(state))
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
          acceptEncoding: firstHeader(headers['accept-encoding']),
          ifNoneMatch: firstHeader(headers['if-none-match']),
          host: firstHeader(headers['host'] ?? headers[':authority']),
        },
        needs,
      )
    case 'aggregated': {
      if (needs.extensionProxy === undefined) throw unknownPath()
      const owner = streamOwner(sender.identity ?? identity, identity)
      return needs.extensionProxy.answer({ route, identity, streamOwner: owner, offered, raw, signal })
    }
    case 'session':
      return sessionAnswer({ id: route.id, identity, offered }, needs)
    case 'release':
      return releaseAnswer({ wanted: route.wanted, identity, range: firstHeader(headers['range']) }, needs)
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
      const { annotate } = annotations
      const sent = { accept, contentType, userAgent, readBody, offered, raw, annotate, signal }
      const owner = streamOwner(sender.identity ?? identity, identity)
      const answering = resourceAnswer({ route, identity, streamOwner: owner, query, ...sent }, needs)
      const warning = route.resource.defined?.warning
      return warning === undefined ? answering : answering.then((answer) => withWarning(answer, warning))
    }
  }
}

function withWarning(answer: ApiResponse, warning: string): ApiResponse {
  return answer.kind === 'object' ? { ...answer, warnings: [warning, ...(answer.warnings ?? [])] } : answer
}

/** Throws the ApiError of the answer. */
async function resourceAnswer(request: ResourceRequest, all: ResourceNeeds): Promise<ApiResponse> {
  const { resource, subresource, verb } = request.route
  const needs = inVersionOf(resource, all, request.identity)
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
