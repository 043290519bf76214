/** Pressure and health → node conditions, with the kubelet's reasons and messages (pkg/kubelet/nodestatus/setters.go). */
import type { NodeCondition, PressureType } from '../../../api/node.ts'

type ConditionText = { readonly reason: string; readonly message: string; readonly event: string }

const pressureTexts: {
  readonly [Type in PressureType]: { readonly True: ConditionText; readonly False: ConditionText }
} = {
  MemoryPressure: {
    True: {
      reason: 'KubeletHasInsufficientMemory',
      message: 'kubelet has insufficient memory available',
      event: 'NodeHasInsufficientMemory',
    },
    False: {
      reason: 'KubeletHasSufficientMemory',
      message: 'kubelet has sufficient memory available',
      event: 'NodeHasSufficientMemory',
    },
  },
  DiskPressure: {
    True: {
      reason: 'KubeletHasDiskPressure',
      message: 'kubelet has disk pressure',
      event: 'NodeHasDiskPressure',
    },
    False: {
      reason: 'KubeletHasNoDiskPressure',
      message: 'kubelet has no disk pressure',
      event: 'NodeHasNoDiskPressure',
    },
  },
  PIDPressure: {
    True: {
      reason: 'KubeletHasInsufficientPID',
      message: 'kubelet has insufficient PID available',
      event: 'NodeHasInsufficientPID',
    },
    False: {
      reason: 'KubeletHasSufficientPID',
      message: 'kubelet has sufficient PID available',
      event: 'NodeHasSufficientPID',
    },
  },
}

export type ConditionFacts = {
  readonly pressures: readonly PressureType[]
  /** Why the node is not Ready, as sentences; empty if it is. */
  readonly problems: readonly string[]
  /** Conditions of the machine's health. */
  readonly machine?: readonly MachineCondition[]
}

export type MachineCondition = Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>

/** What the checks of the machine found. */
export type MachineHealth = {
  /** In the order of the checks. */
  readonly conditions: readonly MachineCondition[]
  /** Why the machine is not fit to run pods, each a sentence. */
  readonly problems: readonly string[]
}

/** The node's conditions in the order of the kubelet, then the machine's, Ready last. `now` is RFC 3339. */
export function nodeConditions(
  previous: readonly NodeCondition[],
  { pressures, problems, machine = [] }: ConditionFacts,
  now: string,
): readonly NodeCondition[] {
  const pressing = (['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const).map((type) => {
    const status = pressures.includes(type) ? 'True' : 'False'
    return condition(previous, { type, status, ...textOf(pressureTexts[type][status]) }, now)
  })
  const others = machine.map((found) => condition(previous, found, now))
  return [...pressing, ...others, condition(previous, { type: 'Ready', ...readiness(problems) }, now)]
}

function readiness(problems: readonly string[]): Pick<NodeCondition, 'status' | 'reason' | 'message'> {
  const [first, ...more] = problems
  if (first === undefined) {
    return { status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
  }
  const message = more.length === 0 ? first : `[${problems.join(', ')}]`
  return { status: 'False', reason: 'KubeletNotReady', message }
}

/** `lastTransitionTime` changes with the status only. */
function condition(previous: readonly NodeCondition[], next: NodeCondition, now: string): NodeCondition {
  const before = previous.find(({ type }) => type === next.type)
  const since = before?.status === next.status ? before.lastTransitionTime : undefined
  return { ...next, lastHeartbeatTime: now, lastTransitionTime: since ?? now }
}

function textOf({ reason, message }: ConditionText): Pick<NodeCondition, 'reason' | 'message'> {
  return { reason, message }
}

/**
 * The reasons of the Events for changed conditions; the machine's conditions have Events of their own. Without previous
 * conditions, all are changes.
 */
export function conditionEvents(previous: readonly NodeCondition[], next: readonly NodeCondition[]): readonly string[] {
  return next
    .filter(({ type, status }) => previous.find((before) => before.type === type)?.status !== status)
    .map(eventName)
    .filter((name) => name !== undefined)
}

function eventName({ type, status }: NodeCondition): string | undefined {
  if (status === 'Unknown') return undefined
  if (type === 'Ready') return status === 'True' ? 'NodeReady' : 'NodeNotReady'
  return isPressure(type) ? pressureTexts[type][status].event : undefined
}

function isPressure(type: string): type is PressureType {
  return Object.hasOwn(pressureTexts, type)
}
