/** A source of the health checks with sensors only: all other readings reject. */
import type { HealthSource } from '../health/checks.ts'

type Sensors = Pick<HealthSource, 'power' | 'temperature' | 'flash' | 'radio' | 'memoryCgroup'>

/** `more`: readings that replace the rejecting ones. */
export function sourceOf(sensors: Sensors, more: Partial<HealthSource> = {}): HealthSource {
  return {
    ...sensors,
    filesystems: async () => [],
    docker: () => ({ version: undefined, silence: undefined }),
    podNetworkProblem: () => Promise.reject(new Error('Nothing is known of the network of pods')),
    fleetNetwork: () => undefined,
    kernelTroubles: () => ({ troubles: [], isReadable: false }),
    clock: () => ({ synchronized: undefined, uptimeMs: 0, controller: undefined }),
    restarts: () => Promise.reject(new Error('No starts are recorded')),
    ...more,
  }
}
