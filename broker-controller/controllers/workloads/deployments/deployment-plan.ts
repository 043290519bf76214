/**
 * What a Deployment does next (pkg/controller/deployment): writes of its ReplicaSets, in order, and its status. Pure. Each visit plans
 * from what is stored, so a plan of which only a part was written is finished by the next visits.
 */
import type { DeploymentStatus } from '../../../../api/workloads/deployment.ts'
import type { ReplicaSet } from '../../../../api/workloads/replica-set.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import type { StoredObject } from '../../../store/store.ts'
import {
  byRevision,
  newAndOldSets,
  newReplicaSet,
  newSetAnnotations,
  nextRevision,
  revisionAnnotation,
} from './deployment-revisions.ts'
import {
  byAge,
  countIn,
  desiredReplicasAnnotation,
  isRollingUpdate,
  proportionalSizes,
  rollingLimits,
  sizeAnnotations,
  sizeOf,
  sizeOfNewSet,
  sumOf,
  sumOfSizes,
} from './deployment-sizes.ts'
import {
  type Conditions,
  conditionOf,
  countedStatus,
  hasProgressDeadline,
  isComplete,
  pausedConditions,
  progressCheckMs,
  progressing,
  rolloutStatus,
  withDeploymentCondition,
} from './deployment-status.ts'

type StoredDeployment = StoredObject<'deployments'>
export type StoredSet = StoredObject<'replicasets'>

export type DeploymentWrite =
  | { readonly step: 'create'; readonly set: ReplicaSet }
  /** `after` has other annotations, another size or minReadySeconds. */
  | { readonly step: 'change'; readonly before: StoredSet; readonly after: StoredSet }
  | { readonly step: 'delete'; readonly set: StoredSet }

export type DeploymentPlan = {
  readonly writes: readonly DeploymentWrite[]
  /** Once the writes are done. */
  readonly status: DeploymentStatus
  /** The annotation of the Deployment; undefined: as it is. */
  readonly revision: string | undefined
  /** When time alone makes another plan; ms from now. */
  readonly checkAfterMs: number | undefined
}

export type DeploymentFacts = {
  readonly deployment: StoredDeployment
  /** Its own. */
  readonly sets: readonly StoredSet[]
  /** Pods of this ReplicaSet that have not ended, those that are leaving among them. */
  readonly runsPods: (set: StoredSet) => boolean
  readonly nowMs: number
  /** The same, RFC 3339. */
  readonly now: string
}

/** What the steps of one plan have in common; each step gives it back with what it changed. */
type Draft = {
  readonly facts: DeploymentFacts
  readonly newSet: StoredSet | undefined
  readonly oldSets: readonly StoredSet[]
  readonly writes: readonly DeploymentWrite[]
  readonly conditions: Conditions
  readonly revision: string | undefined
}

export function planDeployment(facts: DeploymentFacts): DeploymentPlan {
  const { deployment } = facts
  const draft = withPresentTemplate(started(facts))
  if (deployment.metadata.deletionTimestamp !== undefined) return counted(draft)
  const checked = { ...draft, conditions: pausedConditions(deployment, draft.conditions, facts.now) }
  if (deployment.spec.paused === true) return counted(withoutOldRevisions(scaled(checked)))
  if (wasScaled(checked)) return counted(scaled(checked))
  return isRollingUpdate(deployment) ? rolled(checked) : recreated(checked)
}

function started(facts: DeploymentFacts): Draft {
  const conditions = facts.deployment.status?.conditions ?? []
  return { facts, ...newAndOldSets(facts.deployment, facts.sets), writes: [], conditions, revision: undefined }
}

function allSets({ newSet, oldSets }: Draft): readonly StoredSet[] {
  return newSet === undefined ? oldSets : [...oldSets, newSet]
}

