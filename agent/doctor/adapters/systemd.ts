/** The doctor's reads of systemd, logind and timedated over D-Bus. Undefined: no answer, or an answer of another type. */
import { setTimeout as pause } from 'node:timers/promises'
import { onSystemBus, type SystemBus } from '../../adapters/systemd/system-bus.ts'
import {
  isKernelClockSet,
  isSystemdHere,
  logindManager,
  rereadLogindFiles,
  systemBusPath,
  unitProperties,
} from '../../adapters/systemd/systemd-bus.ts'
import type { UnitReading } from '../shutdown.ts'

const answerMs = 2_000
/** Wait after the signal: logind handles it asynchronously. */
const rereadMs = 2_000

/** `waitMs`: for an answer, and for logind to read its files. Default: 2 s each. */
export function doctorSystemd(root: string, waitMs?: number) {
  const settings = { socketPath: systemBusPath(root), deadlineMs: waitMs ?? answerMs }
  const asked = async <T>(ask: (bus: SystemBus) => Promise<T>): Promise<T | undefined> => {
    if (!isSystemdHere(root)) return undefined
    return await onSystemBus(settings, ask).catch(() => undefined)
  }

  return {
    unit: (unit: string): Promise<UnitReading | undefined> =>
      asked(async (bus) => {
        const read = await unitProperties(bus, unit)
        return {
          load: String(await read('LoadState')),
          active: String(await read('ActiveState')),
          file: String(await read('UnitFileState')),
          watchdogSeconds: spanOf(String(await read('WatchdogUSec', 'Service'))),
        }
      }),
    async logindDelaySeconds(): Promise<number | undefined> {
      const microseconds = await asked((bus) => bus.property(logindManager, 'InhibitDelayMaxUSec'))
      return microseconds === undefined ? undefined : Number(microseconds) / 1e6
    },
    timeSynchronized: () => asked(isKernelClockSet),
    /** Resolves when logind grants another delay than before, or after a wait. Does nothing where there is no logind. */
    async reloadLogind(): Promise<void> {
      if (!isSystemdHere(root)) return
      await onSystemBus(settings, async (bus) => {
        const granted = async () => String(await bus.property(logindManager, 'InhibitDelayMaxUSec'))
        const before = await granted()
        await rereadLogindFiles(bus)
        const untilMs = performance.now() + (waitMs ?? rereadMs)
        while ((await granted()) === before && performance.now() < untilMs) await pause(50)
      })
    },
  }
}

/** D-Bus reports "never" as the largest number. */
function spanOf(microseconds: string): number {
  const seconds = Number(microseconds) / 1e6
  return seconds < 1e12 ? seconds : 0
}
