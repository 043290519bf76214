/** One request from its credentials to its answer: the filters that it passes, in order. */
import { isApiError } from '../../../api/api-error.ts'
import type { RequestSender } from '../audit/audit-event.ts'
import { errorAnswer } from '../wire/status-errors.ts'
import type { Answered, ApiRequest, RequestNeeds } from './api-request.ts'
import { failed, type RequestFilter, type RequestState, receivedState } from './filter-state.ts'
import {
  acceptedConnection,
  authentication,
  authorization,
  dashboardUsers,
  deadline,
  flowControlled,
  forwardedSender,
  impersonation,
  latestKinds,
  leadersRequests,
  leadersSessions,
  paidIfRefused,
  publicPage,
  strangersShare,
} from './filters.ts'
import { encodedAnswer, routed } from './routed-answer.ts'

/**
 * As kube-apiserver's handler chain (DefaultBuildHandlerChain of staging/src/k8s.io/apiserver/pkg/server/config.go), with the parts
 * that several controllers and the dashboard need. Each filter may end the request.
 */
const filters: readonly RequestFilter[] = [
  forwardedSender,
  strangersShare,
  leadersSessions,
  publicPage,
  paidIfRefused(authentication),
  paidIfRefused(impersonation),
  paidIfRefused(dashboardUsers),
  acceptedConnection,
  flowControlled,
  latestKinds,
  leadersRequests,
  deadline,
  authorization,
  routed,
]

/** Never rejects: what went wrong is the answer. `sender`: with the identity of a sender that needs no credentials. */
export async function answerRequest(
  received: ApiRequest,
  needs: RequestNeeds,
  sender: RequestSender = {},
): Promise<Answered> {
  let state = receivedState(received, needs, sender)
  for (const filter of filters) {
    state = await passed(filter, state, needs)
    if (state.outcome !== undefined) break
  }
  return answeredOf(state, needs)
}

async function passed(filter: RequestFilter, state: RequestState, needs: RequestNeeds): Promise<RequestState> {
  try {
    return await filter(state, needs)
  } catch (error) {
    return failed(state, error)
  }
}

function answeredOf(state: RequestState, needs: RequestNeeds): Answered {
  const { request, route, user, session, admission, outcome } = state
  const annotations = state.annotations.all()
  const sender = Object.keys(annotations).length === 0 ? state.sender : { ...state.sender, annotations }
  const asked = { route, user, sender, admission }
  if (outcome?.kind === 'answered') {
    const { answer, held, isForwarded } = outcome
    const sessionEnded = session && !isForwarded ? { sessionEnded: session.ended } : {}
    return { ...asked, answer, held, ...sessionEnded, ...(isForwarded && { isForwarded }) }
  }
  const error = outcome?.error ?? new Error('No filter answered the request')
  if (!isApiError(error)) logFailure(request, user, error, needs)
  return { ...asked, answer: encodedAnswer(errorAnswer(error), request) }
}

function logFailure({ method, path }: ApiRequest, user: string, error: unknown, { limited, log }: RequestNeeds): void {
  const facts = { method, path, user, error }
  if (limited === undefined) log.error('Request failed', facts)
  else limited.error(user, 'Request failed', facts)
}
