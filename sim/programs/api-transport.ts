/** Requests to the API over the network of the world: a request or its answer may be late, and then whether it was done is not known. */
import { type Identity, nodeIdentity } from '../../api/identity.ts'
import { answerRequest } from '../../broker-controller/apiserver/filters/answer-request.ts'
import type { ApiRequest, RequestNeeds } from '../../broker-controller/apiserver/filters/api-request.ts'
import type { ApiResponse } from '../../broker-controller/apiserver/wire/answers.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable } from '../../daemon/api-client.ts'
import { within } from '../../daemon/deadline.ts'
import type { Servers } from '../world/servers.ts'
import type { SimulatedNetwork } from '../world/simulated-network.ts'
import { openWire, type ProgramPlace, type WireEnd } from '../world/wire.ts'

export type SentRequest = {
  readonly method: string
  readonly path: string
  readonly body: string
  readonly contentType: string
  readonly identity: Identity
  /** A controller that does not lead has passed it on. */
  readonly isForwarded?: boolean
}
/** The pieces of a stream follow its status. */
export type ReceivedAnswer = { readonly status: number; readonly body: unknown } | { readonly piece: string }

export type ApiServers = Servers<WireEnd<SentRequest, ReceivedAnswer>>

const deadlineMs = 15_000
/** Any machine of a controller. */
const anyController = 'controller'

/** How one of several controllers passes on what it does not answer. `leader`: the machine of the other one that leads. */
export type Forwarding = { readonly isLeading: () => boolean; readonly leader: () => string | undefined }

/** Serves the API of a controller to those that reach its machine. */
export function serveApi(
  needs: RequestNeeds,
  place: ProgramPlace,
  network: SimulatedNetwork,
  listening: ApiServers,
  forwarding?: Forwarding,
): void {
  const passOn = (request: SentRequest, status: number, signal: AbortSignal) => {
    if (status !== 503 || forwarding === undefined || forwarding.isLeading() || request.isForwarded) return undefined
    const leader = forwarding.leader()
    return leader === undefined ? undefined : passedOn(place, listening, leader, request, signal)
  }
  listening.listen(place, (client) => {
    const [clientEnd, end] = openWire<SentRequest, ReceivedAnswer>(network, client, place)
    const gone = new AbortController()
    end.listen(
      (request) => void place.life.within(() => answer(request, needs, end, gone.signal, passOn)),
      () => gone.abort(),
    )
    return clientEnd
  })
}

/** undefined: it is not passed on. */
type PassOn = (request: SentRequest, status: number, signal: AbortSignal) => Promise<ReceivedAnswer> | undefined

/** Whether a write was done that is not answered is not known. */
async function passedOn(
  place: ProgramPlace,
  api: ApiServers,
  leader: string,
  request: SentRequest,
  signal: AbortSignal,
): Promise<ReceivedAnswer> {
  try {
    const answered = exchange(place, api, { ...request, isForwarded: true }, signal, leader)
    return await within(deadlineMs, 'no answer', answered, place.life.clock)
  } catch {
    return { status: 504, body: {} }
  }
}

async function answer(
  sent: SentRequest,
  needs: RequestNeeds,
  end: WireEnd<ReceivedAnswer, SentRequest>,
  signal: AbortSignal,
  passOn: PassOn,
): Promise<void> {
  const { method, path, body, contentType, identity } = sent
  const [route = '', query = ''] = path.split('?')
  const request: ApiRequest = {
    method,
    path: route,
    query: new URLSearchParams(query),
    certificate: {
      trusted: true,
      identity,
      validSinceMs: 0,
      validUntilMs: Number.POSITIVE_INFINITY,
      serialNumber: '01',
    },
    headers: { accept: 'application/json', 'content-type': contentType },
    readBody: async () => Buffer.from(body),
    signal,
  }
  const { answer: found } = await answerRequest(request, needs)
  const status = 'code' in found ? found.code : 200
  const passed = passOn(sent, status, signal)
  if (passed !== undefined) return end.send(await passed)
  end.send({ status, body: found.kind === 'stream' ? '' : await documentOf(found) })
  if (found.kind !== 'stream') return
  for await (const piece of found.pieces) {
    if (!end.isOpen) return
    end.send({ piece: Buffer.from(piece).toString() })
  }
  end.close()
}

async function documentOf(answer: ApiResponse): Promise<unknown> {
  switch (answer.kind) {
    case 'text':
      return answer.text
    case 'document':
      return JSON.parse(answer.bytes.toString())
    case 'object':
      return JSON.parse(JSON.stringify(answer.body))
    case 'pieces': {
      let text = ''
      for await (const piece of answer.pieces) text += piece
      return JSON.parse(text)
    }
    default:
      throw new Error(`An answer of the kind ${answer.kind} is not for clients of the world`)
  }
}

/** A client at this place. Each call has a connection of its own. */
export function simulatedApi(place: ProgramPlace, api: ApiServers, identity: Identity): ApiClient {
  const call = async (method: string, path: string, body: unknown, contentType: string, signal?: AbortSignal) => {
    const over = new AbortController()
    const stop = () => over.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    try {
      const sent = { method, path, body: body === undefined ? '' : JSON.stringify(body), contentType, identity }
      return await within(deadlineMs, 'no answer', exchange(place, api, sent, over.signal), place.life.clock)
    } catch (cause) {
      signal?.throwIfAborted()
      throw new ApiUnreachable(`Cannot ${method} ${path}`, 'ETIMEDOUT', { cause })
    } finally {
      over.abort()
      signal?.removeEventListener('abort', stop)
    }
  }
  const json = 'application/json'
  return {
    get: (path, signal) => call('GET', path, undefined, json, signal),
    post: (path, body, signal) => call('POST', path, body, json, signal),
    patch: (path, body, contentType = 'application/merge-patch+json', signal) =>
      call('PATCH', path, body, contentType, signal),
    delete: (path, signal, options) => call('DELETE', path, options, json, signal),
  }
}

export function nodeApi(place: ProgramPlace, api: ApiServers): ApiClient {
  return simulatedApi(place, api, nodeIdentity(place.machine))
}

async function exchange(
  place: ProgramPlace,
  api: ApiServers,
  sent: SentRequest,
  signal: AbortSignal,
  machine = anyController,
): Promise<ApiAnswer> {
  const wire = await api.connect(place, machine, signal)
  signal.addEventListener('abort', wire.destroy, { once: true })
  return new Promise((resolve, reject) => {
    wire.listen((received) => {
      if ('status' in received) resolve({ ...received, dateHeader: undefined })
      wire.destroy()
    }, reject)
    wire.send(sent, sent.body.length + 1)
  })
}

/** Calls `piece` with each piece of a streamed answer; resolves with the status, or when the stream has ended. */
export async function stream(
  place: ProgramPlace,
  api: ApiServers,
  { path, identity }: Pick<SentRequest, 'path' | 'identity'>,
  piece: (text: string) => void,
): Promise<number> {
  const over = new AbortController()
  const connecting = api.connect(place, anyController, over.signal)
  const wire = await within(deadlineMs, 'no answer', connecting, place.life.clock).catch((error: unknown) => {
    over.abort(error)
    throw error
  })
  return new Promise((resolve) => {
    let status = 0
    wire.listen(
      (received) => {
        if ('piece' in received) return piece(received.piece)
        status = received.status
        if (status === 200) return
        wire.destroy()
        resolve(status)
      },
      () => resolve(status),
    )
    wire.send({ method: 'GET', path, body: '', contentType: '', identity })
  })
}
