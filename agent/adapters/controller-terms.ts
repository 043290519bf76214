/** What the controller on the other end grants: how long a lease may be, and how long it waits for a silent node. */
import { usualLeaseDurationSeconds } from '../../api/lease.ts'
import type { ControllerMessage } from '../../api/topics.ts'

export interface ControllerTerms {
  /** A new link: its controller has granted nothing yet. */
  opened(): void
  heard(message: Pick<ControllerMessage, 'nodeMonitorGraceSeconds' | 'nodeLeaseLimitSeconds'>): void
  /** As configured, where that is longer than usual within the controller's limit; an earlier controller knows the usual one only. */
  readonly leaseDurationSeconds: number
  /** How long this node may be silent, in milliseconds; undefined while no controller has said. It holds from one link to the next. */
  readonly graceMs: number | undefined
  /** For the CONNECT packet: one and a half heartbeats. */
  readonly keepaliveSeconds: number
  /** The broker refused the connection with this; true when another keep-alive is asked for next. */
  refused(error: unknown): boolean
}

const usualKeepaliveSeconds = 15
const longestKeepaliveSeconds = 1_350
/** Ours, sent by brokers that allow no longer keep-alive than they know of (MQTT 3.1.1 leaves it to them). */
const keepaliveRefusedCode = 6
/** Of the controller: see `broker-controller/controllers/lease-duration.ts`. */
const gracePerLease = 1.25

/** `configuredSeconds`: the lease that this node would like. */
export function controllerTerms(configuredSeconds: number): ControllerTerms {
  let limitSeconds: number | undefined
  let graceSeconds: number | undefined
  let isKeepaliveRefused = false
  const leaseSeconds = () => {
    const most = Math.max(usualLeaseDurationSeconds, limitSeconds ?? 0)
    return Math.min(configuredSeconds, most)
  }
  return {
    opened() {
      limitSeconds = undefined
    },
    heard({ nodeMonitorGraceSeconds, nodeLeaseLimitSeconds }) {
      limitSeconds = nodeLeaseLimitSeconds
      if (nodeMonitorGraceSeconds === undefined) return
      const ofLease = leaseSeconds() > usualLeaseDurationSeconds ? leaseSeconds() * gracePerLease : 0
      graceSeconds = Math.max(nodeMonitorGraceSeconds, ofLease)
    },
    get leaseDurationSeconds() {
      return leaseSeconds()
    },
    get graceMs() {
      return graceSeconds === undefined ? undefined : graceSeconds * 1000
    },
    get keepaliveSeconds() {
      if (isKeepaliveRefused) return usualKeepaliveSeconds
      const heartbeats = Math.ceil((configuredSeconds / 4) * 1.5)
      return Math.min(longestKeepaliveSeconds, Math.max(usualKeepaliveSeconds, heartbeats))
    },
    refused(error) {
      const isRefused = error instanceof Error && 'code' in error && error.code === keepaliveRefusedCode
      if (!isRefused || isKeepaliveRefused) return false
      isKeepaliveRefused = true
      return true
    },
  }
}
