/** Executes the request of a session on the containers of this node's pods, or on the node itself. */
import type { Duplex } from 'node:stream'
import { decode } from '../../api/decode.ts'
import type { Pod } from '../../api/pod.ts'
import { type SessionRequest, SessionRequestSchema, type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import type { Clock } from '../../daemon/clock.ts'
import { within } from '../../daemon/deadline.ts'
import { messageOf } from '../../daemon/errors.ts'
import { storyOf } from '../../daemon/log.ts'
import { type SessionFrames, sessionFrames } from '../../daemon/sessions/session-frames.ts'
import { backUpVolume } from './backup-session.ts'
import { attachTo, runExec } from './command-session.ts'
import { sendLog } from './log-session.ts'
import { serveNode } from './node-session.ts'
import { forwardPort, forwardProxy } from './port-session.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { OpenSession, PodSession, PodSessionNeeds } from './session-types.ts'
import { copyVolume } from './volume-session.ts'

const requestMs = 15_000
/**
 * Nothing is read of a session whose input a process does not take, so its end is not seen either. What is sent to a connection
 * that the controller has closed is refused: after the second ping at the latest the session ends.
 */
const pingMs = 15_000
/** Where nothing is read at the moment. */
const heldPingMs = 2_000

/** Serves one session to its end. Rejects only where the stream failed. */
export async function servePodSession(stream: Duplex, signal: AbortSignal, needs: PodSessionNeeds): Promise<void> {
  const frames = sessionFrames(stream)
  const report = (status: SessionStatus) => frames.sendText(sessionChannels.status, JSON.stringify(status))
  let hasStarted = false
  const over = new AbortController()
  try {
    const request = requestIn(await within(requestMs, 'The controller requested nothing', frames.next(), needs.clock))
    const session: OpenSession = {
      frames,
      signal,
      async started() {
        hasStarted = true
        await report({ state: 'started' })
        void pingEach(frames, over.signal, needs.clock)
      },
    }
    const end = await serve(request, session, needs)
    over.abort('ended')
    await report({ state: 'ended', ...end })
  } catch (error) {
    if (signal.aborted || stream.destroyed) return
    const reason = error instanceof SessionRefusal ? error.reason : 'InternalError'
    const message = error instanceof SessionRefusal ? messageOf(error) : storyOf(error)
    await report({ state: hasStarted ? 'ended' : 'refused', reason, message })
  } finally {
    over.abort('ended')
  }
  frames.end()
  // The controller closes when it has read all: what is destroyed before is lost.
  await within(requestMs, 'The controller did not close the stream', closed(stream), needs.clock)
}

async function serve(
  request: SessionRequest,
  open: OpenSession,
  needs: PodSessionNeeds,
): Promise<Omit<SessionStatus, 'state'>> {
  if (request.node !== undefined) return serveNode(request.node, needs.node, open)
  if (request.volume !== undefined) return copyVolume(request.volume, needs.copies, open)
  if (request.backup !== undefined) return backUpVolume(request.backup, needs.backups, open)
  const session: PodSession = { ...needs, ...open, pod: podOf(request, needs.pods()) }
  if (request.logs !== undefined) return sendLog(request.logs, session)
  if (request.exec !== undefined) return runExec(request.exec, session)
  if (request.attach !== undefined) return attachTo(request.attach, session)
  if (request.portForward !== undefined) return forwardPort(request.portForward, session)
  if (request.proxy !== undefined) return forwardProxy(request.proxy, session)
  throw new SessionRefusal(
    'BadRequest',
    'this node cannot do what was requested: its agent is older than the controller',
  )
}

/** Never rejects. While a ping waits, because the controller reads nothing, there is no other. */
async function pingEach(frames: SessionFrames, over: AbortSignal, clock: Clock): Promise<void> {
  try {
    for (let quietMs = 0; ; ) {
      await clock.sleep(heldPingMs, over)
      if (over.aborted) return
      quietMs += heldPingMs
      if (quietMs + heldPingMs <= pingMs && !frames.isHeld) continue
      quietMs = 0
      await frames.send(sessionChannels.ping, Buffer.alloc(0))
    }
  } catch {
    // The stream is closed, which its signal shows.
  }
}

function requestIn(frame: Awaited<ReturnType<SessionFrames['next']>>): SessionRequest {
  if (frame?.channel !== sessionChannels.request)
    throw new SessionRefusal('BadRequest', 'a session begins with its request')
  const decoded = decode(SessionRequestSchema, parseJson(frame.payload.toString()))
  if (!decoded.ok) throw new SessionRefusal('BadRequest', 'the request of the session cannot be read')
  return decoded.value
}

/** Only a pod that is to run here, and that one itself: another of the same name may have come since. */
function podOf({ namespace, pod, uid }: SessionRequest, pods: readonly Pod[]): Pod {
  const found = pods.find(({ metadata }) => metadata.namespace === namespace && metadata.name === pod)
  if (found !== undefined && uid !== undefined && found.metadata.uid === uid) return found
  throw new SessionRefusal('NotFound', `pod "${namespace}/${pod}" does not exist on this node`)
}

function closed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve()
    stream.once('close', () => resolve())
  })
}
