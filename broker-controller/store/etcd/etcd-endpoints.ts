/**
 * The members of etcd that the client may use, one at a time: the next one takes its place when a call fails as if the member were
 * gone. This file loads the gRPC library.
 */
import { isIP } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import type { ChannelCredentials, ChannelOptions, Client, Metadata } from '@grpc/grpc-js'
import type { Clock } from '../../../daemon/clock.ts'
import { startDeadline } from '../../../daemon/deadline.ts'
import type { Log } from '../../../daemon/log.ts'
import { EtcdError, grpcCode } from './etcd-error.ts'
import type { EtcdPlace } from './etcd-place.ts'

export type EtcdClientNeeds = Pick<EtcdPlace, 'servers' | 'tls'> & {
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly log: Log
  /** Deadline of calls without their own. Default: 1.5 s. */
  readonly deadlineMs?: number | undefined
}

/** `streams`: how to end each stream of this member. */
export type EtcdEndpoint = { readonly server: string; readonly client: Client; readonly streams: Set<() => void> }

export interface EtcdEndpoints {
  readonly all: readonly EtcdEndpoint[]
  /** Metadata of each call and stream. */
  readonly metadata: Metadata
  /** Throws EtcdError after `close`. */
  present(): EtcdEndpoint
  /**
   * One that is connected, so that a request that fails afterwards counts as sent. Rejects with EtcdError where there is none before
   * `late` aborts.
   */
  connected(late: AbortSignal): Promise<EtcdEndpoint>
  /** Uses the next one from now on, and ends the streams of this one. */
  leave(endpoint: EtcdEndpoint, error: unknown): void
  close(): void
}

/** To connect to one endpoint before the next one is tried. Where there is no other, the call's deadline holds. */
export const connectMs = 1_000

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

/** Connects with the first call. Rejects where the certificate or the key cannot be used. */
export async function openEndpoints({ servers, tls, clock, log }: EtcdClientNeeds): Promise<EtcdEndpoints> {
  // Here and not above: the library takes 7 MB, which a controller on SQLite does not need.
  const { Client, Metadata, connectivityState, credentials } = await import('@grpc/grpc-js')
  const secured = (address: string): ChannelCredentials =>
    credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.certificate ?? null, {
      checkServerIdentity: (_, certificate) => checkServerIdentity(address, certificate),
    })
  const all: readonly EtcdEndpoint[] = servers.map((server) => {
    const { protocol, host, hostname } = new URL(server)
    const address = hostname.replace(/^\[|\]$/g, '')
    const channelCredentials = protocol === 'https:' ? secured(address) : credentials.createInsecure()
    // An address must not be sent as the name of a server (RFC 6066, section 3); what is verified is the address.
    const options =
      isIP(address) === 0 ? channelOptions : { ...channelOptions, 'grpc.ssl_target_name_override': 'etcd' }
    return { server, client: new Client(`dns:${host}`, channelCredentials, options), streams: new Set() }
  })
  let current = 0
  let closed = false
  // A member without a leader refuses the call, and ends the stream, instead of keeping them (etcd, rpctypes.MetadataHasLeader).
  const metadata = new Metadata()
  metadata.set('hasleader', 'true')

  const present = (): EtcdEndpoint => {
    const endpoint = all[current]
    if (!closed && endpoint !== undefined) return endpoint
    throw new EtcdError(grpcCode.unavailable, 'The client is closed', { sent: false })
  }
  const leave = (endpoint: EtcdEndpoint, error: unknown) => {
    if (closed || all.length === 1 || all[current] !== endpoint) return
    current = (current + 1) % all.length
    log.debug('Next etcd endpoint', { from: endpoint.server, to: all[current]?.server ?? '', error })
    for (const end of [...endpoint.streams]) end()
  }
  /** undefined: it is connecting. */
  const isReady = ({ client }: EtcdEndpoint): boolean | undefined => {
    const state = client.getChannel().getConnectivityState(true)
    if (state === connectivityState.READY) return true
    return state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN ? false : undefined
  }
  /** False where it cannot be reached, is slow and there is another one, or `late` aborts. */
  const isConnected = (endpoint: EtcdEndpoint, late: AbortSignal) =>
    new Promise<boolean>((resolve) => {
      const channel = endpoint.client.getChannel()
      let isOver = false
      const end = (result: boolean) => {
        isOver = true
        stop()
        late.removeEventListener('abort', giveUp)
        resolve(result)
      }
      const giveUp = () => end(false)
      const look = () => {
        if (isOver) return
        const result = isReady(endpoint)
        if (result !== undefined) return end(result)
        // Its own deadline only has it look again.
        channel.watchConnectivityState(channel.getConnectivityState(false), Date.now() + connectMs, look)
      }
      const stop = all.length === 1 ? () => {} : startDeadline(connectMs, giveUp, clock)
      late.addEventListener('abort', giveUp, { once: true })
      if (late.aborted) giveUp()
      look()
    })
  return {
    all,
    metadata,
    present,
    leave,
    async connected(late) {
      for (const _ of all) {
        if (late.aborted) break
        const endpoint = present()
        if (isReady(endpoint) ?? (await isConnected(endpoint, late))) return endpoint
        leave(endpoint, 'no connection')
      }
      throw new EtcdError(grpcCode.unavailable, `No connection to ${servers.join(', ')}`, { sent: false })
    },
    close() {
      if (closed) return
      closed = true
      for (const { client, streams } of all) {
        for (const end of [...streams]) end()
        client.close()
      }
    },
  }
}
