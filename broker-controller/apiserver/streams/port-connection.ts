/** One connection to a port of a pod: a session of its own with the node. */
import type { Pod } from '../../../api/pod.ts'
import { sessionChannels as channels } from '../../../api/sessions.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { SessionFrame } from '../../../daemon/sessions/frame-decoder.ts'
import type { SessionFrames } from '../../../daemon/sessions/session-frames.ts'
import type { ResourceNeeds, ResourceRequest } from '../handlers/strategy.ts'
import { openNodeSession, sessionStatusIn } from './node-session.ts'

/** The client's end of the connection. */
export type PortStreams = {
  /** Aborts when the client ends the connection, or is gone. */
  readonly signal: AbortSignal
  /** The next data; undefined: the client has closed its end. */
  next(): Promise<Uint8Array | undefined>
  /** Rejects where the client is gone. The frame is the client's from then on: its bytes may be changed. */
  send(frame: SessionFrame): Promise<void>
  /** Ends both directions. */
  end(): Promise<void>
  /** Ends it with the message of an error; undefined: the client has ended it by itself. */
  fail(message: string | undefined): Promise<void>
}

/** Never rejects: what went wrong is sent to the client, and kubectl prints it. */
export async function forwardPodPort(
  client: PortStreams,
  port: number,
  pod: Pod,
  request: Pick<ResourceRequest, 'identity' | 'signal'>,
  needs: Pick<ResourceNeeds, 'sessions' | 'clock'>,
): Promise<void> {
  try {
    if (!isPort(port)) throw new Error('the port is not valid')
    const frames = await openNodeSession(pod, { portForward: { port } }, request, needs)
    // The program on the client's side has gone: nothing would be read from the node any more.
    client.signal.addEventListener('abort', frames.destroy, { once: true })
    if (client.signal.aborted) frames.destroy()
    const toNode = passToNode(client, frames)
    try {
      await passToClient(frames, client)
    } finally {
      frames.destroy()
    }
    await client.end()
    await toNode
  } catch (cause) {
    const message = `error forwarding port ${port} to pod ${pod.metadata.uid}: ${messageOf(cause)}`
    await client.fail(client.signal.aborted ? undefined : message).catch(() => undefined)
  }
}

/** Whether it is the number of a port. */
export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}

/** Never rejects: where the node's end is closed, its other direction shows why. */
async function passToNode(client: PortStreams, frames: SessionFrames): Promise<void> {
  try {
    for (let piece = await client.next(); piece !== undefined; piece = await client.next()) {
      await frames.send(channels.input, piece)
    }
    await frames.send(channels.end, Buffer.of(channels.input))
  } catch {
    // The connection has ended.
  }
}

/** As agents of earlier releases report that the pod has reset the connection: at an error kubectl would end the others, too. */
function isReset(message: string): boolean {
  return /^(read|write) (ECONNRESET|EPIPE)$/.test(message)
}

/** Rejects with what the node reports, or where the client is gone. */
async function passToClient(frames: SessionFrames, client: PortStreams): Promise<void> {
  for (let frame = await frames.next(); frame !== undefined; frame = await frames.next()) {
    const { channel, payload } = frame
    if (channel === channels.output) await client.send(frame)
    if (channel !== channels.status) continue
    const { message } = sessionStatusIn(payload) ?? {}
    if (message !== undefined && !isReset(message)) throw new Error(message)
    return
  }
  throw new Error('the connection to the node ended')
}
