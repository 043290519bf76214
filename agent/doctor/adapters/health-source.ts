/** The inputs of the health checks for a doctor that reads once and runs beside the agent. It writes nothing. */
import { systemClock } from '../../../daemon/clock.ts'
import { openLog } from '../../../daemon/log.ts'
import { bootFile } from '../../adapters/disk/boot-file.ts'
import { filesystemAccess } from '../../adapters/disk/filesystem-access.ts'
import { networkCheckpointPath, readSavedNetwork, readSavedObstacle } from '../../adapters/disk/network-checkpoint.ts'
import { readStarts, startsPath } from '../../adapters/disk/start-record.ts'
import { volumeFolders } from '../../adapters/disk/volume-store.ts'
import { kernelLog } from '../../adapters/kernel/kernel-log.ts'
import { machineSensors } from '../../adapters/kernel/machine-sensors.ts'
import { bootLastsMs } from '../../health/boot-loop.ts'
import { openedBoot, shortBoots } from '../../health/boot-state.ts'
import { type HealthSource, sharedReading } from '../../health/checks.ts'
import type { DockerReading } from '../../health/docker.ts'
import { filesystemWatch } from '../../health/filesystem-watch.ts'
import { kernelTroubles } from '../../health/kernel-trouble.ts'
import { podNetworkCheck } from '../../health/pod-network.ts'
import { restartsCheck } from '../../health/restarts.ts'
import { fleetNetworkReading } from '../../network/gate/network-obstacle.ts'
import type { DockerFacts, DockerSilent } from '../docker.ts'
import type { MachineFiles } from '../sources.ts'

export type HealthSourceNeeds = {
  /** `/`, or a saved tree. */
  readonly root: string
  readonly dataDirectory: string
  readonly files: MachineFiles
  readonly timeSynchronized: () => Promise<boolean | undefined>
  /** Rejects in a saved tree. */
  readonly docker: () => Promise<DockerFacts | DockerSilent>
  /** The end of the log of docker.service; undefined: the engine is another one. */
  readonly dockerLog: (() => Promise<readonly string[]>) | undefined
}

export async function doctorHealthSource(needs: HealthSourceNeeds): Promise<HealthSource> {
  const { root, dataDirectory, files, timeSynchronized, docker, dockerLog } = needs
  const uptimeMs = () => machineSensors({ root }).time().uptimeMs
  const over = new AbortController()
  // Read to its end, and no further: the first wait is the end.
  const sleep = async (ms: number) => {
    if (ms > 0) over.abort()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const clock = { ...systemClock, sleep }
  const kernel = kernelLog({ root, clock, log: silent, ...(root === '/' ? {} : { uptimeMs }) })
  const sensors = machineSensors({ root, kernel })
  const troubles = kernelTroubles({ kernel, isStuck: sensors.isStuck, clock })
  await kernel.run(over.signal)
  return {
    ...sensors,
    power: sharedReading(sensors.power),
    kernelTroubles: troubles,
    async filesystems() {
      if (!(await files.has('/proc/self/mountinfo'))) return []
      // Without lines of the kernel there is no reason to write.
      const access = filesystemAccess(root, dataDirectory)
      return filesystemWatch({ access, kernel: { subscribe: () => undefined }, clock: systemClock })()
    },
    docker: async () => dockerReading(await docker(), dockerLog),
    async fleetNetwork() {
      const folder = networkCheckpointPath(dataDirectory)
      return fleetNetworkReading((await readSavedNetwork(folder)) !== undefined, await readSavedObstacle(folder))
    },
    podNetworkProblem: () => Promise.reject(new Error(podNetworkCheck.unknown)),
    clock: async () => ({ synchronized: await timeSynchronized(), uptimeMs: uptimeMs(), controller: undefined }),
    async restarts() {
      const history = await bootFile(dataDirectory).read()
      if (history.boots.length === 0) throw new Error(restartsCheck.unknown)
      const bootID = (await files.text('/proc/sys/kernel/random/boot_id'))?.trim() ?? ''
      const upMs = uptimeMs()
      // The start record is in memory, so a saved tree has none.
      const folders = root === '/' ? await volumeFolders(dataDirectory) : undefined
      const starts = folders && (await readStarts(startsPath(folders.memoryDirectory)))
      return {
        agentStartsAgoMs: starts?.map((startMs) => upMs - startMs),
        dockerStartsAgoMs: [],
        shortBoots: upMs < bootLastsMs ? shortBoots(openedBoot(history, bootID).state) : 0,
      }
    },
  }
}

/** A single reading: an engine that does not answer now counts as silent for long enough. */
function dockerReading(answer: DockerFacts | DockerSilent, log: DockerReading['lastLines']): DockerReading {
  if (typeof answer !== 'string') return { version: answer.version, silence: undefined }
  const kind = answer === 'hangs' ? 'hangs' : 'refuses'
  const silence = { kind, sinceMs: Number.POSITIVE_INFINITY } as const
  return { version: undefined, silence, ...(log !== undefined && { lastLines: log }) }
}

const silent = openLog({ level: 'error', format: 'json', write: () => undefined })
