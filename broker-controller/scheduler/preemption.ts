/** Preemption for a pod that fits nowhere: chooses the node, and the pods of lower priority there, with the least harm. */
import type { Pod } from '../../api/pod.ts'
import type { PodDisruptionBudget } from '../../api/pod-disruption-budget.ts'
import { matchesLabels, type Requirement, requirementsOf } from '../../api/selectors.ts'
import { keyText } from '../store/informer.ts'
import type { Cluster } from './cluster.ts'
import { countedReasons, type NodeRefusal, roundFor, unavailable } from './filter.ts'
import type { NodeAllocation } from './node-usage.ts'
import type { KeyedPod } from './nominations.ts'
import { type Misfit, refusalWithPromises } from './placement.ts'

export type Preemption =
  | { readonly helps: true; readonly nodeName: string; readonly victims: readonly KeyedPod[] }
  | {
      readonly helps: false
      /** What is added to the sentence of the misfit. */
      readonly message: string
      /** The pod does not fit on its nominated node any more. */
      readonly withdraws: boolean
    }

/** How many of the pods it chooses may be disrupted now. */
export type DisruptionBudget = {
  readonly namespace: string
  readonly requirements: readonly Requirement[]
  readonly disruptionsAllowed: number
  /** Names of those that are counted already. */
  readonly disrupted: ReadonlySet<string>
}

/** A selector that cannot be read protects no pod, and before it was counted a budget allows nothing. */
export function readBudget({ metadata, spec, status }: PodDisruptionBudget): DisruptionBudget {
  const parsed = requirementsOf(spec?.selector)
  return {
    namespace: metadata.namespace ?? '',
    requirements: parsed?.ok === true ? parsed.value : [],
    disruptionsAllowed: status?.disruptionsAllowed ?? 0,
    disrupted: new Set(Object.keys(status?.disruptedPods ?? {})),
  }
}

export type PreemptionFacts = {
  readonly budgets: readonly DisruptionBudget[]
  /** Decides at which node to begin. */
  readonly random: () => number
}

/** What stands in the condition and the reason of pods that had to go. */
export const preemptedReason = 'PreemptionByScheduler'

export function preempt(pod: Pod, nodes: Cluster, misfit: Misfit, facts: PreemptionFacts): Preemption {
  const because = ineligible(pod, nodes, misfit)
  if (because !== undefined) return { helps: false, message: `preemption: ${because}`, withdraws: false }
  const { candidates, reasons } = tryNodes(pod, nodes, misfit, facts)
  const best = leastHarm(candidates)
  if (best !== undefined) return { helps: true, nodeName: best.nodeName, victims: best.victims }
  return { helps: false, message: `preemption: ${hopeless(reasons, nodes.nodeCount)}`, withdraws: true }
}

