/** The machine's own health: what it is looked at with, and Docker restarted where that may be done. */
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { LoopWatch } from '../../daemon/watchdog/loop-watch.ts'
import { filesystemAccess } from '../adapters/disk/filesystem-access.ts'
import { recordStart, startsPath } from '../adapters/disk/start-record.ts'
import type { MachineSensors } from '../adapters/kernel/machine-sensors.ts'
import { systemdUnits } from '../adapters/systemd/systemd-units.ts'
import type { RunRequest } from '../command-line.ts'
import type { AgentConfiguration } from '../configuration.ts'
import { bootLastsMs } from '../health/boot-loop.ts'
import type { BootRecord } from '../health/boot-record.ts'
import { scheduledChecks } from '../health/checks.ts'
import type { ControllerTime } from '../health/clock.ts'
import { dockerKeeper } from '../health/docker-keeper.ts'
import { filesystemWatch } from '../health/filesystem-watch.ts'
import { type HealthManager, healthManager } from '../health/health-manager.ts'
import type { KernelLog } from '../health/kernel-log.ts'
import { kernelTroubles } from '../health/kernel-trouble.ts'
import { startCounter } from '../health/restarts.ts'
import type { KnownTimeKeeper } from '../node/known-time.ts'
import type { NodeEvent } from '../node/node-event.ts'
import type { RuntimeHealth } from '../node/runtime-health.ts'

export type MachineHealthParts = {
  readonly request: RunRequest
  readonly configuration: AgentConfiguration
  readonly kernel: KernelLog
  readonly sensors: MachineSensors
  readonly health: RuntimeHealth
  readonly podNetworkProblem: () => Promise<string | undefined>
  readonly boot: BootRecord
  readonly knownTime: KnownTimeKeeper
  readonly theirTime: ControllerTime
  /** In memory: this agent's starts since the boot are counted beside it. */
  readonly memoryDirectory: string
  readonly watch: LoopWatch
  readonly clock: Clock
  readonly log: Log
  readonly tell: (event: NodeEvent) => void
  readonly changed: () => void
}

export type MachineHealth = { readonly conditions: HealthManager; readonly loops: readonly Loop[] }

export async function assembleMachineHealth(parts: MachineHealthParts): Promise<MachineHealth> {
  const { request, configuration, kernel, sensors, health, boot, knownTime, theirTime, watch, clock, log, tell } = parts
  const { dataDir, root } = request
  const starts = await recordStart(startsPath(parts.memoryDirectory), sensors.time().uptimeMs)
  const dockerStarts = startCounter(
    () => ({
      pid: isSystemDocker(request) ? sensors.dockerPid() : undefined,
      isSilent: health.silence() !== undefined,
    }),
    clock,
  )
  const conditions = healthManager({
    checks: scheduledChecks(
      {
        ...sensors,
        filesystems: filesystemWatch({ access: filesystemAccess(root, dataDir), kernel, clock }),
        docker: () => ({ version: health.info()?.version, silence: health.silence() }),
        podNetworkProblem: parts.podNetworkProblem,
        kernelTroubles: kernelTroubles({ kernel, isStuck: sensors.isStuck, clock }),
        clock: () => ({
          ...sensors.time(),
          controller: theirTime.difference(),
          behindKnownMs: knownTime.behindMs(),
        }),
        restarts: () => {
          const { uptimeMs } = sensors.time()
          void boot.update(uptimeMs)
          return {
            agentStartsAgoMs: starts?.map((startMs) => uptimeMs - startMs),
            dockerStartsAgoMs: dockerStarts.look(),
            // One that lasts ends the row.
            shortBoots: uptimeMs < bootLastsMs ? boot.shortBoots : 0,
          }
        },
      },
      configuration,
    ),
    clock: watch.clockFor('machine-health'),
    log,
    tell,
    changed: parts.changed,
  })
  const docker = dockerKeeper({
    silence: health.silence,
    services: systemdUnits({ root }),
    clock: watch.clockFor('docker-keeper'),
    log,
    tell,
  })
  return {
    conditions,
    loops: [
      { name: 'machine-health', run: conditions.run },
      ...(mayRestartDocker(request, configuration) ? [{ name: 'docker-keeper', run: docker.run }] : []),
    ],
  }
}

/** Of the system's own Docker only: another socket is another engine's, and whoever runs it looks after it. */
function mayRestartDocker(request: RunRequest, { restartDocker }: AgentConfiguration): boolean {
  return restartDocker && isSystemDocker(request)
}

function isSystemDocker({ dockerSocket }: RunRequest): boolean {
  return ['/var/run/docker.sock', '/run/docker.sock'].includes(dockerSocket)
}