/** The ReplicaSet of the present template has the next revision, and what the Deployment has of annotations. */
function withPresentTemplate(draft: Draft): Draft {
  const { newSet, oldSets, facts } = draft
  if (newSet === undefined) return draft
  const { deployment, now } = facts
  const annotations = newSetAnnotations(deployment, newSet.metadata.annotations ?? {}, nextRevision(oldSets))
  const { minReadySeconds = 0 } = deployment.spec
  const isReady = (newSet.spec.minReadySeconds ?? 0) === minReadySeconds
  const spec = isReady ? newSet.spec : { ...newSet.spec, minReadySeconds }
  const changed = changing(draft, newSet, { ...newSet, metadata: { ...newSet.metadata, annotations }, spec })
  const found = progressing('True', 'FoundNewReplicaSet', `Found new replica set "${newSet.metadata.name}"`)
  const isUnknown = hasProgressDeadline(deployment) && conditionOf(draft.conditions, 'Progressing') === undefined
  return {
    ...changed,
    conditions: isUnknown ? withDeploymentCondition(draft.conditions, found, now) : draft.conditions,
    revision: annotations[revisionAnnotation],
  }
}

/** The draft with a ReplicaSet in place of what it was. */
function changing(draft: Draft, before: StoredSet, after: StoredSet): Draft {
  if (equalJSON(before, after)) return draft
  const replaced = (set: StoredSet) => (set === before ? after : set)
  const earlier = draft.writes.find((write) => write.step === 'change' && write.after === before)
  const write = { step: 'change', before: earlier?.step === 'change' ? earlier.before : before, after } as const
  return {
    ...draft,
    newSet: draft.newSet && replaced(draft.newSet),
    oldSets: draft.oldSets.map(replaced),
    writes: [...draft.writes.filter((one) => one !== earlier), write],
  }
}

function resized(draft: Draft, set: StoredSet, replicas: number): Draft {
  const annotations = { ...set.metadata.annotations, ...sizeAnnotations(draft.facts.deployment) }
  const after = { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas } }
  return changing(draft, set, after)
}

/** As scaleReplicaSetAndRecordEvent: a ReplicaSet that has its size keeps its annotations, too. */
function toSize(draft: Draft, set: StoredSet, replicas: number): Draft {
  return sizeOf(set) === replicas ? draft : resized(draft, set, replicas)
}

/** The Deployment was scaled since its ReplicaSets were. */
function wasScaled(draft: Draft): boolean {
  const wanted = sizeOf(draft.facts.deployment)
  return allSets(draft).some((set) => {
    const desired = sizeOf(set) > 0 ? countIn(set, desiredReplicasAnnotation) : undefined
    return desired !== undefined && desired !== wanted
  })
}

function scaled(draft: Draft): Draft {
  const { newSet, oldSets, facts } = draft
  const { deployment } = facts
  const wanted = sizeOf(deployment)
  const active = allSets(draft).filter((set) => sizeOf(set) > 0)
  const [only] = active.length > 0 ? active : [newSet ?? oldSets.toSorted(byAge).at(-1)]
  // Its annotations follow also where it has its size: with old ones every visit would find the Deployment scaled.
  if (active.length < 2) return only === undefined ? draft : resized(draft, only, wanted)
  const isSaturated =
    newSet !== undefined &&
    sizeOf(newSet) === wanted &&
    countIn(newSet, desiredReplicasAnnotation) === wanted &&
    (newSet.status?.availableReplicas ?? 0) === wanted
  if (isSaturated) {
    return active.filter((set) => set !== newSet).reduce((next, set) => toSize(next, set, 0), draft)
  }
  if (!isRollingUpdate(deployment)) return draft
  return proportionalSizes(deployment, active).reduce((next, { set, size }) => resized(next, set, size), draft)
}

function rolled(draft: Draft): DeploymentPlan {
  const { newSet, facts } = draft
  const { deployment } = facts
  if (newSet === undefined) return withNewSet(draft)
  const wanted = sizeOf(deployment)
  const size = sizeOf(newSet) > wanted ? wanted : sizeOfNewSet(deployment, allSets(draft), newSet)
  const grown = toSize(draft, newSet, size)
  if (grown !== draft) return ofRollout(grown)
  const shrunk = withSmallerOldSets(draft)
  return ofRollout(shrunk === draft ? cleaned(draft) : shrunk)
}

