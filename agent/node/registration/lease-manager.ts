/** Loop: renews the node's lease — the heartbeat. */
import { heartbeatsPerLease } from '../../../api/lease.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { ControlPlane } from '../connection/control-plane.ts'

export type LeaseNeeds = {
  readonly controlPlane: Pick<ControlPlane, 'renewLease' | 'leaseDurationSeconds'>
  readonly clock: Clock
  readonly random: () => number
}

/** 4 % of a period of 10 s, as in the kubelet's lease controller; not more for a longer one, because the controller waits for the next heartbeat. */
const spreadMs = 400

/** Renews four times in a lease, as the kubelet does, with jitter so that the heartbeats of a fleet do not coincide. */
export function leaseManager({ controlPlane, clock, random }: LeaseNeeds) {
  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        // False: there is no connection. All states are published again on the next one, so nothing is lost.
        controlPlane.renewLease()
        const periodMs = (controlPlane.leaseDurationSeconds * 1000) / heartbeatsPerLease
        await clock.sleep(periodMs + random() * Math.min(spreadMs, periodMs * 0.04), signal)
      }
    },
  }
}
