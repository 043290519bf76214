/**
 * All checks of the machine's health, in the order in which the node shows its conditions. The node and `bramble-agent doctor`
 * run the same list. A condition type without a check does not compile.
 */
import type { HealthConditionType } from '../../api/node.ts'
import { clockCheck } from './clock.ts'
import type { CheckSettings, ConditionCheck } from './condition-check.ts'
import { dockerCheck } from './docker.ts'
import { filesystemCheck } from './filesystem.ts'
import type { ScheduledCheck } from './health-manager.ts'
import { kernelDeadlockCheck } from './kernel-trouble.ts'
import { memoryCgroupCheck } from './memory-cgroup.ts'
import { fleetNetworkCheck, podNetworkCheck } from './pod-network.ts'
import { type PowerReading, thermalThrottlingCheck, underVoltageCheck } from './power.ts'
import { restartsCheck } from './restarts.ts'
import { storageWearCheck } from './storage.ts'
import { temperatureCheck } from './temperature.ts'
import { wifiCheck } from './wifi.ts'

const checksByType = {
  ReadOnlyFilesystem: filesystemCheck,
  DockerUnhealthy: dockerCheck,
  PodNetworkUnavailable: podNetworkCheck,
  FleetNetworkUnavailable: fleetNetworkCheck,
  KernelDeadlock: kernelDeadlockCheck,
  ClockUnsynchronized: clockCheck,
  FrequentRestarts: restartsCheck,
  UnderVoltage: underVoltageCheck,
  ThermalThrottling: thermalThrottlingCheck,
  HighTemperature: temperatureCheck,
  StorageWear: storageWearCheck,
  WeakWifi: wifiCheck,
  MemoryCgroupDisabled: memoryCgroupCheck,
} satisfies { readonly [Type in HealthConditionType]: ConditionCheck<never> }

type AnyCheck = (typeof checksByType)[HealthConditionType]

/** All sources that the checks read. */
export type HealthSource = AnyCheck extends ConditionCheck<infer Source> ? Source : never

export const healthChecks: readonly ConditionCheck<HealthSource>[] = Object.values(checksByType)

/** The checks as the node's loop runs them. Each keeps its own state. */
export function scheduledChecks(source: HealthSource, settings: CheckSettings): readonly ScheduledCheck[] {
  const shared = { ...source, power: sharedReading(() => source.power()) }
  return healthChecks.map(({ look, ...check }) => {
    let wasWrong = false
    return {
      ...check,
      look: async () => {
        const finding = await look(shared, { settings, wasWrong })
        wasWrong = finding?.status === 'True'
        return finding
      },
    }
  })
}

/** Reads once for all checks that are due at the same moment: a reading is compared with the one before it. */
export function sharedReading(read: () => PowerReading): () => PowerReading {
  let latest: PowerReading | undefined
  return () => {
    if (latest === undefined) {
      setImmediate(() => {
        latest = undefined
      })
    }
    latest ??= read()
    return latest
  }
}
