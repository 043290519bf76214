/** Loop: renews the node's lease — the heartbeat. */
import type { Clock } from '../../daemon/clock.ts'
import type { ControlPlane } from './control-plane.ts'

export type LeaseNeeds = {
  readonly controlPlane: Pick<ControlPlane, 'renewLease'>
  readonly clock: Clock
  readonly random: () => number
}

export type LeaseSettings = { readonly nodeLeaseDurationSeconds: number }

/** As the kubelet: four chances to renew before the lease runs out, spread so that a fleet does not beat as one. */
export function leaseManager({ controlPlane, clock, random }: LeaseNeeds, settings: LeaseSettings) {
  const periodMs = settings.nodeLeaseDurationSeconds * 1000 * 0.25
  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        // False means that the link is down. Its return says everything again, so there is nothing to catch up with.
        controlPlane.renewLease()
        await clock.sleep(periodMs * (1 + 0.04 * random()), signal)
      }
    },
  }
}
