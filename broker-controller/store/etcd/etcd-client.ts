/** The connection to etcd: calls with a deadline, and streams. */
import type { ServiceError } from '@grpc/grpc-js'
import { startDeadline } from '../../../daemon/deadline.ts'
import { connectMs, type EtcdClientNeeds, type EtcdEndpoint, openEndpoints } from './etcd-endpoints.ts'
import { EtcdError, grpcCode, maySucceedElsewhere } from './etcd-error.ts'
import { type Method, methods } from './etcd-messages.ts'

export interface EtcdStream {
  close(): void
}

export type StreamListener<Out> = {
  readonly message: (answer: Out) => void
  /** Once, unless `close` was called before: the stream is over, for this reason. */
  readonly end: (error: EtcdError) => void
}

export interface EtcdClient {
  /** Rejects with EtcdError, at the latest after `deadlineMs`. */
  call<Out, In>(method: Method<Out, In>, request: In, deadlineMs?: number): Promise<Out>
  stream<Out, In>(method: Method<Out, In>, request: In, listener: StreamListener<Out>): EtcdStream
  /** Why there is no connection, for each endpoint. */
  reasons(): Promise<readonly string[]>
  /** Ends calls and streams with an error. */
  close(): void
}

/** More than a member needs that is alive, less than a client of the API waits: an election takes 1 to 2 s. */
export const callDeadlineMs = 1_500

/** Connects with the first call. Rejects where the certificate or the key cannot be used. */
export async function openEtcdClient(needs: EtcdClientNeeds): Promise<EtcdClient> {
  const { clock, deadlineMs: usualMs = callDeadlineMs } = needs
  const endpoints = await openEndpoints(needs)
  const { metadata } = endpoints
  /** Rejects with EtcdError, also when `late` aborts. Deadlines of gRPC end a call whose answer has arrived and was not read yet. */
  const ask = <Out, In>(endpoint: EtcdEndpoint, method: Method<Out, In>, request: In, late: AbortSignal) => {
    const { path, request: codec, answer } = method
    return new Promise<Out>((resolve, reject) => {
      const fail = (error: EtcdError) => {
        if (maySucceedElsewhere(error)) endpoints.leave(endpoint, error)
        reject(error)
      }
      const settle = (failure: ServiceError | null, value?: Out) => {
        if (late.aborted) return
        if (failure === null && value !== undefined) resolve(value)
        else fail(errorOf(failure))
      }
      const asked = endpoint.client.makeUnaryRequest(path, codec.encode, answer.decode, request, metadata, settle)
      late.addEventListener('abort', () => {
        fail(new EtcdError(grpcCode.deadlineExceeded, `No answer from ${endpoint.server} in time`))
        asked.cancel()
      })
    })
  }
  return {
    async call(method, request, deadlineMs = usualMs) {
      const late = new AbortController()
      const stop = startDeadline(deadlineMs, () => late.abort('late'), clock)
      try {
        return await ask(await endpoints.connected(late.signal), method, request, late.signal)
      } finally {
        stop()
      }
    },
    stream<Out, In>({ path, request: codec, answer }: Method<Out, In>, request: In, listener: StreamListener<Out>) {
      const endpoint = endpoints.present()
      const stream = endpoint.client.makeBidiStreamRequest(path, codec.encode, answer.decode, metadata)
      let over = false
      const finish = (error?: EtcdError) => {
        if (over) return
        over = true
        endpoint.streams.delete(move)
        stream.cancel()
        if (error === undefined) return
        if (maySucceedElsewhere(error)) endpoints.leave(endpoint, error)
        listener.end(error)
      }
      const move = () => finish(new EtcdError(grpcCode.unavailable, `${endpoint.server} was left for another endpoint`))
      endpoint.streams.add(move)
      stream.on('data', (value: Out) => {
        if (!over) listener.message(value)
      })
      stream.on('error', (failure: ServiceError) => finish(errorOf(failure)))
      stream.on('end', () => finish(new EtcdError(grpcCode.unavailable, `${endpoint.server} ended the stream`)))
      stream.write(request)
      return { close: () => finish() }
    },
    reasons: () =>
      Promise.all(
        endpoints.all.map(async ({ server, client }) => {
          const { path, request, answer } = methods.alarms
          const reason = await new Promise<string>((resolve) => {
            const asked = client.makeUnaryRequest(path, request.encode, answer.decode, {}, metadata, (failure) => {
              stop()
              resolve(failure?.details.replace(/ Resolution note: .?$/, '') ?? 'connected')
            })
            const late = () => {
              resolve(`no answer within ${connectMs / 1000} s`)
              asked.cancel()
            }
            const stop = startDeadline(connectMs, late, clock)
          })
          return `${server}: ${reason}`
        }),
      ),
    close: endpoints.close,
  }
}

function errorOf(failure: ServiceError | null): EtcdError {
  if (failure === null) return new EtcdError(grpcCode.unknown, 'The answer is empty')
  return new EtcdError(failure.code, failure.details)
}
