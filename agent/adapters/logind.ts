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
} from '../shutdown/inhibitor.ts'
import { logindDelay } from './logind-delay.ts'
import { lockName, takeDelayLock } from './logind-lock.ts'
import { openSystemBus, type SystemBus, systemBusSocket } from './system-bus.ts'

export type LogindSettings = {
  /** `/`, or a folder with another machine's `run/` and `etc/`. */
  readonly root: string
  readonly deadlineMs?: number
}

const destination = 'org.freedesktop.login1'
const managerInterface = 'org.freedesktop.login1.Manager'
const manager = { destination, path: '/org/freedesktop/login1', interface: managerInterface }
const properties = 'org.freedesktop.DBus.Properties'
/** Shorter than the bus' own: a shutdown may begin meanwhile. */
const defaultDeadlineMs = 5_000

export function logind({ root, deadlineMs = defaultDeadlineMs }: LogindSettings): ShutdownInhibitor {
  const socketPath = join(root, systemBusSocket)
  return {
    // sd_booted(3), and a logind that is installed: on a machine without one the bus cannot start it.
    isHere: () =>
      existsSync(join(root, 'run/systemd/system')) &&
      existsSync(socketPath) &&
      logindUnits.some((unit) => existsSync(join(root, unit))),
    async open(listener) {
      const bus = await openSystemBus({ socketPath, deadlineMs })
      try {
        await bus.listen({ sender: destination, interface: managerInterface }, ({ member, body }) =>
          hear(listener, member, body),
        )
        // Another logind under that name.
        await bus.listen({ sender: 'org.freedesktop.DBus', interface: 'org.freedesktop.DBus' }, ({ member, body }) => {
          if (member === 'NameOwnerChanged' && body[0] === destination && body[2] !== '') listener.changed()
        })
      } catch (error) {
        bus.close()
        throw error
      }
      return sessionOn(bus, { root, socketPath, deadlineMs })
    },
  }
}

const logindUnits = ['usr/lib/systemd/system/systemd-logind.service', 'lib/systemd/system/systemd-logind.service']

/** From systemd 255 on there is a second signal that says what comes after; it comes with the first. */
function hear(listener: ShutdownListener, member: string, [isPreparing, more]: readonly unknown[]): void {
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
  const property = async (name: string): Promise<unknown> => {
    const call = { ...manager, interface: properties, member: 'Get', signature: 'ss', body: [managerInterface, name] }
    const [variant] = await bus.call(call)
    return (variant as { readonly value?: unknown } | undefined)?.value
  }
  const delayMs = async () => Number(await property('InhibitDelayMaxUSec')) / 1000
  const delay = logindDelay({ root, bus, delayMs })
  let child: number | undefined
  return {
    delayMs,
    isPreparing: async () => (await property('PreparingForShutdown')) === true,
    scheduled: async () => scheduledIn(await property('ScheduledShutdown')),
    async locks() {
      const [rows] = await bus.call({ ...manager, member: 'ListInhibitors' })
      return locksIn(rows, [process.pid, child])
    },
    askDelay: delay.ask,
    async takeLock() {
      const lock = await takeDelayLock({ socketPath, deadlineMs, manager })
      child = lock.pid
      return lock
    },
    ended: bus.ended,
    close: bus.close,
  }
}

/** In microseconds since 1970; '' and 0 when there is none. */
function scheduledIn(value: unknown): ScheduledShutdown | undefined {
  if (!Array.isArray(value)) return undefined
  const [action, microseconds] = value as readonly unknown[]
  const atWallMs = Number(microseconds) / 1000
  return typeof action === 'string' && action !== '' && atWallMs > 0 ? { action, atWallMs } : undefined
}

/** Rows of what (a list with colons), who, why, mode, uid, pid. */
function locksIn(rows: unknown, pids: readonly (number | undefined)[]): Locks {
  let ours = false
  const others: OtherLock[] = []
  for (const [what, who, why, mode, , pid] of Array.isArray(rows) ? (rows as unknown[][]) : []) {
    if (!String(what).split(':').includes('shutdown')) continue
    if (who === lockName && pids.includes(Number(pid))) ours = true
    else others.push({ who: String(who), why: String(why), mode: String(mode) })
  }
  return { ours, others }
}
