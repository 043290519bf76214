/** The node proxy of the API: HTTP with the agent itself, or a connection to another port of the node. */
import { once } from 'node:events'
import { type SessionRequest, type SessionStatus, sessionChannels } from '../../api/sessions.ts'
import { sessionDuplex } from '../../daemon/sessions/session-duplex.ts'
import { connectTo, forwardTo } from './port-session.ts'
import { SessionRefusal } from './session-refusal.ts'
import type { NodeParts, OpenSession } from './session-types.ts'

/** Resolves when the node has answered, or what listens on the port has closed the connection. */
export async function serveNode(
  { port }: NonNullable<SessionRequest['node']>,
  { serve, address }: NodeParts,
  session: OpenSession,
): Promise<Omit<SessionStatus, 'state'>> {
  if (port !== undefined) {
    const host = address()
    if (host === undefined) throw new SessionRefusal('ServiceUnavailable', 'the node has no address')
    await forwardTo({ open: () => connectTo(host, port, session.signal), port, what: 'the node' }, session)
    return {}
  }
  const stream = sessionDuplex(session.frames, { receive: sessionChannels.input, send: sessionChannels.output })
  stream.on('error', () => undefined) // of the session: its signal shows it
  await session.started()
  serve(stream)
  if (!stream.writableFinished && !stream.destroyed) {
    const over = new AbortController()
    const closed = () => over.abort('closed')
    stream.once('close', closed)
    await once(stream, 'finish', { signal: over.signal }).catch(() => undefined)
    stream.off('close', closed)
  }
  return {}
}
