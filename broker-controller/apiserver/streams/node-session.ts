/** A session with a node: a handler requests something of it or of one of its pods, and gets the node's frames. */

import { ownerOf } from '../../../api/access/service-account-names.ts'
import { ApiError, isApiError } from '../../../api/api-error.ts'
import { decode } from '../../../api/decode.ts'
import type { Pod } from '../../../api/pod.ts'
import { type SessionRequest, type SessionStatus, SessionStatusSchema, sessionChannels } from '../../../api/sessions.ts'
import { parseJson } from '../../../api/text/json.ts'
import { within } from '../../../daemon/deadline.ts'
import { type SessionFrames, sessionFrames } from '../../../daemon/sessions/session-frames.ts'
import { podIn } from '../../sessions/pod-in-session.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'

type Wanted = Pick<SessionRequest, 'logs' | 'exec' | 'attach' | 'portForward'>

/** For the node to answer: it may have to ask a slow Docker first, which has 30 s. */
const answerMs = 45_000

/** The same as `openSession`, for something of a pod. */
export function openNodeSession(
  pod: Pod,
  wanted: Wanted,
  request: Pick<ResourceRequest, 'identity' | 'streamOwner' | 'signal'>,
  needs: Pick<ResourceNeeds, 'sessions' | 'clock'>,
): Promise<SessionFrames> {
  return openSession(pod.spec.nodeName ?? '', { ...podIn(pod), ...wanted }, request, needs)
}

/**
 * Resolves when the node has started what is wanted; destroy the frames afterwards. They end when the client goes.
 * Throws the ApiError of the node's refusal; ServiceUnavailable where the node is away or does not answer.
 */
export async function openSession(
  node: string,
  wanted: SessionRequest,
  { identity, streamOwner, signal }: Pick<ResourceRequest, 'identity' | 'streamOwner' | 'signal'>,
  { sessions, clock }: Pick<ResourceNeeds, 'sessions' | 'clock'>,
): Promise<SessionFrames> {
  if (sessions === undefined) throw new ApiError('ServiceUnavailable', 'this controller cannot reach its nodes')
  const frames = sessionFrames(await sessions.open(node, { user: streamOwner ?? ownerOf(identity.user), signal }))
  try {
    await frames.sendText(sessionChannels.request, JSON.stringify(wanted))
    const first = await within(answerMs, `node "${node}" did not answer`, frames.next(), clock)
    const status = first?.channel === sessionChannels.status ? sessionStatusIn(first.payload) : undefined
    if (status === undefined) throw new Error('The node did not answer with a status')
    if (status.state !== 'started') throw new ApiError(status.reason ?? 'InternalError', status.message ?? '')
    return frames
  } catch (cause) {
    frames.destroy()
    if (isApiError(cause)) throw cause
    throw new ApiError('ServiceUnavailable', `the stream of node "${node}" failed`, undefined, { cause })
  }
}

/** undefined: it is not a status. */
export function sessionStatusIn(payload: Buffer): SessionStatus | undefined {
  const decoded = decode(SessionStatusSchema, parseJson(payload.toString()))
  return decoded.ok ? decoded.value : undefined
}
