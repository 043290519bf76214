/** kubectl port-forward: one connection to a port of a pod. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import type { SessionFrames } from '../../daemon/sessions/session-frames.ts'
import type { PodSession } from './pod-sessions.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { OpenSession } from './session-types.ts'

const connectMs = 10_000

/**
 * Resolves when the pod has closed the connection. To the address of its network, or that of the machine where the pod is on
 * its network. Throws a SessionRefusal where the pod does not run, or the port cannot be connected.
 */
export async function forwardPort(port: number, session: PodSession): Promise<Omit<SessionStatus, 'state'>> {
  const { pod, containersOf } = session
  const own = await containersOf(pod.metadata.uid ?? '')
  const sandbox = own.find(({ identity, state }) => identity.kind === 'sandbox' && state === 'running')
  const host = pod.spec.hostNetwork === true ? '127.0.0.1' : sandbox?.ip
  if (sandbox === undefined || host === undefined) {
    throw new SessionRefusal('NotFound', `pod "${pod.metadata.namespace}/${pod.metadata.name}" is not running`)
  }
  await forwardTo({ host, port, what: 'the pod' }, session)
  return {}
}

export type ForwardTarget = {
  readonly host: string
  readonly port: number
  /** For messages: `the pod`. */
  readonly what: string
}

/** Resolves when the other end has closed the connection. Throws a SessionRefusal where it cannot be made. */
export async function forwardTo({ host, port, what }: ForwardTarget, session: OpenSession): Promise<void> {
  if (port < 1 || port > 65_535) throw new SessionRefusal('BadRequest', `${port} is no port`)
  const { frames, signal, started } = session
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  const stop = () => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    await connected(socket, `port ${port} of ${what}`)
    await started()
    const input = passInput(socket, frames)
    for await (const piece of socket.iterator({ destroyOnReturn: false })) {
      await frames.send(sessionChannels.output, piece)
    }
    socket.destroy()
    if (signal.aborted) await input
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

async function connected(socket: Socket, where: string): Promise<void> {
  socket.setTimeout(connectMs, () => socket.destroy(new Error('it does not answer')))
  try {
    await once(socket, 'connect')
  } catch (cause) {
    const because = cause instanceof Error ? cause.message : String(cause)
    throw new SessionRefusal('InternalError', `failed to connect to ${where}: ${because}`)
  }
  socket.setTimeout(0)
  socket.on('error', () => undefined) // the reader sees it
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
