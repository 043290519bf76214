/** What the doctor asks systemd and its kin over D-Bus. Undefined: nobody answers, or not that. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { UnitReading } from '../doctor/shutdown.ts'
import { callOnce, openSystemBus, systemBusSocket } from './system-bus.ts'

const deadlineMs = 2_000
const properties = 'org.freedesktop.DBus.Properties'
const systemd = { destination: 'org.freedesktop.systemd1', path: '/org/freedesktop/systemd1' }
const manager = { ...systemd, interface: 'org.freedesktop.systemd1.Manager' }

export function doctorSystemd(root: string) {
  const settings = { socketPath: join(root, systemBusSocket), deadlineMs }
  // sd_booted(3).
  const isHere = () => existsSync(join(root, 'run/systemd/system')) && existsSync(settings.socketPath)

  const property = async (destination: string, path: string, name: readonly [string, string]) => {
    if (!isHere()) return undefined
    const call = { destination, path, interface: properties, member: 'Get', signature: 'ss', body: name }
    return callOnce(settings, call).then(([value]) => innerOf(value), nothing)
  }

  return {
    async unit(unit: string): Promise<UnitReading | undefined> {
      if (!isHere()) return undefined
      const bus = await openSystemBus(settings)
      try {
        const [path] = await bus.call({ ...manager, member: 'LoadUnit', signature: 's', body: [unit] })
        const read = async (kind: 'Unit' | 'Service', name: string) => {
          const body = [`org.freedesktop.systemd1.${kind}`, name]
          const call = { ...systemd, path: String(path), interface: properties, member: 'Get', signature: 'ss', body }
          return String(innerOf((await bus.call(call))[0]))
        }
        return {
          load: await read('Unit', 'LoadState'),
          active: await read('Unit', 'ActiveState'),
          file: await read('Unit', 'UnitFileState'),
          watchdogSeconds: spanOf(await read('Service', 'WatchdogUSec')),
        }
      } catch {
        return undefined
      } finally {
        bus.close()
      }
    },
    async logindDelaySeconds(): Promise<number | undefined> {
      const name = ['org.freedesktop.login1.Manager', 'InhibitDelayMaxUSec'] as const
      const microseconds = await property('org.freedesktop.login1', '/org/freedesktop/login1', name)
      return microseconds === undefined ? undefined : Number(microseconds) / 1e6
    },
    /** As the kernel says it, whoever sets the clock. */
    async timeSynchronized(): Promise<boolean | undefined> {
      const name = ['org.freedesktop.timedate1', 'NTPSynchronized'] as const
      const answer = await property('org.freedesktop.timedate1', '/org/freedesktop/timedate1', name)
      return typeof answer === 'boolean' ? answer : undefined
    },
    /** logind takes SIGHUP for that; where there is none there is nothing to do. */
    async reloadLogind(): Promise<void> {
      if (!isHere()) return
      const body = ['systemd-logind.service', 'main', 1]
      await callOnce(settings, { ...manager, member: 'KillUnit', signature: 'ssi', body })
    },
  }
}

/** The largest number there is means never. */
function spanOf(microseconds: string): number {
  const seconds = Number(microseconds) / 1e6
  return seconds < 1e12 ? seconds : 0
}

function innerOf(variant: unknown): unknown {
  return (variant as { readonly value?: unknown } | undefined)?.value
}

function nothing(): undefined {
  return undefined
}
