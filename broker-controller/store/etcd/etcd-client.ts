/**
 * The connection to etcd: calls with a deadline, streams, and fail-over between endpoints. One endpoint is used at a time; the next
 * one takes its place when a call on it fails as if the member were gone. Only this file names the gRPC library, and loads it.
 */
import type { ChannelCredentials, ChannelOptions, Client, ServiceError } from '@grpc/grpc-js'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { EtcdError, grpcCode, maySucceedElsewhere } from './etcd-error.ts'
import { type Method, methods } from './etcd-messages.ts'

export type EtcdTls = { readonly ca?: Buffer; readonly certificate?: Buffer; readonly key?: Buffer }

export type EtcdClientNeeds = {
  /** `http://HOST:PORT` or `https://HOST:PORT`, at least one. */
  readonly servers: readonly string[]
  readonly tls: EtcdTls
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Log
}

export interface EtcdStream<In> {
  send(request: In): void
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
  stream<Out, In>(method: Method<Out, In>, request: In, listener: StreamListener<Out>): EtcdStream<In>
  /** Why there is no connection, for each endpoint. */
  reasons(): Promise<readonly string[]>
  /** Ends calls and streams with an error. */
  close(): void
}

/** More than a member needs that is alive, less than a client of the API waits: an election takes 1 to 2 s. */
export const callDeadlineMs = 1_500
/** To connect to one endpoint before the next one is tried. */
const connectMs = 1_000

const channelOptions: ChannelOptions = {
  // etcd accepts a ping every 5 s (--grpc-keepalive-min-time). A member that is cut off is noticed after 10 s without traffic.
  'grpc.keepalive_time_ms': 7_000,
  'grpc.keepalive_timeout_ms': 3_000,
  // The defaults, 1 s and 2 min, keep a member away that came back.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  // A page of a list has no limit but that of its objects; etcd bounds what it is sent.
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
}

type Endpoint = { readonly server: string; readonly client: Client; readonly streams: Set<() => void> }

/** Connects with the first call. Rejects where the certificate or the key cannot be used. */
export async function openEtcdClient({ servers, tls, clock, log }: EtcdClientNeeds): Promise<EtcdClient> {
  // Here and not above: the library takes 12 MB, which a controller on SQLite does not need.
  const { Client, Metadata, connectivityState, credentials } = await import('@grpc/grpc-js')
  const secured = (): ChannelCredentials =>
    credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.certificate ?? null)
  const endpoints: readonly Endpoint[] = servers.map((server) => {
    const { protocol, host } = new URL(server)
    const channelCredentials = protocol === 'https:' ? secured() : credentials.createInsecure()
    return { server, client: new Client(`dns:${host}`, channelCredentials, channelOptions), streams: new Set() }
  })
  let current = 0
  let closed = false
  // A member without a leader refuses the call, and ends the stream, instead of keeping them (etcd, rpctypes.MetadataHasLeader).
  const metadata = new Metadata()
  metadata.set('hasleader', 'true')

  const present = (): Endpoint => {
    const endpoint = endpoints[current]
    if (closed || endpoint === undefined)
      throw new EtcdError(grpcCode.unavailable, 'The client is closed', { sent: false })
    return endpoint
  }
  const leave = (endpoint: Endpoint, error: unknown) => {
    if (closed || endpoints.length === 1 || endpoints[current] !== endpoint) return
    current = (current + 1) % endpoints.length
    log.debug('Next etcd endpoint', { from: endpoint.server, to: endpoints[current]?.server ?? '', error })
    for (const end of [...endpoint.streams]) end()
  }
  const isConnected = (endpoint: Endpoint, untilMs: number) =>
    new Promise<boolean>((resolve) => {
      const channel = endpoint.client.getChannel()
      const look = () => {
        const state = channel.getConnectivityState(true)
        if (state === connectivityState.READY) return resolve(true)
        const leftMs = untilMs - clock.monotonicMs()
        if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN || leftMs <= 0) {
          return resolve(false)
        }
        channel.watchConnectivityState(state, Date.now() + leftMs, look)
      }
      look()
    })
  /** One that is connected, so that a request that fails afterwards counts as sent. */
  const connected = async (untilMs: number): Promise<Endpoint> => {
    for (const _ of endpoints) {
      const endpoint = present()
      if (await isConnected(endpoint, Math.min(untilMs, clock.monotonicMs() + connectMs))) return endpoint
      leave(endpoint, 'no connection')
    }
    throw new EtcdError(grpcCode.unavailable, `No connection to ${servers.join(', ')}`, { sent: false })
  }

  return {
    async call<Out, In>({ path, request: codec, answer }: Method<Out, In>, request: In, deadlineMs = callDeadlineMs) {
      const untilMs = clock.monotonicMs() + deadlineMs
      const endpoint = await connected(untilMs)
      const deadline = Date.now() + untilMs - clock.monotonicMs()
      const { encode } = codec
      return new Promise<Out>((resolve, reject) => {
        endpoint.client.makeUnaryRequest(
          path,
          encode,
          answer.decode,
          request,
          metadata,
          { deadline },
          (failure, value) => {
            if (failure === null && value !== undefined) return resolve(value)
            const error = errorOf(failure)
            if (maySucceedElsewhere(error)) leave(endpoint, error)
            reject(error)
          },
        )
      })
    },
    stream<Out, In>({ path, request: codec, answer }: Method<Out, In>, request: In, listener: StreamListener<Out>) {
      const endpoint = present()
      const stream = endpoint.client.makeBidiStreamRequest(path, codec.encode, answer.decode, metadata)
      let over = false
      const finish = (error?: EtcdError) => {
        if (over) return
        over = true
        endpoint.streams.delete(move)
        stream.cancel()
        if (error === undefined) return
        if (maySucceedElsewhere(error)) leave(endpoint, error)
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
      return { send: (next: In) => void stream.write(next), close: () => finish() }
    },
    reasons: () =>
      Promise.all(
        endpoints.map(async ({ server, client }) => {
          const { path, request, answer } = methods.alarms
          const deadline = Date.now() + connectMs
          const reason = await new Promise<string>((resolve) => {
            client.makeUnaryRequest(path, request.encode, answer.decode, {}, metadata, { deadline }, (failure) =>
              resolve(failure?.details.replace(/ Resolution note: .?$/, '') ?? 'connected'),
            )
          })
          return `${server}: ${reason}`
        }),
      ),
    close() {
      if (closed) return
      closed = true
      for (const { client, streams } of endpoints) {
        for (const end of [...streams]) end()
        client.close()
      }
    },
  }
}

function errorOf(failure: ServiceError | null): EtcdError {
  if (failure === null) return new EtcdError(grpcCode.unknown, 'The answer is empty')
  return new EtcdError(failure.code, failure.details, { cause: failure })
}
