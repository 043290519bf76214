/**
 * What a StatefulSet does next, and its status (updateStatefulSet in pkg/controller/statefulset/stateful_set_control.go). Pure.
 *
 * At most one: a pod is created only where no pod of its name exists, whatever its state. One that is being deleted on a machine that
 * does not answer keeps its place until its machine confirms its end, comes back with a new boot, is declared out of service or
 * is deleted.
 */
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import type { Pod } from '../../../../api/pod.ts'
import type { StatefulSet, StatefulSetStatus } from '../../../../api/workloads/stateful-set.ts'
import { type Steps, sortedInSteps } from '../../../../daemon/watchdog/steps.ts'
import { isAvailablePod, isReadyPod } from '../pod-readiness.ts'
import { hasIdentity, ordinalOf, ordinalRange, revisionOf } from './stateful-identity.ts'

/** Names of ControllerRevisions. */
export type StatefulRevisions = { readonly current: string; readonly update: string }

export type StatefulStep<P extends Pod> =
  | { readonly step: 'create'; readonly ordinal: number; readonly revision: 'current' | 'update' }
  | { readonly step: 'delete'; readonly pod: P; readonly because: 'ended' | 'scale-down' | 'update' }
  /** Its labels are not those of its name. */
  | { readonly step: 'identify'; readonly pod: P; readonly ordinal: number }
  /** A claim of it is missing, or has other owners than the retention policy gives it. */
  | { readonly step: 'claims'; readonly pod: P; readonly ordinal: number }

/** What the plan depends on beside the pods. */
export type StatefulFacts<P extends Pod> = {
  readonly revisions: StatefulRevisions
  readonly claims: PlaceClaims<P>
  readonly nowMs: number
}

export interface PlaceClaims<P extends Pod> {
  /** A claim of the place goes with an earlier pod of it. */
  isLeaving(ordinal: number): boolean
  isMissing(ordinal: number): boolean
  hasOtherOwners(pod: P): boolean
}

type Set = Pick<StatefulSet, 'spec' | 'status'> & { readonly metadata: { readonly name: string } }

type Members<P extends Pod> = {
  /** By ordinal. */
  readonly at: (ordinal: number) => P | undefined
  /** All of them, the lowest ordinal first. */
  readonly ordered: readonly P[]
  /** Those with other ordinals, the highest first. */
  readonly condemned: readonly P[]
}

/** What is created in one visit at most: a set may want thousands of millions. */
const mostAtOnce = 250

/**
 * `pods`: those of the set. The steps may be taken together; the next ones follow from what comes of them. Decided in steps of its own: a
 * set may have very many pods.
 */
export function* planStateful<P extends Pod>(
  set: Set,
  pods: readonly P[],
  { revisions, claims, nowMs }: StatefulFacts<P>,
): Steps<readonly StatefulStep<P>[]> {
  const members = yield* membersOf(set, pods)
  const isOrdered = set.spec.podManagementPolicy !== 'Parallel'
  const isAvailable = (pod: P) => isAvailablePod(pod, set.spec.minReadySeconds ?? 0, nowMs)
  const filled = yield* fillPlaces(set, members, { isAvailable, isOrdered, claims })
  if (filled.isBlocked) return filled.steps
  const removed = yield* scaleDown(set, members, { isAvailable, isOrdered, claims })
  if (removed.isBlocked) return [...filled.steps, ...removed.steps]
  return [...filled.steps, ...removed.steps, ...(yield* replaceOutdated(set, members, revisions))]
}

type Rules<P extends Pod> = {
  readonly isAvailable: (pod: P) => boolean
  readonly isOrdered: boolean
  readonly claims: PlaceClaims<P>
}

type Part<P extends Pod> = { readonly steps: readonly StatefulStep<P>[]; readonly isBlocked: boolean }

