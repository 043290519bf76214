/** ShutdownInhibitor on logind's D-Bus interface. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type {
  Locks,
  OtherLock,
  ScheduledShutdown,
  ShutdownInhibitor,
  ShutdownListener,
  ShutdownSession,
} from '../../shutdown/inhibitor.ts'
import { logindDelay } from './logind-delay.ts'
import { lockName, takeDelayLock } from './logind-lock.ts'
import { openSystemBus, type SystemBus } from './system-bus.ts'
import { isSystemdHere, logindManager, systemBusPath } from './systemd-bus.ts'

export type LogindSettings = {
  /** `/`, or a folder with another machine's `run/` and `etc/`. */
  readonly root: string
  readonly deadlineMs?: number
}

/** Shorter than the default of the bus: a shutdown may begin meanwhile. */
const defaultDeadlineMs = 5_000

export function logind({ root, deadlineMs = defaultDeadlineMs }: LogindSettings): ShutdownInhibitor {
  const socketPath = systemBusPath(root)
  return {
    // logind must be installed: on a machine without it, the bus cannot start it.
    isAvailable: () => isSystemdHere(root) && logindUnits.some((unit) => existsSync(join(root, unit))),
    async open(listener) {
      const bus = await openSystemBus({ socketPath, deadlineMs })
      try {
        await bus.listen({ sender: logindName, interface: logindManager.interface }, ({ member, body }) =>
          onSignal(listener, member, body),
        )
        // Another process took the name of logind.
        const names = { sender: 'org.freedesktop.DBus', interface: 'org.freedesktop.DBus', first: logindName }
        await bus.listen(names, ({ member, body }) => {
          if (member === 'NameOwnerChanged' && body[0] === logindName && body[2] !== '') listener.changed()
        })
      } catch (error) {
        bus.close()
        throw error
      }
      return sessionOn(bus, { root, socketPath, deadlineMs })
    },
  }
}

const logindName = logindManager.destination
const logindUnits = ['usr/lib/systemd/system/systemd-logind.service', 'lib/systemd/system/systemd-logind.service']

/** systemd 255 and later also send a signal with the action, just before this one. */
function onSignal(listener: ShutdownListener, member: string, [isPreparing, more]: readonly unknown[]): void {
  if (member === 'PrepareForShutdown') listener.preparing(isPreparing === true, undefined)
  if (member === 'PrepareForShutdownWithMetadata') listener.preparing(isPreparing === true, actionIn(more))
}

function actionIn(metadata: unknown): string | undefined {
  const { type } = (metadata ?? {}) as { readonly type?: { readonly value?: unknown } }
  return typeof type?.value === 'string' ? type.value : undefined
}

function sessionOn(
  bus: SystemBus,
  { root, socketPath, deadlineMs }: Required<LogindSettings> & { readonly socketPath: string },
): ShutdownSession {
  const property = (name: string) => bus.property(logindManager, name)
  const delayMs = async () => Number(await property('InhibitDelayMaxUSec')) / 1000
  return {
    isPreparing: async () => (await property('PreparingForShutdown')) === true,
    scheduled: async () => scheduledIn(await property('ScheduledShutdown')),
    // Set also for a shutdown that was not scheduled, while it is being prepared: observed from systemd 252 on.
    action: async () => actionOf(await property('ScheduledShutdown')),
    async locks(own) {
      const [rows] = await bus.call({ ...logindManager, member: 'ListInhibitors' })
      return locksIn(rows, own?.pid)
    },
    configureDelay: logindDelay({ root, bus, delayMs }).ask,
    takeLock: () => takeDelayLock({ socketPath, deadlineMs }),
    ended: bus.ended,
    close: bus.close,
  }
}

/** In microseconds since 1970; 0 for now, '' without a scheduled shutdown. */
function scheduledIn(value: unknown): ScheduledShutdown | undefined {
  const [action, microseconds] = [actionOf(value), Array.isArray(value) ? Number(value[1]) : 0]
  return action !== undefined && microseconds > 0 ? { action, atWallMs: microseconds / 1000 } : undefined
}

function actionOf(value: unknown): string | undefined {
  const [action]: readonly unknown[] = Array.isArray(value) ? value : []
  return typeof action === 'string' && action !== '' ? action : undefined
}

/** The locks on shutdowns in the reply of ListInhibitors: rows of what (separated by colons), who, why, mode, uid, pid. */
export function locksIn(rows: unknown, ownPid: number | undefined): Locks {
  let isHeld = false
  const others: OtherLock[] = []
  for (const [what, who, why, mode, , pid] of Array.isArray(rows) ? (rows as unknown[][]) : []) {
    if (!String(what).split(':').includes('shutdown')) continue
    if (who === lockName && Number(pid) === ownPid) isHeld = true
    else others.push({ who: String(who), why: String(why), mode: String(mode) })
  }
  return { isHeld, others }
}