/** As many old pods go as may be missing; those that are not available go first (reconcileOldReplicaSets). */
function withSmallerOldSets(draft: Draft): Draft {
  const { newSet, facts } = draft
  const { deployment } = facts
  if (newSet === undefined) return draft
  const old = draft.oldSets.toSorted(byAge)
  const minAvailable = sizeOf(deployment) - rollingLimits(deployment).maxUnavailable
  const newUnavailable = sizeOf(newSet) - (newSet.status?.availableReplicas ?? 0)
  let mayGo = sumOfSizes([...old, newSet]) - minAvailable - newUnavailable
  if (mayGo <= 0) return draft
  const sizes = new Map<string, number>(old.map((set) => [set.metadata.uid, sizeOf(set)]))
  const take = (set: StoredSet, most: number) => {
    const size = sizes.get(set.metadata.uid) ?? 0
    const count = Math.max(0, Math.min(size, most))
    sizes.set(set.metadata.uid, size - count)
    return count
  }
  for (const set of old) mayGo -= take(set, Math.min(mayGo, sizeOf(set) - (set.status?.availableReplicas ?? 0)))
  let surplus = sumOf('availableReplicas', [...old, newSet]) - minAvailable
  for (const set of old) surplus -= take(set, surplus)
  return old.reduce((next, set) => toSize(next, set, sizes.get(set.metadata.uid) ?? 0), draft)
}

function recreated(draft: Draft): DeploymentPlan {
  const { newSet, facts } = draft
  const ended = draft.oldSets.reduce((next, set) => toSize(next, set, 0), draft)
  if (ended !== draft) return ofRollout(ended)
  const isOldRunning = draft.oldSets.some((set) => (set.status?.replicas ?? 0) > 0 || facts.runsPods(set))
  if (isOldRunning) return ofRollout(draft)
  if (newSet === undefined) return withNewSet(draft)
  return ofRollout(cleaned(toSize(draft, newSet, sizeOf(facts.deployment))))
}

function withNewSet(draft: Draft): DeploymentPlan {
  const { deployment, now } = draft.facts
  const revision = nextRevision(draft.oldSets)
  const set = newReplicaSet(deployment, draft.oldSets, revision)
  const made = progressing('True', 'NewReplicaSetCreated', `Created new replica set "${set.metadata.name}"`)
  const conditions = hasProgressDeadline(deployment)
    ? withDeploymentCondition(draft.conditions, made, now)
    : draft.conditions
  const status = rolloutStatus({ ...draft.facts, sets: [...draft.oldSets, set], newSet: set, conditions })
  return {
    writes: [...draft.writes, { step: 'create', set }],
    status,
    revision: String(revision),
    checkAfterMs: progressCheckMs(deployment, status, draft.facts.nowMs),
  }
}

/** Once a rollout is complete, the oldest revisions above the limit go. */
function cleaned(draft: Draft): Draft {
  const { deployment } = draft.facts
  return isComplete(deployment, countedStatus(statusFacts(draft))) ? withoutOldRevisions(draft) : draft
}

/** cleanupDeployment: those that have pods, or whose size was not counted yet, stay. */
function withoutOldRevisions(draft: Draft): Draft {
  const limit = draft.facts.deployment.spec.revisionHistoryLimit ?? Infinity
  const old = draft.oldSets.filter(({ metadata }) => metadata.deletionTimestamp === undefined).toSorted(byRevision)
  const isEmpty = (set: StoredSet) => {
    const { replicas = 0, observedGeneration = 0 } = set.status ?? {}
    return replicas === 0 && sizeOf(set) === 0 && (set.metadata.generation ?? 0) <= observedGeneration
  }
  const gone = old.slice(0, Math.max(0, old.length - limit)).filter(isEmpty)
  return { ...draft, writes: [...draft.writes, ...gone.map((set) => ({ step: 'delete', set }) as const)] }
}

function counted(draft: Draft): DeploymentPlan {
  const status = countedStatus(statusFacts(draft))
  return { writes: draft.writes, status, revision: draft.revision, checkAfterMs: undefined }
}

function ofRollout(draft: Draft): DeploymentPlan {
  const { deployment, nowMs } = draft.facts
  const status = rolloutStatus(statusFacts(draft))
  const checkAfterMs = progressCheckMs(deployment, status, nowMs)
  return { writes: draft.writes, status, revision: draft.revision, checkAfterMs }
}

function statusFacts(draft: Draft) {
  return { ...draft.facts, sets: allSets(draft), newSet: draft.newSet, conditions: draft.conditions }
}
