/** Time limits of one session: is its client silent, or does it not read? */
import type { TLSSocket } from 'node:tls'
import { acceptedBytes } from './accepted-bytes.ts'

export interface SessionTimes {
  /** CONNECT was accepted with this keep alive, in seconds; 0: none. */
  connected(keepAliveSeconds: number): void
  /** A packet was received, or reading has resumed. */
  received(nowMs: number): void
  /** The limit that is exceeded; undefined: none. `isPaused`: packets are not read now, so their absence is not the client's silence. */
  exceeded(nowMs: number, isPaused: boolean): string | undefined
}

export function sessionTimes(socket: TLSSocket, drainTimeoutMs: number, nowMs: number): SessionTimes {
  let silenceMs = Number.POSITIVE_INFINITY
  let receivedMs = nowMs
  /** Since when the kernel has accepted nothing of what waits for the client, and how much it had accepted until then. */
  let stalled: { readonly sinceMs: number; readonly accepted: number } | undefined
  return {
    connected(keepAliveSeconds) {
      silenceMs = keepAliveSeconds * 1500 || Number.POSITIVE_INFINITY // one and a half times: 3.1.2.10
    },
    received(now) {
      receivedMs = now
    },
    exceeded(now, isPaused) {
      if (!isPaused && now - receivedMs > silenceMs) return 'Nothing was received within its keep alive'
      if (!socket.writableNeedDrain) {
        stalled = undefined
        return undefined
      }
      const accepted = acceptedBytes(socket)
      if (stalled === undefined || accepted > stalled.accepted) stalled = { sinceMs: now, accepted }
      else if (now - stalled.sinceMs > drainTimeoutMs) return 'It does not read what is sent to it'
      return undefined
    },
  }
}