function* membersOf<P extends Pod>(set: Set, pods: readonly P[]): Steps<Members<P>> {
  const { first, end } = ordinalRange(set)
  const byOrdinal = new Map<number, P>()
  const found: { readonly ordinal: number; readonly pod: P }[] = []
  for (const pod of pods) {
    yield
    const ordinal = ordinalOf(set.metadata.name, pod.metadata.name ?? '')
    if (ordinal === undefined) continue
    byOrdinal.set(ordinal, pod)
    found.push({ ordinal, pod })
  }
  const [ordered, condemned]: [P[], P[]] = [[], []]
  for (const { ordinal, pod } of yield* sortedInSteps(found, (a, b) => a.ordinal - b.ordinal)) {
    yield
    ordered.push(pod)
    if (ordinal < first || ordinal >= end) condemned.push(pod)
  }
  return { at: (ordinal) => byOrdinal.get(ordinal), ordered, condemned: condemned.reverse() }
}

/** In order, each pod waits for those before it; in parallel, none does (processReplica). */
function* fillPlaces<P extends Pod>(set: Set, { at }: Members<P>, rules: Rules<P>): Steps<Part<P>> {
  const { first, end } = ordinalRange(set)
  const steps: StatefulStep<P>[] = []
  for (let ordinal = first; ordinal < end && steps.length < mostAtOnce; ordinal++) {
    yield
    const place = fillPlace(set, ordinal, at(ordinal), rules)
    steps.push(...place.steps)
    if (place.isBlocked) return { steps, isBlocked: true }
  }
  return { steps, isBlocked: false }
}

function fillPlace<P extends Pod>(
  set: Set,
  ordinal: number,
  pod: P | undefined,
  { isAvailable, isOrdered, claims }: Rules<P>,
): Part<P> {
  if (pod === undefined) {
    if (claims.isLeaving(ordinal)) return { steps: [], isBlocked: isOrdered }
    const revision = revisionFor(set, ordinal - ordinalRange(set).first)
    return { steps: [{ step: 'create', ordinal, revision }], isBlocked: isOrdered }
  }
  if (hasEndedForGood(pod)) {
    return { steps: isLeaving(pod) ? [] : [{ step: 'delete', pod, because: 'ended' }], isBlocked: isOrdered }
  }
  const isDone = !isOrdered || (isHealthy(pod) && isAvailable(pod))
  const isPending = pod.status?.phase === 'Pending'
  const isDue = (isPending && claims.isMissing(ordinal)) || ((isPending || isDone) && claims.hasOtherOwners(pod))
  const steps: StatefulStep<P>[] = []
  if (isDue) steps.push({ step: 'claims', pod, ordinal })
  if (isDone && !hasIdentity(pod)) steps.push({ step: 'identify', pod, ordinal })
  return { steps, isBlocked: !isDone }
}

/** Below the partition pods stay as they were (newVersionedStatefulSetPod). */
function revisionFor({ spec, status }: Set, place: number): 'current' | 'update' {
  const { type, rollingUpdate } = spec.updateStrategy ?? {}
  if (rollingUpdate !== undefined) return place < (rollingUpdate.partition ?? 0) ? 'current' : 'update'
  return type === 'RollingUpdate' && place < (status?.currentReplicas ?? 0) ? 'current' : 'update'
}

/** From the highest ordinal down. In order, one at a time: one that is not available waits, unless it is the first that is not. */
function* scaleDown<P extends Pod>(
  set: Set,
  { ordered, condemned }: Members<P>,
  { isAvailable, isOrdered, claims }: Rules<P>,
): Steps<Part<P>> {
  const firstUnhealthy = isOrdered && condemned.length > 0 ? ordered.find((pod) => !isHealthy(pod)) : undefined
  const steps = yield* claimsOf(set, condemned, claims)
  for (const pod of condemned) {
    yield
    if (isLeaving(pod)) {
      if (isOrdered) return { steps, isBlocked: true }
      continue
    }
    const waits = isOrdered && !(isRunning(pod) && isAvailable(pod)) && pod !== firstUnhealthy
    if (!waits) steps.push({ step: 'delete', pod, because: 'scale-down' })
    if (isOrdered) return { steps, isBlocked: true }
  }
  return { steps, isBlocked: false }
}

