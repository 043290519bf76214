/** ServiceManager on systemd's D-Bus interface. Starts no `systemctl`. */
import type { ServiceManager } from '../../health/service-manager.ts'
import { type BusSettings, onSystemBus } from './system-bus.ts'
import { isSystemdHere, systemBusPath, systemdManager, unitProperties } from './systemd-bus.ts'

export type SystemdSettings = Pick<BusSettings, 'deadlineMs'> & {
  /** `/`, or a folder with another machine's `run/`. */
  readonly root: string
}

export function systemdServices({ root, ...more }: SystemdSettings): ServiceManager {
  const settings = { socketPath: systemBusPath(root), ...more }
  return {
    isHere: () => isSystemdHere(root),
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
