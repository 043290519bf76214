/** Units and jobs of systemd, on its D-Bus interface. Starts no `systemctl`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { UnitController } from '../../health/unit-controller.ts'
import type { SystemJob } from '../../shutdown/goodbye.ts'
import { type BusSettings, onSystemBus } from './system-bus.ts'
import { isSystemdHere, systemBusPath, systemdManager, unitProperties } from './systemd-bus.ts'

export type SystemdSettings = Pick<BusSettings, 'deadlineMs'> & {
  /** `/`, or a folder with another machine's `run/`. */
  readonly root: string
}

export function systemdUnits({ root, ...more }: SystemdSettings): UnitController {
  const settings = { socketPath: systemBusPath(root), ...more }
  return {
    isAvailable: () => isSystemdHere(root),
    state: (unit) =>
      onSystemBus(settings, async (bus) => {
        const read = await unitProperties(bus, unit)
        return { load: String(await read('LoadState')), active: String(await read('ActiveState')) }
      }),
    async restart(unit) {
      const call = { ...systemdManager, member: 'RestartUnit', signature: 'ss', body: [unit, 'replace'] }
      await onSystemBus(settings, (bus) => bus.call(call))
    },
  }
}

/** Short, because the agent is being stopped meanwhile. */
const jobsMs = 1_000

/** The jobs in systemd's queue. Empty without systemd, or if it does not answer in time. */
export async function systemJobs(root: string): Promise<readonly SystemJob[]> {
  if (!isSystemdHere(root)) return []
  try {
    const settings = { socketPath: systemBusPath(root), deadlineMs: jobsMs }
    const [rows] = await onSystemBus(settings, (bus) => bus.call({ ...systemdManager, member: 'ListJobs' }))
    return (Array.isArray(rows) ? (rows as unknown[][]) : []).map(([, unit, type]) => ({
      unit: String(unit),
      type: String(type),
    }))
  } catch {
    return []
  }
}

/** The package's maintainer scripts create this mark during an upgrade. */
export function isUpgrading(root: string): boolean {
  return existsSync(join(root, 'run/bramble/agent-upgrade'))
}