/** The claims of condemned pods go with them, also when the pods are deleted by hand. */
function* claimsOf<P extends Pod>(
  set: Set,
  condemned: Members<P>['condemned'],
  claims: Rules<P>['claims'],
): Steps<StatefulStep<P>[]> {
  const steps: StatefulStep<P>[] = []
  for (const pod of condemned) {
    yield
    if (!claims.hasOtherOwners(pod)) continue
    steps.push({ step: 'claims', pod, ordinal: ordinalOf(set.metadata.name, pod.metadata.name ?? '') ?? 0 })
  }
  return steps
}

/** One after the other, from the last place to that of the partition; each waits for those after it. */
function* replaceOutdated<P extends Pod>(
  set: Set,
  { at }: Members<P>,
  { update }: StatefulRevisions,
): Steps<readonly StatefulStep<P>[]> {
  const { first, end } = ordinalRange(set)
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {}
  if (type === 'OnDelete') return []
  for (let ordinal = end - 1; ordinal >= first + (rollingUpdate?.partition ?? 0); ordinal--) {
    yield
    const pod = at(ordinal)
    if (pod === undefined || hasEndedForGood(pod)) return []
    if (revisionOf(pod) !== update && !isLeaving(pod)) return [{ step: 'delete', pod, because: 'update' }]
    if (!isHealthy(pod)) return []
  }
  return []
}

function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

function isRunning(pod: Pod): boolean {
  return pod.status?.phase === 'Running' && isReadyPod(pod)
}

function isHealthy(pod: Pod): boolean {
  return isRunning(pod) && !isLeaving(pod)
}

export type StatefulStatusFacts<P extends Pod> = {
  readonly pods: readonly P[]
  readonly revisions: StatefulRevisions
  readonly generation: number | undefined
  readonly collisionCount: number
  /** What is done in the same visit. */
  readonly steps: readonly StatefulStep<P>[]
  readonly nowMs: number
}

/** computeReplicaStatus and completeRollingUpdate. */
export function* statefulStatus<P extends Pod>(set: Set, facts: StatefulStatusFacts<P>): Steps<StatefulSetStatus> {
  const { pods, revisions, generation, collisionCount, steps } = facts
  const { updateStrategy, replicas: wanted = 1 } = set.spec
  const { ready, available, current, updated } = yield* countPods(set, facts)
  const isComplete =
    updateStrategy?.type === 'RollingUpdate' && [updated, ready, pods.length].every((count) => count === wanted)
  const outdated = steps.filter((one) => one.step === 'delete' && one.because === 'update').length
  const counts = {
    observedGeneration: generation ?? 0,
    readyReplicas: ready,
    currentReplicas: isComplete ? updated : Math.max(0, current - outdated),
    updatedReplicas: updated,
  }
  const { conditions } = set.status ?? {}
  return {
    replicas: pods.length,
    availableReplicas: available,
    ...Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    currentRevision: isComplete ? revisions.update : revisions.current,
    updateRevision: revisions.update,
    collisionCount,
    ...(conditions && { conditions }),
  }
}

/** `current`, `updated`: those of the revision that are not leaving. */
type PodCounts = { readonly [count in 'ready' | 'available' | 'current' | 'updated']: number }

function* countPods<P extends Pod>(
  { spec }: Set,
  { pods, revisions, nowMs }: StatefulStatusFacts<P>,
): Steps<PodCounts> {
  let [ready, available, current, updated] = [0, 0, 0, 0]
  for (const pod of pods) {
    yield
    if (isRunning(pod)) ready++
    if (isRunning(pod) && isAvailablePod(pod, spec.minReadySeconds ?? 0, nowMs)) available++
    const revision = isLeaving(pod) ? undefined : revisionOf(pod)
    if (revision === revisions.current) current++
    if (revision === revisions.update) updated++
  }
  return { ready, available, current, updated }
}
