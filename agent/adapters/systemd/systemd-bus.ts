/** systemd and logind on the system bus: detection, names, and calls that several callers share. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BusObject, SystemBus } from './system-bus.ts'

/** `root`: `/`, or a folder with another machine's `run/`. */
export function systemBusPath(root: string): string {
  return join(root, 'run/dbus/system_bus_socket')
}

/** sd_booted(3), and a system bus. */
export function isSystemdHere(root: string): boolean {
  return existsSync(join(root, 'run/systemd/system')) && existsSync(systemBusPath(root))
}

const systemdName = 'org.freedesktop.systemd1'

export const systemdManager: BusObject = {
  destination: systemdName,
  path: '/org/freedesktop/systemd1',
  interface: `${systemdName}.Manager`,
}

export const logindManager: BusObject = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
}

const timeKeeper = 'org.freedesktop.timedate1'

/** From the kernel, whichever program sets the clock. */
export async function isKernelClockSet(bus: Pick<SystemBus, 'property'>): Promise<boolean> {
  const keeper = { destination: timeKeeper, path: '/org/freedesktop/timedate1', interface: timeKeeper }
  return (await bus.property(keeper, 'NTPSynchronized')) === true
}

/** Reads the properties of a unit, loading it: those of all units, or of services. */
export async function unitProperties(bus: SystemBus, unit: string) {
  const [path] = await bus.call({ ...systemdManager, member: 'LoadUnit', signature: 's', body: [unit] })
  return (name: string, kind: 'Unit' | 'Service' = 'Unit') =>
    bus.property({ destination: systemdName, path: String(path), interface: `${systemdName}.${kind}` }, name)
}

/** SIGHUP makes logind read its files again, asynchronously. */
export async function rereadLogindFiles(bus: Pick<SystemBus, 'call'>): Promise<void> {
  const body = ['systemd-logind.service', 'main', 1]
  await bus.call({ ...systemdManager, member: 'KillUnit', signature: 'ssi', body })
}
