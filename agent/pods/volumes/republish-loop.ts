/** Loop: has the pods synced whose CSI drivers mount their volumes again while they run (`requiresRepublish`), or may have to expand them. */
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { callsDriver, type DriverSources, isCalled } from './driver-tokens.ts'

export type RepublishLoopNeeds = {
  readonly wanted: { readonly all: ReadonlyMap<string, Pod>; readonly desired: DriverSources | undefined }
  readonly workers: { add(uids: readonly string[]): void }
  readonly clock: Clock
}

export function republishLoop(
  { wanted, workers, clock }: RepublishLoopNeeds,
  { everyMs }: { readonly everyMs: number },
): { run(signal: AbortSignal): Promise<void> } {
  return {
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(everyMs, signal)
        const { claims = [], csiDrivers = [] } = wanted.desired ?? {}
        // Most machines have no such driver, and look at no pod.
        const isAsked = csiDrivers.some(isCalled) || claims.some(({ volume }) => isCalled(volume?.csi))
        if (signal.aborted || !isAsked) continue
        const due = [...wanted.all].filter(([, pod]) => callsDriver(pod, { claims, csiDrivers }))
        workers.add(due.map(([uid]) => uid))
      }
    },
  }
}
