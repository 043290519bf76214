/** Loop: looks at the node, and reports what changed, and now and then regardless. */

import type { NodeAddress, NodeStatus, PressureType } from '../../api/node.ts'
import { alarm } from '../../daemon/alarm.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { messageOf } from '../../daemon/errors.ts'
import type { Log } from '../../daemon/log.ts'
import {
  type Amounts,
  allocatableOf,
  capacityOf,
  type MachineCapacity,
  missingCapacity,
  type PodLimits,
} from './capacity.ts'
import { conditionEvents, type MachineCondition, nodeConditions } from './conditions.ts'
import type { ControlPlane } from './control-plane.ts'
import { type NodeEvent, nodeEvents } from './node-event.ts'
import { isWorthReporting, nodeStatus, type SystemFacts } from './node-status.ts'
import type { RuntimeHealth } from './runtime-health.ts'

export type NodeStatusNeeds = {
  readonly machine: MachineCapacity
  readonly system: SystemFacts
  /** The node's addresses now; rejects, with a reason, when there is none. */
  readonly addresses: () => Promise<readonly NodeAddress[]>
  /** Undefined until the machine was looked at for the first time. */
  readonly pressures: () => readonly PressureType[] | undefined
  /** The machine's own health. Undefined until it was looked at for the first time. */
  readonly machineHealth?: () => readonly MachineCondition[] | undefined
  /** Why the machine is not fit to run pods, each a sentence. */
  readonly machineProblems?: () => readonly string[]
  readonly runtime: Pick<RuntimeHealth, 'looked' | 'problems' | 'info' | 'images'>
  /** How many there are of each of the devices that pods may ask for. */
  readonly devices?: () => Promise<Amounts>
  readonly controlPlane: Pick<ControlPlane, 'reportNodeStatus' | 'confirmNodeStatus' | 'reportEvent'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type NodeStatusSettings = PodLimits & {
  readonly nodeName: string
  readonly agentVersion: string
  /** Reservations, and what lies below the hard eviction thresholds. */
  readonly reserved: readonly Amounts[]
  readonly updateMs: number
  readonly reportMs: number
  /** The machine was started since we last ran. */
  readonly rebooted: boolean
}

export interface NodeStatusManager {
  /** Something changed: look now. */
  wake(): void
  /** Look now, and report even if nothing changed. */
  report(): void
  /** The newest status; undefined before the first look. */
  status(): NodeStatus | undefined
  /** Tells of something that happened to the node. */
  tell(event: NodeEvent): void
  /** Resolves with the first status. */
  first(): Promise<NodeStatus>
  run(signal: AbortSignal): Promise<void>
}

/** Until there is a first status; whoever is waited for wakes us, too. */
const firstMs = 1_000

export function nodeStatusManager(needs: NodeStatusNeeds, settings: NodeStatusSettings): NodeStatusManager {
  const { machine, system, runtime, controlPlane, clock, random, log } = needs
  const { nodeName, agentVersion } = settings
  const capacity = capacityOf(machine, settings)
  const allocatable = allocatableOf(capacity, settings.reserved)
  const missing = missingCapacity(capacity)
  const unable = missing.length > 0 ? [`missing node capacity for resources: ${missing.join(', ')}`] : []

  const wake = alarm(clock)
  let status: NodeStatus | undefined
  let reported: NodeStatus | undefined
  let reportedMs = Number.NEGATIVE_INFINITY
  let addresses: readonly NodeAddress[] = []
  let addressTrouble: string | undefined
  let haveFirst: (status: NodeStatus) => void = () => undefined
  const first = new Promise<NodeStatus>((resolve) => {
    haveFirst = resolve
  })

  const tell = nodeEvents({ controlPlane, clock }, nodeName)

  /** Without an answer the old addresses stay. */
  const lookAtAddresses = async () => {
    try {
      addresses = await needs.addresses()
      addressTrouble = undefined
    } catch (error) {
      const trouble = messageOf(error)
      if (trouble !== addressTrouble) log.warn('Cannot tell the node its address', { error })
      addressTrouble = trouble
    }
  }

  const pass = async () => {
    const pressures = needs.pressures()
    const machineHealth = needs.machineHealth === undefined ? [] : needs.machineHealth()
    if (pressures === undefined || machineHealth === undefined || !runtime.looked()) return
    await lookAtAddresses()
    const before = status?.conditions ?? []
    const problems = [...runtime.problems(), ...(needs.machineProblems?.() ?? []), ...unable]
    const health = { pressures, problems, machine: machineHealth }
    const conditions = nodeConditions(before, health, rfc3339(clock.wallMs()))
    const devices = (await needs.devices?.()) ?? {}
    status = nodeStatus({
      capacity: { ...capacity, ...devices },
      allocatable: { ...allocatable, ...devices },
      addresses,
      system,
      agentVersion,
      runtimeVersion: runtime.info()?.version,
      images: runtime.images(),
      conditions,
    })
    haveFirst(status)
    reportIfDue(status)
    for (const reason of conditionEvents(before, conditions)) {
      log.info('Node condition changed', { reason })
      tell({ type: 'Normal', reason, message: `Node ${nodeName} status is now: ${reason}` })
    }
  }

  const reportIfDue = (next: NodeStatus) => {
    const nowMs = clock.monotonicMs()
    const isChanged = isWorthReporting(reported, next)
    if (!isChanged && nowMs - reportedMs < settings.reportMs) return
    if (isChanged || !controlPlane.confirmNodeStatus()) {
      controlPlane.reportNodeStatus(next)
      reported = next
    }
    reportedMs = nowMs
  }

  return {
    wake: () => wake.ring(),
    report() {
      reported = undefined
      wake.ring()
    },
    status: () => status,
    tell,
    first: () => first,
    async run(signal) {
      tell({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' })
      if (settings.rebooted) {
        const message = `Node ${nodeName} has been rebooted, boot id: ${system.bootID}`
        tell({ type: 'Warning', reason: 'Rebooted', message })
      }
      while (!signal.aborted) {
        await pass()
        await wake.sleep(status === undefined ? firstMs : settings.updateMs * (1 + 0.04 * random()), signal)
      }
    },
  }
}
