/** Preemption for a pod that fits nowhere: chooses the node, and the pods of lower priority there, with the least harm. */
import type { Pod } from '../../api/pod.ts'
import type { PodDisruptionBudget } from '../../api/pod-disruption-budget.ts'
import { type LabelMatcher, labelMatcher, type Requirement, requirementsOf } from '../../api/selectors.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import { keyText } from '../store/informer.ts'
import type { Cluster } from './cluster.ts'
import { countedReasons, type NodeRefusal, type Round, roundFor, unavailable } from './filter.ts'
import { type PodRelations, podRelations } from './inter-pod-affinity.ts'
import { copiedNeighbours, neighboursAfter, neighboursHere } from './neighbour-trials.ts'
import type { NodeAllocation } from './node-usage.ts'
import type { KeyedPod } from './nominations.ts'
import { type Misfit, refusalWithPromises } from './placement.ts'
import { spreadRulesOf } from './topology-spread.ts'

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

const known = new WeakMap<PodDisruptionBudget, DisruptionBudget>()

/** A selector that cannot be read protects no pod, and before it was counted a budget allows nothing. */
export function readBudget(budget: PodDisruptionBudget): DisruptionBudget {
  const before = known.get(budget)
  if (before !== undefined) return before
  const read = budgetOf(budget)
  known.set(budget, read)
  return read
}

function budgetOf({ metadata, spec, status }: PodDisruptionBudget): DisruptionBudget {
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

export function* preempt(pod: Pod, nodes: Cluster, misfit: Misfit, facts: PreemptionFacts): Steps<Preemption> {
  const because = ineligible(pod, nodes, misfit)
  if (because !== undefined) return { helps: false, message: `preemption: ${because}`, withdraws: false }
  const { candidates, reasons } = yield* tryNodes(pod, nodes, misfit, facts)
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

/** One search for a node; `round` is that of the cluster as it is. */
type Attempt = {
  readonly pod: Pod
  readonly nodes: Cluster
  readonly relations: PodRelations
  readonly round: Round
  readonly budgets: BudgetsByNamespace
}

function budgetsByNamespace(budgets: readonly DisruptionBudget[]): BudgetsByNamespace {
  const byNamespace = new Map<string, DisruptionBudget[]>()
  for (const budget of budgets) {
    const present = byNamespace.get(budget.namespace)
    if (present === undefined) byNamespace.set(budget.namespace, [budget])
    else present.push(budget)
  }
  return byNamespace
}

type BudgetsByNamespace = ReadonlyMap<string, readonly DisruptionBudget[]>

type Candidate = { readonly nodeName: string; readonly victims: readonly KeyedPod[]; readonly violations: number }
type Reasons = ReadonlyMap<string, readonly string[]>

/** Kubernetes tries a tenth of a large fleet; we do not hold up everything else for that long. */
const candidatesToFind = 100

type Tried = { readonly candidates: readonly Candidate[]; readonly reasons: Reasons }

function* tryNodes(pod: Pod, nodes: Cluster, { refusals }: Misfit, { budgets, random }: PreemptionFacts): Steps<Tried> {
  const relations = podRelations(pod, nodes)
  const { neighbours, ...round } = yield* roundFor(pod, nodes, relations)
  const attempt: Attempt = {
    ...{ pod, nodes, relations },
    // Those of the cluster change while pods are moved.
    round: { ...round, neighbours: neighbours && copiedNeighbours(neighbours) },
    budgets: budgetsByNamespace(budgets),
  }
  const helpable = [...nodes.from(0)].filter(({ name }) => couldHelp(refusals.get(name)))
  const start = Math.floor(random() * helpable.length)
  const candidates: Candidate[] = []
  const reasons = new Map<string, readonly string[]>()
  let isHarmless = false
  for (const usage of [...helpable, ...helpable].slice(start, start + helpable.length)) {
    const found = yield* victimsOn(usage, attempt)
    yield
    if ('reasons' in found) reasons.set(usage.name, found.reasons)
    else candidates.push(found)
    if (!('reasons' in found) && found.violations === 0) isHarmless = true
    if (candidates.length >= candidatesToFind && isHarmless) break
  }
  return { candidates, reasons }
}

/** The fewest that matter least: all that matter less are taken away, then those that can stay come back, the most important first. */
function* victimsOn(
  usage: NodeAllocation,
  attempt: Attempt,
): Steps<Candidate | { readonly reasons: readonly string[] }> {
  const { pod, nodes, relations, round, budgets } = attempt
  const key = keyText(pod.metadata)
  if (!usage.hasPodBelow(priorityOf(pod))) return noVictims
  const lesser = [...usage.pods]
    .map(([key, pod]): KeyedPod => ({ key, pod }))
    .filter((other) => priorityOf(other.pod) < priorityOf(pod))
    .sort((a, b) => byImportance(a.pod, b.pod))
  const guarded = new Set(violating(lesser, budgets))
  const here = neighboursHere(round.neighbours, usage)
  const away = new Set(lesser)
  function* refused(): Steps<NodeRefusal | undefined> {
    const spread = round.spread.length === 0 ? round.spread : yield* spreadRulesOf(pod, nodes)
    const gone = [...away].map((one) => one.pod)
    const present = { ...round, spread, neighbours: neighboursAfter(here, gone, -1, usage, relations) }
    return yield* refusalWithPromises(key, present, usage, nodes, relations)
  }
  return yield* nodes.without(lesser, usage.name, function* ({ putBack, takeAway }) {
    const hopeless = yield* refused()
    if (hopeless !== undefined) return { reasons: hopeless.reasons }
    for (const one of lesser.toSorted((a, b) => Number(guarded.has(b)) - Number(guarded.has(a)))) {
      putBack(one)
      away.delete(one)
      yield
      if ((yield* refused()) === undefined) continue
      takeAway(one)
      away.add(one)
    }
    const violations = [...away].filter((one) => guarded.has(one)).length
    return { nodeName: usage.name, victims: lesser.filter((one) => away.has(one)), violations }
  })
}

const noVictims = { reasons: ['No preemption victims found for incoming pod'] }

/** The pods whose eviction a budget does not allow, if all are evicted in this order. */
function violating(pods: readonly KeyedPod[], budgets: BudgetsByNamespace): readonly KeyedPod[] {
  const allowed = new Map<DisruptionBudget, number>()
  return pods.filter(({ pod }) => {
    let isViolating = false
    for (const budget of budgets.get(pod.metadata.namespace ?? '') ?? []) {
      if (!protects(budget, pod)) continue
      const left = (allowed.get(budget) ?? budget.disruptionsAllowed) - 1
      allowed.set(budget, left)
      if (left < 0) isViolating = true
    }
    return isViolating
  })
}

function protects(budget: DisruptionBudget, { metadata }: Pod): boolean {
  const { requirements, disrupted } = budget
  if (requirements.length === 0 || disrupted.has(metadata.name ?? '')) return false
  return matcherOf(budget)(metadata.labels)
}

const matchers = new WeakMap<DisruptionBudget, LabelMatcher>()

function matcherOf(budget: DisruptionBudget): LabelMatcher {
  const matcher = matchers.get(budget) ?? labelMatcher(budget.requirements)
  matchers.set(budget, matcher)
  return matcher
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
