/** The machine shuts down: its pods stop in order, and the controller receives when the node is expected back. Reboots on request. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { openBootTime } from '../adapters/kernel/boot-time.ts'
import type { MqttControlPlane } from '../adapters/mqtt/mqtt-control-plane.ts'
import { logind } from '../adapters/systemd/logind.ts'
import { logindReboot } from '../adapters/systemd/logind-reboot.ts'
import { isUpgrading, systemJobs } from '../adapters/systemd/systemd-units.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { type GoingDown, goingDownAt, type StoppablePods } from '../shutdown/departure.ts'
import { type Goodbye, goodbyeFor } from '../shutdown/goodbye.ts'
import { rebootManager } from '../shutdown/reboot-manager.ts'
import { shutdownManager } from '../shutdown/shutdown-manager.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

/** The leave message: why the node leaves, and when it is expected back. */
export type Farewell = {
  /** For an agent that stops now. */
  now(): Promise<Goodbye>
  of(goingDown: GoingDown | undefined): Promise<Goodbye>
}

export type FarewellParts = {
  readonly root: string
  readonly board: Pick<AgentBoard, 'bootMs' | 'goingDown'>
  readonly clock: Clock
}

export function farewell({ root, board, clock }: FarewellParts): Farewell {
  const of = async (goingDown: GoingDown | undefined) =>
    goodbyeFor({ jobs: await systemJobs(root), goingDown, isUpgrading: isUpgrading(root), bootMs: board.bootMs.get() })
  return { of, now: () => of(goingDownAt(board.goingDown.get(), clock.monotonicMs())) }
}

export type ShutdownParts = {
  readonly root: string
  readonly dataDir: string
  readonly configuration: AgentConfiguration
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: AgentMachine
  readonly controlPlane: MqttControlPlane
  readonly pods: StoppablePods
  readonly goodbye: Farewell
  readonly event: (event: NodeEvent) => void
  readonly log: Log
}

export async function assembleShutdown(parts: ShutdownParts): Promise<readonly Loop[]> {
  const { root, dataDir, configuration, board, write, machine, controlPlane, pods, goodbye, event, log } = parts
  const { boot, clock, date, inventory, random, sensors, watch } = machine
  const uptimeMs = () => sensors.time().uptimeMs
  const bootTime = await openBootTime({
    dataDirectory: dataDir,
    rebooted: boot.rebooted,
    isConnected: () => controlPlane.connected,
    uptimeMs,
    clock,
    writes: write('bootMs'),
  })
  const shutdown = shutdownManager(
    {
      inhibitor: logind({ root }),
      pods,
      leaving: async (goingDown) => controlPlane.publishLeave(goingDown && (await goodbye.of(goingDown))),
      async reported(withinMs) {
        const untilMs = clock.monotonicMs() + withinMs
        while (!controlPlane.settled && clock.monotonicMs() < untilMs) await clock.sleep(20)
      },
      clock: watch.clockFor('shutdown'),
      random,
      log,
      recordEvent: event,
      writes: write('shutdownConditions', 'goingDown', 'departureReported'),
    },
    configuration.shutdown,
  )
  const reboot = rebootManager(
    {
      machine: logindReboot({ root }),
      reads: board,
      nowMs: date.estimatedMs,
      uptimeMs,
      clock: watch.clockFor('remote-reboot'),
      log,
      recordEvent: event,
    },
    { bootID: inventory.system.bootID, isEnabled: configuration.enableRemoteReboot },
  )
  return [shutdown, bootTime, reboot]
}
