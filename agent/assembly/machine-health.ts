/** Checks of the machine's health, and the restart of Docker where that is allowed. */
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import { filesystemAccess } from '../adapters/disk/filesystem-access.ts'
import { recordStart, startsPath } from '../adapters/disk/start-record.ts'
import { systemdUnits } from '../adapters/systemd/systemd-units.ts'
import { unitLog } from '../adapters/systemd/unit-log.ts'
import type { RunRequest } from '../command-line.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { bootLastsMs } from '../health/boot-loop.ts'
import { scheduledChecks } from '../health/checks.ts'
import { isSystemDocker } from '../health/docker.ts'
import { dockerKeeper } from '../health/docker-keeper.ts'
import { filesystemWatch } from '../health/filesystem-watch.ts'
import { healthManager } from '../health/health-manager.ts'
import { kernelTroubles } from '../health/kernel-trouble.ts'
import { startCounter } from '../health/restarts.ts'
import { fleetNetworkReading } from '../network/gate/network-obstacle.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import type { RuntimeHealth } from '../node/status/runtime-health.ts'
import type { AgentBoard, WriteEnds } from './board.ts'
import type { AgentMachine } from './machine.ts'

export type MachineHealthParts = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  readonly board: AgentBoard
  readonly write: WriteEnds
  readonly machine: AgentMachine
  readonly health: RuntimeHealth
  readonly podNetworkProblem: () => Promise<string | undefined>
  readonly event: (event: NodeEvent) => void
  readonly log: Log
}

export async function assembleMachineHealth(parts: MachineHealthParts): Promise<readonly Loop[]> {
  const { request, configuration, board, write, machine, health, event, log } = parts
  const { boot, clock, kernel, sensors, watch } = machine
  const { knownTime, controllerClock } = machine.date
  const { dataDir, root } = request
  // In memory: the starts of the agent since the boot.
  const starts = await recordStart(startsPath(machine.volumes.memoryDirectory), sensors.time().uptimeMs)
  const dockerStarts = startCounter(
    () => ({
      pid: isSystemDocker(request.dockerSocket) ? sensors.dockerPid() : undefined,
      isSilent: health.silence() !== undefined,
    }),
    clock,
  )
  const dockerLog = unitLog('docker.service', { clock })
  const conditions = healthManager({
    checks: scheduledChecks(
      {
        ...sensors,
        filesystems: filesystemWatch({ access: filesystemAccess(root, dataDir), kernel, clock }),
        docker: () => ({
          version: health.info()?.version,
          silence: health.silence(),
          rootDirectory: health.info()?.rootDirectory,
          ...(isSystemDocker(request.dockerSocket) && { lastLines: dockerLog }),
        }),
        podNetworkProblem: parts.podNetworkProblem,
        fleetNetwork: () => fleetNetworkReading(board.fleetNetwork.get() !== undefined, board.networkObstacle.get()),
        kernelTroubles: kernelTroubles({ kernel, isStuck: sensors.isStuck, clock }),
        clock: () => ({
          ...sensors.time(),
          controller: controllerClock.difference(),
          behindKnownMs: knownTime.behindMs(),
        }),
        restarts: () => {
          const { uptimeMs } = sensors.time()
          void boot.update(uptimeMs)
          return {
            agentStartsAgoMs: starts?.map((startMs) => uptimeMs - startMs),
            dockerStartsAgoMs: dockerStarts.look(),
            // A boot that lasts ends a series of short ones.
            shortBoots: uptimeMs < bootLastsMs ? boot.shortBoots : 0,
          }
        },
      },
      configuration,
    ),
    clock: watch.clockFor('machine-health'),
    log,
    recordEvent: event,
    writes: write('machineHealth'),
  })
  const docker = dockerKeeper({
    silence: health.silence,
    services: systemdUnits({ root }),
    clock: watch.clockFor('docker-keeper'),
    log,
    recordEvent: event,
  })
  return [conditions, ...(mayRestartDocker(request, configuration) ? [{ name: 'docker-keeper', run: docker.run }] : [])]
}

/** Only the system's own Docker: another socket belongs to an engine that is managed elsewhere. */
function mayRestartDocker(request: RunRequest, { restartDocker }: AgentConfiguration): boolean {
  return restartDocker && isSystemDocker(request.dockerSocket)
}
