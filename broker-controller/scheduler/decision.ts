/** Decides on the next pod. Later decisions take this one into account before it is written. */
import { schedulingExcesses } from '../../api/pod/scheduling-terms.ts'
import { problemText } from '../../api/problem.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { ClusterCache } from './cluster.ts'
import type { Plugin } from './filter.ts'
import type { KeyedPod } from './nominations.ts'
import { type Misfit, placePod } from './placement.ts'
import { type DisruptionBudget, preempt, priorityOf } from './preemption.ts'
import type { VolumeChoice } from './volumes/volume-cache.ts'

export type Decision = Binding | RoomMade | Waiting

export type Binding = KeyedPod & {
  readonly decided: 'bind'
  readonly nodeName: string
  /** What its claims get there, before the pod is bound; undefined: all have their volumes already. */
  readonly volumes: VolumeChoice | undefined
}

type RoomMade = KeyedPod & {
  readonly decided: 'preempt'
  readonly message: string
  readonly refusedBy: ReadonlySet<Plugin>
  /** Promised to the pod, for when the victims are gone. */
  readonly nodeName: string
  readonly victims: readonly KeyedPod[]
  /** Pods to which room on that node had been promised, and is no longer. */
  readonly displaced: readonly KeyedPod[]
}

type Waiting = KeyedPod & {
  readonly decided: 'wait'
  readonly message: string
  readonly refusedBy: ReadonlySet<Plugin>
  /** The pod does not fit on its nominated node any more. */
  readonly withdraws: boolean
}

export type DecisionFacts = {
  readonly budgets: () => Steps<readonly DisruptionBudget[]>
  readonly random: () => number
}

/** Enters into `known` that the pod is placed, or that room is promised to it. */
export function* decide({ key, pod }: KeyedPod, known: ClusterCache, facts: DecisionFacts): Steps<Decision> {
  const [excess] = schedulingExcesses('spec', pod.spec)
  // The API refuses such a pod; a controller, or an earlier version, may have stored it.
  if (excess !== undefined) {
    const message = `too many terms: ${problemText(excess)}`
    return { decided: 'wait', key, pod, message, refusedBy: noPlugins, withdraws: false }
  }
  const start = Math.floor(facts.random() * known.nodeCount)
  const placement = yield* placePod(pod, known, start, facts.random)
  if (!placement.found) return yield* decideMisfit({ key, pod }, placement, known, facts)
  const { nodeName, volumes } = placement
  known.place(key, pod, nodeName)
  if (volumes !== undefined) known.volumes.promise(key, volumes, nodeName)
  return { decided: 'bind', key, pod, nodeName, volumes }
}

const noPlugins: ReadonlySet<Plugin> = new Set()

function* decideMisfit(
  { key, pod }: KeyedPod,
  misfit: Misfit,
  known: ClusterCache,
  { budgets, random }: DecisionFacts,
): Steps<Decision> {
  const { message, refusedBy } = misfit
  if (known.nodeCount === 0) return { decided: 'wait', key, pod, message, refusedBy, withdraws: false }
  const preemption = yield* preempt(pod, known, misfit, { budgets: yield* budgets(), random })
  if (!preemption.helps) {
    const { withdraws } = preemption
    return { decided: 'wait', key, pod, message: `${message} ${preemption.message}`, refusedBy, withdraws }
  }
  const { nodeName, victims } = preemption
  const displaced = known.nominatedTo(nodeName).filter((other) => priorityOf(other.pod) < priorityOf(pod))
  for (const other of displaced) known.nominate(other.key, other.pod, '')
  known.nominate(key, pod, nodeName)
  return { decided: 'preempt', key, pod, message, refusedBy, nodeName, victims, displaced }
}
