/** The terms that the controller grants: the longest lease, and the time until a silent node is disconnected. */
import { heartbeatsPerLease, usualLeaseDurationSeconds } from '../../../api/lease.ts'
import type { ControllerMessage } from '../../../api/topics.ts'

export interface ControllerTerms {
  /** A new link: its controller has granted nothing yet. */
  opened(): void
  received(message: Pick<ControllerMessage, 'nodeMonitorGraceSeconds' | 'nodeLeaseLimitSeconds'>): void
  /** As configured, where that is longer than usual within the controller's limit. With an earlier controller the usual one. */
  readonly leaseDurationSeconds: number
  /** How long this node may be silent, in milliseconds; undefined until a controller has published it. It holds from one link to the next. */
  readonly graceMs: number | undefined
  /** For the CONNECT packet: one and a half heartbeats. */
  readonly keepaliveSeconds: number
  /** An attempt failed with this: where it may be for its keep-alive, the next one asks for the usual one. */
  failed(error: unknown): void
}

const usualKeepaliveSeconds = 15
const longestKeepaliveSeconds = 1_350
/**
 * CONNACK return codes for a keep-alive that is too long: 6 of earlier controllers, 5 (not authorized) of this one's broker. MQTT
 * 3.1.1 has none for it.
 */
const refusalCodes: readonly unknown[] = [5, 6]
/** Same as in the controller: see `broker-controller/controllers/node-lifecycle/lease-duration.ts`. */
export const gracePerLease = 1.25

/** `configuredSeconds`: the lease that this node would like. */
export function controllerTerms(configuredSeconds: number): ControllerTerms {
  let limitSeconds: number | undefined
  let graceSeconds: number | undefined
  /** The next link, and the present one, ask for no more than the usual keep-alive. */
  let isNextUsual = false
  let isUsual = false
  const leaseSeconds = () => {
    const grantedSeconds = isUsual ? 0 : (limitSeconds ?? 0)
    return Math.min(configuredSeconds, Math.max(usualLeaseDurationSeconds, grantedSeconds))
  }
  return {
    opened() {
      limitSeconds = undefined
      isUsual = isNextUsual
      isNextUsual = false
    },
    received({ nodeMonitorGraceSeconds, nodeLeaseLimitSeconds }) {
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
      if (isUsual) return usualKeepaliveSeconds
      const heartbeats = Math.ceil((configuredSeconds / heartbeatsPerLease) * 1.5)
      return Math.min(longestKeepaliveSeconds, Math.max(usualKeepaliveSeconds, heartbeats))
    },
    failed(error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      isNextUsual = refusalCodes.includes(code) && !isUsual
    },
  }
}
