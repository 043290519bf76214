/** What the filters of `requests.ts` have found out about a request, and how the last of them ended it. */
import { anonymous, type Identity } from '../../../api/identity.ts'
import type { RequestSender } from '../audit/audit-event.ts'
import type { HeldAnswer } from '../authorization/held-access.ts'
import { dashboardStreamPath, isCardImagePath } from '../browser-sessions/dashboard-paths.ts'
import type { DashboardSession } from '../browser-sessions/dashboard-sessions.ts'
import type { FlowAdmission } from '../flow-control/flow-control.ts'
import { streamWeights } from '../flow-control/flow-levels.ts'
import { subresourceOf } from '../handlers/strategy.ts'
import { type ApiRoute, routeOf } from '../routes.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { ApiRequest, RequestNeeds } from './api-request.ts'
import type { RequestAttributes } from './attributes.ts'

export type RequestState = {
  readonly request: ApiRequest
  readonly route: ApiRoute
  /** How much an answer that lasts holds in memory; 0: a short request. */
  readonly streamWeight: number
  /** For the audit log. */
  readonly sender: RequestSender
  /** Who the request acts as: `anonymous` until that is known. */
  readonly identity: Identity
  /** For counters and the log: empty until the identity is known. */
  readonly user: string
  readonly session?: DashboardSession | undefined
  readonly admission?: FlowAdmission | undefined
  /** What was authorized. */
  readonly attributes?: RequestAttributes
  /** Collects what admission adds to the audit event, as audit.AddAuditAnnotation of Kubernetes. */
  readonly annotations: AuditAnnotations
  /** undefined: the next filter has its turn. */
  readonly outcome?: RequestOutcome
}

export type RequestOutcome =
  | {
      readonly kind: 'answered'
      readonly answer: ApiResponse
      readonly held?: HeldAnswer | undefined
      readonly isForwarded?: true
    }
  | { readonly kind: 'failed'; readonly error: unknown }

/**
 * One step on the way of a request. It returns the state with what it found out, and ends the request by an outcome. It throws the
 * error of the answer, or returns it as an outcome beside what it found out.
 */
export type RequestFilter = (state: RequestState, needs: RequestNeeds) => RequestState | Promise<RequestState>

export interface AuditAnnotations {
  annotate(key: string, value: string): void
  all(): Readonly<Record<string, string>>
}

/** As kube-apiserver's RequestInfo filter. `sender`: with the identity of a sender that needs no credentials. */
export function receivedState(
  request: ApiRequest,
  { kinds, apiServices }: Pick<RequestNeeds, 'kinds' | 'apiServices'>,
  sender: RequestSender,
): RequestState {
  const route = routeOf(request.method, request.path, request.query, kinds, apiServices)
  const streamWeight = streamWeightOf(route)
  return { request, route, streamWeight, sender, identity: anonymous, user: '', annotations: auditAnnotations() }
}

export function failed(state: RequestState, error: unknown): RequestState {
  return { ...state, outcome: { kind: 'failed', error } }
}

/** As kube-apiserver's longRunningRequestCheck: watches, streams and proxies hold no seat, but memory. */
function streamWeightOf(route: ApiRoute): number {
  if (route.kind === 'dashboard') {
    if (isCardImagePath(route.path)) return streamWeights.connection
    return route.path === dashboardStreamPath ? streamWeights.dashboard : 0
  }
  // Its server may take long, and must not hold the seats of others meanwhile.
  if (route.kind === 'aggregated') return streamWeights.connection
  if (route.kind !== 'resource') return 0
  if (route.verb === 'watch') return streamWeights.watch
  const access = subresourceOf(route.resource, route.subresource)?.access
  return access === 'get' || access === 'connect' || access === 'proxy' ? streamWeights.connection : 0
}

function auditAnnotations(): AuditAnnotations {
  let annotations: Readonly<Record<string, string>> = {}
  return {
    annotate(key, value) {
      annotations = { ...annotations, [key]: value }
    },
    all: () => annotations,
  }
}
