/** systemd and logind on the system bus: whether they are there, by what names, and what more than one of us asks of them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BusObject, SystemBus } from './system-bus.ts'

/** `root`: `/`, or a folder with another machine's `run/`. */
export function systemBusPath(root: string): string {
  return join(root, 'run/dbus/system_bus_socket')
}

/** sd_booted(3), and a bus to speak with it. */
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

/** As the kernel reports it, whichever program sets the clock. */
export async function isKernelClockSet(bus: Pick<SystemBus, 'property'>): Promise<boolean> {
  const keeper = { destination: timeKeeper, path: '/org/freedesktop/timedate1', interface: timeKeeper }
  return (await bus.property(keeper, 'NTPSynchronized')) === true
}

/** Reads properties of a unit, loading it: those of all kinds of units, or of services only. */
export async function unitProperties(bus: SystemBus, unit: string) {
  const [path] = await bus.call({ ...systemdManager, member: 'LoadUnit', signature: 's', body: [unit] })
  return (name: string, kind: 'Unit' | 'Service' = 'Unit') =>
    bus.property({ destination: systemdName, path: String(path), interface: `${systemdName}.${kind}` }, name)
}

/** It takes SIGHUP for that, and has done it a moment later. */
export async function rereadLogindFiles(bus: Pick<SystemBus, 'call'>): Promise<void> {
  const body = ['systemd-logind.service', 'main', 1]
  await bus.call({ ...systemdManager, member: 'KillUnit', signature: 'ssi', body })
}
