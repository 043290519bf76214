/** What is looked at, how often, and how long it must stay away to be over. */
import { type ClockReading, clockSynchronized } from './clock.ts'
import { type DockerReading, dockerHealth } from './docker.ts'
import { type FilesystemState, readOnlyFilesystem } from './filesystem.ts'
import type { Finding, HealthCheck } from './finding.ts'
import { type MemoryCgroupReading, memoryCgroup } from './memory-cgroup.ts'
import { podNetworkUnavailable } from './pod-network.ts'
import { type PowerReading, thermalThrottling, underVoltage } from './power.ts'
import { frequentRestarts, type RestartReading } from './restarts.ts'
import { type FlashDevice, storageWear } from './storage.ts'
import { highTemperature, type TemperatureReading } from './temperature.ts'
import { type RadioLink, weakWifi } from './wifi.ts'

/** What the checks need to be told of the machine. */
export interface SensorSource {
  power(): PowerReading
  temperature(): TemperatureReading
  flash(): readonly FlashDevice[]
  radio(): readonly RadioLink[]
  memoryCgroup(): MemoryCgroupReading | undefined
}

export type SensorSettings = {
  /** For every thermal zone, in the place of the hardware's own limits. */
  readonly highTemperatureCelsius: number | undefined
}

const seconds = 1_000
const minutes = 60 * seconds

export function sensorChecks(sensors: SensorSource, settings: SensorSettings): readonly HealthCheck[] {
  // One reading serves both: they are due in the same moment.
  let power: PowerReading | undefined
  const powerNow = () => {
    power = sensors.power()
    return power
  }
  return [
    { type: 'UnderVoltage', periodMs: 10 * seconds, holdMs: minutes, look: () => underVoltage(powerNow()) },
    {
      type: 'ThermalThrottling',
      periodMs: 10 * seconds,
      holdMs: minutes,
      look: () => thermalThrottling(power ?? powerNow()),
    },
    {
      type: 'HighTemperature',
      periodMs: 10 * seconds,
      riseMs: 20 * seconds,
      holdMs: minutes,
      look: remembering((was) => highTemperature(sensors.temperature(), settings.highTemperatureCelsius, was)),
    },
    { type: 'StorageWear', periodMs: 60 * minutes, holdMs: 0, look: () => storageWear(sensors.flash()) },
    {
      type: 'WeakWifi',
      periodMs: 10 * seconds,
      riseMs: minutes,
      holdMs: 2 * minutes,
      look: remembering((was) => weakWifi(sensors.radio(), was)),
    },
    {
      type: 'MemoryCgroupDisabled',
      periodMs: 10 * minutes,
      holdMs: 0,
      look: () => memoryCgroup(sensors.memoryCgroup()),
    },
  ]
}

export interface ServiceSource {
  filesystems(): Promise<readonly FilesystemState[]>
  docker(): DockerReading
  /** Why pods get no network; asked again where there was a problem. */
  podNetworkProblem(): Promise<string | undefined>
  /** See `kernelTroubles`. */
  kernel(): Finding | undefined
  clock(): ClockReading
  restarts(): RestartReading
}

export function serviceChecks(source: ServiceSource): readonly HealthCheck[] {
  const { filesystems, docker, podNetworkProblem, kernel, clock, restarts } = source
  return [
    {
      type: 'ReadOnlyFilesystem',
      periodMs: 5 * seconds,
      holdMs: 10 * seconds,
      unfit: true,
      look: async () => readOnlyFilesystem(await filesystems()),
    },
    { type: 'DockerUnhealthy', periodMs: 5 * seconds, holdMs: 5 * seconds, look: () => dockerHealth(docker()) },
    {
      type: 'PodNetworkUnavailable',
      periodMs: 10 * seconds,
      holdMs: 0,
      look: async () => podNetworkUnavailable(await podNetworkProblem()),
    },
    { type: 'KernelDeadlock', periodMs: 5 * seconds, holdMs: minutes, look: kernel },
    {
      type: 'ClockUnsynchronized',
      periodMs: 10 * seconds,
      riseMs: 20 * seconds,
      holdMs: 20 * seconds,
      look: () => clockSynchronized(clock()),
    },
    {
      type: 'FrequentRestarts',
      periodMs: 5 * seconds,
      holdMs: 5 * minutes,
      look: () => frequentRestarts(restarts()),
    },
  ]
}

/** Where it takes more to be well again than it took to be ill. */
function remembering(decide: (wasWrong: boolean) => Finding | undefined): () => Finding | undefined {
  let wasWrong = false
  return () => {
    const finding = decide(wasWrong)
    wasWrong = finding?.status === 'True'
    return finding
  }
}
