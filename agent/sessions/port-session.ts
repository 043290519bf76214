/** kubectl port-forward, and the proxy of pods: one connection to a port of a pod. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type SessionRequest, type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { codeOf, messageOf } from '../../daemon/errors.ts'
import { gatheredPieces } from '../../daemon/sessions/gathered-pieces.ts'
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { OpenSession, PodSession } from './session-types.ts'

const connectMs = 10_000

type PortRequest = NonNullable<SessionRequest['portForward']>

/**
 * Resolves when the pod has closed the connection, or has reset it: kubectl ends all its connections at the message of an error. To
 * the address of its network, or that of the machine where the pod is on its network; where nothing listens there, to its loopback
 * address. Throws a SessionRefusal where the pod does not run, or the
 * port cannot be connected.
 */
export async function forwardPort(request: PortRequest, session: PodSession): Promise<Omit<SessionStatus, 'state'>> {
  try {
    return await connectPod(request, session, { noLoopback: false })
  } catch (error) {
    const isRefusal = error instanceof SessionRefusal
    if (!isReset(isRefusal ? error.cause : error)) throw error
    // The connection was made, and reset before this process was notified.
    if (isRefusal) await session.started()
    return {}
  }
}

function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(codeOf(error))
}

/**
 * The same, but only by the address at which others reach the pod. A reset is an error: an answer over HTTP may end with its
 * connection, and would look whole.
 */
export function forwardProxy(request: PortRequest, session: PodSession): Promise<Omit<SessionStatus, 'state'>> {
  return connectPod(request, session, { noLoopback: true })
}

async function connectPod(
  { port }: PortRequest,
  session: PodSession,
  { noLoopback }: { readonly noLoopback: boolean },
): Promise<Omit<SessionStatus, 'state'>> {
  const { pod, containersOf, loopback, signal, node } = session
  const own = await containersOf(pod.metadata.uid ?? '')
  const sandbox = own.find(({ identity, state }) => identity.kind === 'sandbox' && state === 'running')
  const isOnHost = pod.spec.hostNetwork === true
  // On the loopback address of the machine are services that trust all who reach them.
  const host = isOnHost ? (noLoopback ? node.address() : '127.0.0.1') : sandbox?.ip
  if (sandbox === undefined || host === undefined) {
    throw new SessionRefusal('NotFound', `pod "${pod.metadata.namespace}/${pod.metadata.name}" is not running`)
  }
  const open = () =>
    connectTo(host, port, signal).catch((refused: Error) => {
      // The kubelet connects to it only; what listens on all addresses is reached without a process.
      if (isOnHost || noLoopback || codeOf(refused) !== 'ECONNREFUSED') throw refused
      return loopback.connect(sandbox.id, port, signal).catch(() => {
        throw refused
      })
    })
  await forwardTo({ open, port, what: 'the pod' }, session)
  return {}
}

export type ForwardTarget = {
  /** Opens the connection. */
  readonly open: () => Promise<Socket>
  readonly port: number
  /** For messages: `the pod`. */
  readonly what: string
}

/** Resolves when the other end has closed the connection. Throws a SessionRefusal where it cannot be made. */
export async function forwardTo({ open, port, what }: ForwardTarget, session: OpenSession): Promise<void> {
  if (port < 1 || port > 65_535) throw new SessionRefusal('BadRequest', `invalid port ${port}`)
  const { frames, signal, started } = session
  const socket = await open().catch((cause) => {
    throw new SessionRefusal('InternalError', `failed to connect to port ${port} of ${what}: ${messageOf(cause)}`, {
      cause,
    })
  })
  socket.on('error', () => undefined) // the reader sees it
  const stop = () => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    await started()
    const input = passInput(socket, frames)
    for await (const piece of gatheredPieces(socket)) {
      await frames.send(sessionChannels.output, piece)
    }
    socket.destroy()
    if (signal.aborted) await input
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

/** Rejects with the error of the system where nothing listens. */
export async function connectTo(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  socket.setTimeout(connectMs, () => socket.destroy(new Error('it does not answer')))
  try {
    await once(socket, 'connect', { signal })
  } catch (error) {
    socket.on('error', () => undefined).destroy()
    throw error
  }
  socket.setTimeout(0)
  return socket
}

/** Never rejects: where the connection is closed, its other direction shows why. */
async function passInput(socket: Socket, frames: SessionFrames): Promise<void> {
  try {
    for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
      const { channel, payload } = frame
      if (channel === sessionChannels.end) socket.end()
      if (channel !== sessionChannels.input || socket.destroyed) continue
      if (!socket.write(payload)) await once(socket, 'drain')
    }
  } catch {
    // The connection has ended.
  }
  socket.destroy()
}