/** One that has made room already waits until that room is free. */
function ineligible(pod: Pod, nodes: Cluster, { refusals }: Misfit): string | undefined {
  if (pod.spec.preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.'
  const promised = nodes.node(nodes.nominationOf(keyText(pod.metadata)) ?? '')
  if (promised === undefined || !couldHelp(refusals.get(promised.name))) return undefined
  const isAwaited = (other: Pod) => priorityOf(other) < priorityOf(pod) && isBeingPreempted(other)
  return [...promised.pods.values()].some(isAwaited)
    ? 'not eligible due to a terminating pod on the nominated node.'
    : undefined
}

/** A node that was not filtered, because the pod's own terms leave it out, does not become fit either (framework.NodeToStatus). */
function couldHelp(refusal: NodeRefusal | undefined): boolean {
  return refusal?.isFinal === false
}

function isBeingPreempted({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp === undefined) return false
  const isPreempted = status?.conditions?.some(
    ({ type, status, reason }) => type === 'DisruptionTarget' && status === 'True' && reason === preemptedReason,
  )
  return isPreempted === true
}

type Candidate = { readonly nodeName: string; readonly victims: readonly KeyedPod[]; readonly violations: number }
type Reasons = ReadonlyMap<string, readonly string[]>

/** Kubernetes tries a tenth of a large fleet; we do not hold up everything else for that long. */
const candidatesToFind = 100

function tryNodes(
  pod: Pod,
  nodes: Cluster,
  { refusals }: Misfit,
  { budgets, random }: PreemptionFacts,
): { readonly candidates: readonly Candidate[]; readonly reasons: Reasons } {
  const helpable = [...nodes.from(0)].filter(({ name }) => couldHelp(refusals.get(name)))
  const start = Math.floor(random() * helpable.length)
  const candidates: Candidate[] = []
  const reasons = new Map<string, readonly string[]>()
  for (const usage of [...helpable, ...helpable].slice(start, start + helpable.length)) {
    const found = victimsOn(usage, pod, nodes, budgets)
    if ('reasons' in found) reasons.set(usage.name, found.reasons)
    else candidates.push(found)
    if (candidates.length >= candidatesToFind && candidates.some(({ violations }) => violations === 0)) break
  }
  return { candidates, reasons }
}

/** The fewest that matter least: all that matter less are taken away, then those that can stay come back, the most important first. */
function victimsOn(
  usage: NodeAllocation,
  pod: Pod,
  nodes: Cluster,
  budgets: readonly DisruptionBudget[],
): Candidate | { readonly reasons: readonly string[] } {
  const key = keyText(pod.metadata)
  if (!usage.hasPodBelow(priorityOf(pod))) return noVictims
  const lesser = [...usage.pods]
    .map(([key, pod]): KeyedPod => ({ key, pod }))
    .filter((other) => priorityOf(other.pod) < priorityOf(pod))
    .sort((a, b) => byImportance(a.pod, b.pod))
  const guarded = new Set(violating(lesser, budgets))
  const refused = () => refusalWithPromises(key, roundFor(pod, nodes), usage, nodes)
  return nodes.without(lesser, usage.name, ({ putBack, takeAway }) => {
    const hopeless = refused()
    if (hopeless !== undefined) return { reasons: hopeless.reasons }
    const victims = new Set<KeyedPod>()
    for (const one of lesser.toSorted((a, b) => Number(guarded.has(b)) - Number(guarded.has(a)))) {
      putBack(one)
      if (refused() === undefined) continue
      takeAway(one)
      victims.add(one)
    }
    const violations = [...victims].filter((one) => guarded.has(one)).length
    return { nodeName: usage.name, victims: lesser.filter((one) => victims.has(one)), violations }
  })
}

const noVictims = { reasons: ['No preemption victims found for incoming pod'] }

/** The pods whose eviction a budget does not allow, if all are evicted in this order. */
function violating(pods: readonly KeyedPod[], budgets: readonly DisruptionBudget[]): readonly KeyedPod[] {
  const allowed = new Map(budgets.map((budget) => [budget, budget.disruptionsAllowed]))
  return pods.filter(({ pod }) => {
    let isViolating = false
    for (const budget of budgets) {
      if (!protects(budget, pod)) continue
      const left = (allowed.get(budget) ?? 0) - 1
      allowed.set(budget, left)
      if (left < 0) isViolating = true
    }
    return isViolating
  })
}

function protects({ namespace, requirements, disrupted }: DisruptionBudget, { metadata }: Pod): boolean {
  if (namespace !== metadata.namespace || requirements.length === 0 || disrupted.has(metadata.name ?? '')) return false
  return matchesLabels(requirements, metadata.labels)
}

/** Each view decides where those before it see no difference; the least is best. */
const harms: readonly ((candidate: Candidate) => number)[] = [
  ({ violations }) => violations,
  ({ victims }) => Math.max(...victims.map(({ pod }) => priorityOf(pod))),
  ({ victims }) => victims.reduce((sum, { pod }) => sum + priorityOf(pod) + 2 ** 31, 0),
  ({ victims }) => victims.length,
  ({ victims }) => -youngestStartMs(victims),
]

function leastHarm(candidates: readonly Candidate[]): Candidate | undefined {
  let best = candidates
  for (const harm of harms) {
    const least = Math.min(...best.map(harm))
    best = best.filter((candidate) => harm(candidate) === least)
  }
  return best[0]
}

/** When the longest running of the most important victims began: better those that have run for a short time. */
function youngestStartMs(victims: readonly KeyedPod[]): number {
  const highest = Math.max(...victims.map(({ pod }) => priorityOf(pod)))
  return Math.min(...victims.filter(({ pod }) => priorityOf(pod) === highest).map(({ pod }) => startMs(pod)))
}

function byImportance(a: Pod, b: Pod): number {
  return priorityOf(b) - priorityOf(a) || startMs(a) - startMs(b)
}

/** One that has not started yet starts now, later than all others. */
function startMs({ status }: Pod): number {
  return status?.startTime === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(status.startTime)
}

export function priorityOf({ spec }: Pod): number {
  return spec.priority ?? 0
}

function hopeless(reasons: Reasons, nodeCount: number): string {
  const rest = ['Preemption is not helpful for scheduling', nodeCount - reasons.size] as const
  return unavailable(nodeCount, countedReasons(reasons.values(), rest))
}
