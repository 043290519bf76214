/** Which requests are passed on to the controller that leads, and whose those are that another one has passed on. */

import type { RequestSender } from '../audit/audit-event.ts'
import { sessionCookie } from '../browser-sessions/dashboard-credentials.ts'
import { isPublicPath } from '../browser-sessions/dashboard-paths.ts'
import { forwardRequest } from '../forwarding/forward-request.ts'
import { remoteSender } from '../forwarding/remote-identity.ts'
import { leaderAddress, noLeader, type Replica } from '../forwarding/replica.ts'
import type { ApiRoute } from '../routes.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { ApiRequest, RequestNeeds } from './api-request.ts'

/** A request that another controller passed on is that of its sender: the connection's certificate is the controller's. */
export async function sentToController(
  { request, sender }: Sent,
  replica: Pick<Replica, 'isController'>,
): Promise<Sent> {
  const remote = await remoteSender(request, replica)
  if (remote === undefined) return { request, sender }
  const { address } = remote
  return { request: { ...request, certificate: undefined, address }, sender: { ...sender, ...remote } }
}

type Sent = { readonly request: ApiRequest; readonly sender: RequestSender }

/** Sessions of the dashboard are in the leader, which identifies their users. */
export function isOfLeader(route: ApiRoute, { headers }: ApiRequest, { replica, dashboard }: RequestNeeds): boolean {
  if (replica === undefined || replica.isLeading() || dashboard === undefined) return false
  const isPublic = route.kind === 'dashboard' && isPublicPath(route.path)
  return isPublic || (headers['authorization'] === undefined && sessionCookie(headers) !== undefined)
}

/** Throws ServiceUnavailable while none leads. */
export function answerOfLeader(
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
