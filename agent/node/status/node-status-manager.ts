/** Loop: updates the status of the node, and reports changes at once and the unchanged status at an interval. */

import { shutdownProblem } from '../../../api/node/node-shutdown.ts'
import type { NodeAddress, NodeStatus, PressureType } from '../../../api/node.ts'
import { alarm } from '../../../daemon/alarm.ts'
import type { Cell, Reader } from '../../../daemon/cell.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import type { ControlPlane } from '../connection/control-plane.ts'
import {
  type Amounts,
  allocatableOf,
  capacityOf,
  type MachineCapacity,
  missingCapacity,
  type PodLimits,
} from './capacity.ts'
import { conditionEvents, type MachineCondition, type MachineHealth, nodeConditions } from './conditions.ts'
import type { NodeEvent } from './node-event.ts'
import { isWorthReporting, nodeStatus, type SystemFacts } from './node-status.ts'
import type { RuntimeHealth } from './runtime-health.ts'

export type NodeStatusNeeds = {
  readonly machine: MachineCapacity
  readonly system: SystemFacts
  /** The node's addresses now; rejects with a reason if there is none. */
  readonly addresses: () => Promise<readonly NodeAddress[]>
  /** The status waits for the first value of `pressures` and `machineHealth`. A change makes the loop update the status at once. */
  readonly reads: {
    readonly pressures: Reader<readonly PressureType[] | undefined>
    readonly machineHealth: Reader<MachineHealth | undefined>
    readonly runtime: Pick<RuntimeHealth, 'isChecked' | 'problems' | 'info' | 'images' | 'onChange'>
    readonly shutdownConditions: Reader<readonly MachineCondition[]>
    readonly networkConditions: Reader<readonly MachineCondition[]>
    readonly volumesInUse: Reader<readonly string[] | undefined>
    readonly updateConditions: Reader<readonly MachineCondition[]>
    readonly osConditions: Reader<readonly MachineCondition[]>
    /** undefined: the machine stays. Without a notification of its own: a node that reports NotReady before its leave loses its pods. See `departureReported`. */
    readonly goingDown: Pick<Reader<object | undefined>, 'get'>
    readonly departureReported: Reader<object | undefined>
  }
  readonly writes: { readonly nodeStatus: Cell<NodeStatus | undefined> }
  readonly event: (event: NodeEvent) => void
  /** Number of devices of each resource that pods may request. */
  readonly devices?: () => Promise<Amounts>
  readonly controlPlane: Pick<ControlPlane, 'reportNodeStatus' | 'confirmNodeStatus'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export type NodeStatusSettings = PodLimits & {
  readonly nodeName: string
  readonly agentVersion: string
  /** Reservations, and the parts below the hard eviction thresholds. */
  readonly reserved: readonly Amounts[]
  readonly updateMs: number
  readonly reportMs: number
  /** The machine was restarted since the agent last ran. */
  readonly rebooted: boolean
}

export interface NodeStatusManager extends Loop {
  /** Updates the status now: the node may have another address, for example. */
  update(): void
  /** The same, and reports it even if nothing changed. */
  report(): void
}

/** Until there is a first status; changes of its inputs wake the loop, too. */
const firstMs = 1_000

export function nodeStatusManager(needs: NodeStatusNeeds, settings: NodeStatusSettings): NodeStatusManager {
  const { machine, system, reads, writes, event, controlPlane, clock, random, log } = needs
  const { runtime } = reads
  const { nodeName, agentVersion } = settings
  const capacity = capacityOf(machine, settings)
  const allocatable = allocatableOf(capacity, settings.reserved)
  const missing = missingCapacity(capacity)
  const lacking = missing.length > 0 ? [`missing node capacity for resources: ${missing.join(', ')}`] : []

  const wake = alarm(clock)
  let reported: NodeStatus | undefined
  let reportedMs = Number.NEGATIVE_INFINITY
  let addresses: readonly NodeAddress[] = []
  let addressFailure: string | undefined
  const { shutdownConditions, networkConditions, updateConditions, osConditions } = reads
  const conditions = [shutdownConditions, networkConditions, updateConditions, osConditions]
  const inputs = [reads.pressures, reads.machineHealth, ...conditions, reads.departureReported, reads.volumesInUse]
  for (const input of inputs) input.onChange(wake.ring)
  runtime.onChange(wake.ring)

  /** After a failure the old addresses stay. */
  const updateAddresses = async () => {
    try {
      addresses = await needs.addresses()
      addressFailure = undefined
    } catch (error) {
      const failure = messageOf(error)
      if (failure !== addressFailure) log.warn('The address of this node cannot be determined', { error })
      addressFailure = failure
    }
  }

  const pass = async () => {
    const pressures = reads.pressures.get()
    const machineHealth = reads.machineHealth.get()
    if (pressures === undefined || machineHealth === undefined || !runtime.isChecked()) return
    await updateAddresses()
    const before = writes.nodeStatus.get()?.conditions ?? []
    const leaving = reads.goingDown.get() === undefined ? [] : [shutdownProblem]
    const problems = [...runtime.problems(), ...machineHealth.problems, ...leaving, ...lacking]
    const { conditions: ofHealth } = machineHealth
    const ofUpdates = [...updateConditions.get(), ...osConditions.get()]
    const machine = [...networkConditions.get(), ...ofHealth, ...ofUpdates, ...shutdownConditions.get()]
    const health = { pressures, problems, machine }
    const conditions = nodeConditions(before, health, rfc3339(clock.wallMs()))
    const devices = (await needs.devices?.()) ?? {}
    const status = nodeStatus({
      capacity: { ...capacity, ...devices },
      allocatable: { ...allocatable, ...devices },
      addresses,
      system,
      agentVersion,
      runtimeVersion: runtime.info()?.version,
      runtimeHandlers: runtime.info()?.handlers,
      images: runtime.images(),
      conditions,
      volumesInUse: reads.volumesInUse.get(),
    })
    writes.nodeStatus.set(status)
    reportIfDue(status)
    for (const reason of conditionEvents(before, conditions)) {
      log.info('Node condition changed', { reason })
      event({ type: 'Normal', reason, message: `Node ${nodeName} status is now: ${reason}` })
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
    name: 'node-status',
    update: wake.ring,
    report() {
      reported = undefined
      wake.ring()
    },
    async run(signal) {
      event({ type: 'Normal', reason: 'Starting', message: 'Starting kubelet.' })
      if (settings.rebooted) {
        const message = `Node ${nodeName} has been rebooted, boot id: ${system.bootID}`
        event({ type: 'Warning', reason: 'Rebooted', message })
      }
      while (!signal.aborted) {
        await pass()
        const isUnknown = writes.nodeStatus.get() === undefined
        await wake.sleep(isUnknown ? firstMs : settings.updateMs * (1 + 0.04 * random()), signal)
      }
    },
  }
}
