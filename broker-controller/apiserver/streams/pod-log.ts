/** get of pods/log: what a container wrote, and goes on to write. */
import { sessionChannels } from '../../../api/sessions.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { type ApiResponse, textAnswer } from '../wire/answers.ts'
import { containerOfPod, presentPod } from './container-of-pod.ts'
import { logOptions } from './log-options.ts'
import { openNodeSession, sessionStatusIn } from './node-session.ts'

/** Throws the ApiError of a refusal: by the options, or by the node. */
export async function podLog(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const pod = await presentPod(request, needs)
  const options = logOptions(request.query, request.route.name)
  const container = containerOfPod(pod, options.container)
  // As kube-apiserver: a pod without a node has written nothing.
  if (!pod.spec.nodeName) return textAnswer('', 204)
  const frames = await openNodeSession(pod, { logs: { ...options, container } }, request, needs)
  return { kind: 'flow', contentType: 'text/plain', pieces: outputIn(frames) }
}

/** Rejects where the node's stream ends early: the client must not take what it got for all there is. */
async function* outputIn(frames: SessionFrames): AsyncGenerator<Uint8Array> {
  try {
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      const { channel, payload } = frame
      if (channel === sessionChannels.output) yield payload
      if (channel !== sessionChannels.status) continue
      const { state, message } = sessionStatusIn(payload) ?? {}
      if (state !== 'ended') throw new Error('The node ended its log with something else than a status')
      if (message !== undefined) throw new Error(`The node could not read the log to its end: ${message}`)
      return
    }
    throw new Error('The stream of the node ended early')
  } finally {
    frames.destroy()
  }
}
