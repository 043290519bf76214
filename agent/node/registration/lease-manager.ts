/** Loop: renews the node's lease — the heartbeat. */
import { heartbeatsPerLease } from '../../../api/lease.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { ControlPlane } from '../connection/control-plane.ts'

export type LeaseNeeds = {
  readonly controlPlane: Pick<ControlPlane, 'renewLease' | 'leaseDurationSeconds'>
  readonly clock: Clock
  readonly random: () => number
}

/** Of a period of 10 s, as the kubelet; of a longer one no more, for the controller waits for the next one. */
const spreadMs = 400

/** As the kubelet: four chances to renew before the lease runs out, spread so that a fleet does not beat as one. */
export function leaseManager({ controlPlane, clock, random }: LeaseNeeds) {
  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        // False means that the link is down. Its return says everything again, so there is nothing to catch up with.
        controlPlane.renewLease()
        const periodMs = (controlPlane.leaseDurationSeconds * 1000) / heartbeatsPerLease
        await clock.sleep(periodMs + random() * Math.min(spreadMs, periodMs * 0.04), signal)
      }
    },
  }
}
