/** Which requests are passed on to the controller that leads, and whose those are that another one has passed on. */

import type { ApiRequest, RequestNeeds } from './api-request.ts'
import type { RequestSender } from './audit/audit-event.ts'
import { sessionCookie } from './dashboard/dashboard-credentials.ts'
import { isPublicPath } from './dashboard/dashboard-requests.ts'
import { forwardRequest } from './forwarding/forward-request.ts'
import { remoteSender } from './forwarding/remote-identity.ts'
import { leaderAddress, noLeader, type Replica } from './forwarding/replica.ts'
import type { ApiRoute } from './routes.ts'
import type { ApiResponse } from './wire/answers.ts'

/** A request that another controller passed on is that of its sender: the connection's certificate is the controller's. */
export async function asSentToController(
  received: ApiRequest,
  replica: Replica,
  sender: RequestSender,
): Promise<ApiRequest> {
  const remote = await remoteSender(received, replica)
  if (remote === undefined) return received
  Object.assign(sender, remote)
  return { ...received, certificate: undefined, address: remote.address }
}

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
