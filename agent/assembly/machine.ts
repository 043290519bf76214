/** The machine below the agent: its inventory, its boots, its kernel log and sensors, its date, and the folders for volumes. */
import { type Clock, systemClock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { type LoopWatch, loopWatch } from '../../daemon/watchdog/loop-watch.ts'
import { bootFile } from '../adapters/disk/boot-file.ts'
import { type VolumeFolders, volumeFolders } from '../adapters/disk/volume-store.ts'
import { type Inventory, readInventory } from '../adapters/kernel/host-inventory.ts'
import { kernelLog } from '../adapters/kernel/kernel-log.ts'
import { type MachineSensors, machineSensors } from '../adapters/kernel/machine-sensors.ts'
import { timeService } from '../adapters/systemd/time-service.ts'
import { type BootRecord, openBootRecord } from '../health/boot-record.ts'
import type { KernelLog } from '../health/kernel-log.ts'
import { assembleDate, type MachineDate } from './date.ts'

/** A loop that is busy with one thing for longer than this hangs: every call it makes has an earlier deadline. */
const hangsAfterMs = 3 * 60_000

export type MachineParts = {
  readonly root: string
  readonly dataDir: string
  /** The agent's own, PEM: it was issued in the past. */
  readonly certificate: string
  readonly log: Log
}

export type AgentMachine = {
  readonly inventory: Inventory
  readonly boot: BootRecord
  readonly kernel: KernelLog
  readonly sensors: MachineSensors
  readonly date: MachineDate
  readonly volumes: VolumeFolders
  readonly clock: Clock
  readonly watch: LoopWatch
  readonly random: () => number
  readonly loops: readonly Loop[]
}

export async function openMachine({ root, dataDir, certificate, log }: MachineParts): Promise<AgentMachine> {
  const clock = systemClock
  const inventory = await readInventory({ root, dataDirectory: dataDir })
  const boot = await openBootRecord(bootFile(dataDir), inventory.system.bootID)
  const watch = loopWatch(clock, hangsAfterMs)
  const kernel = kernelLog({ root, clock: watch.clockFor('kernel-log'), log })
  const otherTimeService = timeService({ root, clock })
  const sensors = machineSensors({ root, kernel, otherTimeService })
  const date = await assembleDate({ dataDir, certificate, sensors, clock, log })
  const volumes = await volumeFolders(dataDir)
  return {
    inventory,
    boot,
    kernel,
    sensors,
    date,
    volumes,
    clock,
    watch,
    random: Math.random,
    loops: [date.knownTime, otherTimeService, { name: 'kernel-log', run: kernel.run }],
  }
}
