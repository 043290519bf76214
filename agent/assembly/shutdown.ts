/** The machine goes down: its pods are stopped in order, its leave is taken, and when it is back is known from its last boot. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { LoopWatch } from '../../daemon/watchdog/loop-watch.ts'
import { type BootTime, openBootTime } from '../adapters/kernel/boot-time.ts'
import type { MachineSensors } from '../adapters/kernel/machine-sensors.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import { logind } from '../adapters/systemd/logind.ts'
import { isUpgrading, systemJobs } from '../adapters/systemd/systemd-units.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { GoingDown, StoppablePods } from '../shutdown/departure.ts'
import { type Goodbye, goodbyeFor } from '../shutdown/goodbye.ts'
import type { ShutdownSettings } from '../shutdown/shutdown-groups.ts'
import { type ShutdownManager, shutdownManager } from '../shutdown/shutdown-manager.ts'

export type ShutdownParts = {
  readonly root: string
  readonly dataDir: string
  readonly rebooted: boolean
  readonly settings: ShutdownSettings
  readonly controlPlane: MqttControlPlane
  readonly sensors: MachineSensors
  readonly pods: StoppablePods
  readonly watch: LoopWatch
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly tell: (event: NodeEvent) => void
  readonly changed: () => void
}

export type Shutdown = {
  readonly shutdown: ShutdownManager
  readonly bootTime: BootTime
  /** What is said when the agent ends, as far as anybody knows why. */
  readonly goodbye: (goingDown: GoingDown | undefined) => Promise<Goodbye>
}

export async function assembleShutdown(parts: ShutdownParts): Promise<Shutdown> {
  const { root, dataDir, rebooted, settings, controlPlane, sensors, pods, watch, clock, random, log } = parts
  const { tell, changed } = parts
  const bootTime = await openBootTime({
    dataDirectory: dataDir,
    rebooted,
    isConnected: () => controlPlane.connected,
    uptimeMs: () => sensors.time().uptimeMs,
    clock,
  })
  const goodbye = async (goingDown: GoingDown | undefined): Promise<Goodbye> =>
    goodbyeFor({ jobs: await systemJobs(root), goingDown, isUpgrading: isUpgrading(root), bootMs: bootTime.ms })
  const shutdown = shutdownManager(
    {
      inhibitor: logind({ root }),
      pods,
      leaving: async (goingDown) => controlPlane.takeLeave(goingDown && (await goodbye(goingDown))),
      async reported(withinMs) {
        const untilMs = clock.monotonicMs() + withinMs
        while (!controlPlane.settled && clock.monotonicMs() < untilMs) await clock.sleep(20)
      },
      clock: watch.clockFor('shutdown'),
      random,
      log,
      tell,
      changed,
    },
    settings,
  )
  return { shutdown, bootTime, goodbye }
}
