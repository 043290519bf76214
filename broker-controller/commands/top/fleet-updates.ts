/** The stream of the dashboard for a program with a kubeconfig: its certificate or token is what a login is for a browser. */
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { FleetUpdate } from '../../../api/dashboard/dashboard-messages.ts'
import { decodeFleetUpdate } from '../../../api/dashboard/update-decoding.ts'
import { parseJson } from '../../../api/text/json.ts'
import { statusMessage } from '../../../daemon/api-client.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { collectedBytes } from '../../../daemon/http/collected-bytes.ts'
import { connectToServer } from '../../../daemon/server-check.ts'
import type { ApiAccess } from '../connection/kubeconfig.ts'
import { printable } from '../printable.ts'
import { eventDecoder } from './event-stream.ts'

/** The server refuses the stream; another attempt has the same end where `isFinal`. */
export class StreamRefusedError extends Error {
  override readonly name = 'StreamRefusedError'
  readonly isFinal: boolean

  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}

const connectMs = 15_000
/** The server sends something at least every 15 s (dashboard/server/dashboard-fleet.ts). */
const silenceMs = 45_000
const longestRefusal = 64 * 1024

/** Until the server ends the stream or `signal` aborts. Throws a StreamRefusedError, or why the connection was lost. */
export async function* fleetUpdates(access: ApiAccess, signal: AbortSignal): AsyncIterable<FleetUpdate> {
  const answer = await withDeadline(connectMs, signal, (deadline) => openStream(access, deadline))
  const stop = () => answer.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    answer.setTimeout(silenceMs, () => answer.destroy(new Error(`the controller was silent for ${silenceMs / 1000} s`)))
    const eventsIn = eventDecoder()
    for await (const piece of answer) {
      for (const data of eventsIn(piece)) {
        const update = decodeFleetUpdate(parseJson(data))
        if (update === undefined) throw new Error('the controller sent an invalid update')
        yield update
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', stop)
    answer.destroy()
  }
}

async function openStream(
  { url, ca, certificate, key, token }: ApiAccess,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const at = new URL('/ui/api/stream', url)
  const client = certificate !== undefined && key !== undefined ? { cert: certificate, key } : {}
  const host = at.hostname.replace(/^\[|\]$/g, '')
  const socket = await connectToServer({ host, port: Number(at.port || 443), ca, ...client }, signal)
  const headers = { accept: 'text/event-stream', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = request(at, { headers, createConnection: () => socket, signal }, resolve)
    asked.on('error', reject)
    asked.end()
  })
  if (answer.statusCode === 200 && answer.headers['content-type']?.startsWith('text/event-stream')) return answer
  throw await refusal(answer)
}

async function refusal(answer: IncomingMessage): Promise<StreamRefusedError> {
  const { statusCode = 0 } = answer
  const bytes = collectedBytes(longestRefusal)
  for await (const piece of answer) if (!bytes.add(piece)) break
  const why = statusMessage(parseJson(bytes.take().toString('utf8'))) ?? 'the server is not the API of a fleet'
  const remedy = statusCode === 404 ? '. Is the dashboard switched off in its configuration (dashboard: false)?' : ''
  return new StreamRefusedError(
    `${printable(why)} (status ${statusCode})${remedy}`,
    [401, 403, 404].includes(statusCode),
  )
}
