/** ServiceManager on systemd's D-Bus interface. Starts no `systemctl`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ServiceManager } from '../health/service-manager.ts'
import { openSystemBus, systemBusSocket } from './system-bus.ts'

export type SystemdSettings = {
  /** `/`, or a folder with another machine's `run/`. */
  readonly root: string
  readonly deadlineMs?: number
}

const destination = 'org.freedesktop.systemd1'
const manager = { destination, path: '/org/freedesktop/systemd1', interface: 'org.freedesktop.systemd1.Manager' }
const properties = 'org.freedesktop.DBus.Properties'

export function systemdServices({ root, deadlineMs }: SystemdSettings): ServiceManager {
  const socketPath = join(root, systemBusSocket)
  const open = () => openSystemBus({ socketPath, ...(deadlineMs === undefined ? {} : { deadlineMs }) })
  return {
    // sd_booted(3).
    isHere: () => existsSync(join(root, 'run/systemd/system')) && existsSync(socketPath),
    async state(unit) {
      const bus = await open()
      try {
        const [path] = await bus.call({ ...manager, member: 'LoadUnit', signature: 's', body: [unit] })
        const read = async (name: string) => {
          const body = ['org.freedesktop.systemd1.Unit', name]
          const call = { destination, path: String(path), interface: properties, member: 'Get', signature: 'ss', body }
          const [value] = await bus.call(call)
          return String((value as { readonly value?: unknown } | undefined)?.value)
        }
        return { load: await read('LoadState'), active: await read('ActiveState') }
      } finally {
        bus.close()
      }
    },
    async restart(unit) {
      const bus = await open()
      try {
        await bus.call({ ...manager, member: 'RestartUnit', signature: 'ss', body: [unit, 'replace'] })
      } finally {
        bus.close()
      }
    },
  }
}
