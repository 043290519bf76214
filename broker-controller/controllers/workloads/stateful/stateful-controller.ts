/** Loop: keeps the pods of StatefulSets (pkg/controller/statefulset). */

import type { PodTemplateSpec } from '../../../../api/pod.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { finishedInTurns, yieldTurn } from '../../../../daemon/limits/turn-limit.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import { type FailedPods, failedPods } from '../failed-pods.ts'
import { type HistoryNeeds, type PresentRevision, revisionHistory } from '../history/revision-history.ts'
import { revisionData, revisionTemplate, type StoredRevision, surplusRevisions } from '../history/revisions.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { ownerLoop } from '../owner-loop.ts'
import { nextAvailableMs } from '../pod-readiness.ts'
import { selecting } from '../selecting.ts'
import { slowStart } from '../slow-start.ts'
import { type StatefulClaimControl, statefulClaimControl } from './stateful-claim-control.ts'
import { ordinalOf, revisionOf } from './stateful-identity.ts'
import { type PlaceClaims, planStateful, type StatefulStep, statefulStatus } from './stateful-plan.ts'
import { type StatefulPodControl, statefulPodControl } from './stateful-pod-control.ts'

type StoredStatefulSet = StoredObject<'statefulsets'>
type Step = StatefulStep<StoredPod>

const component = 'statefulset-controller'
/** ControllerRevisionHashLabel in pkg/controller/history; the pods have the name of the revision under another one. */
const hashLabel = 'controller.kubernetes.io/hash'
/** Between replacements of a failed pod: as between the starts of a container that crashes. */
const longestWaitMs = 5 * 60_000

/** With the index of claims that it runs beside it. */
export function statefulSetControllers(needs: HistoryNeeds, pods: OwnedObjects<'pods'>): readonly Loop[] {
  const { clock } = needs
  const selects = selecting<StoredStatefulSet>(({ spec }) => spec.selector)
  const claims = statefulClaimControl(needs, component)
  const control = statefulPodControl(needs, claims, component)
  const history = revisionHistory(needs, 'statefulsets', { account: component, hashLabel })
  const failures = failedPods(clock, longestWaitMs)

  const reconcile = async (set: StoredStatefulSet, found: readonly StoredPod[]): Promise<Reconciled> => {
    const select = selects(set)
    if (select === undefined) return undefined
    const isMember = ({ metadata }: { readonly metadata: { readonly name: string } }) =>
      ordinalOf(set.metadata.name, metadata.name) !== undefined
    const claim = { owners: 'statefulsets', owner: set, dependents: pods.resource, selects: select, isMember } as const
    const known = await history.claim(set, select)
    const own = await claimObjects(needs, claim, found)
    const present = await history.present(set, known, wantedRevision(set))
    const update = present.current
    const current = known.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update
    const revisions = { current: current.metadata.name, update: update.metadata.name }
    const isLeaving = set.metadata.deletionTimestamp !== undefined
    await claims.listed
    await yieldTurn()
    claims.catchUp()
    const facts = { revisions, claims: claimFacts(claims, set), nowMs: clock.wallMs() }
    const { planned, waitMs } = withoutWaiting(
      set,
      failures,
      isLeaving ? [] : await finishedInTurns(planStateful(set, own, facts)),
    )
    const isHeld = planned.length > 0 && needs.hold?.holds('statefulsets') === true
    if (isHeld) await control.recordHeld(set)
    const steps = isHeld ? [] : planned
    countReplacements(set, failures, steps)
    const failure = await takeSteps(control, set, steps, { current, update }).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    await yieldTurn()
    await writeStatus(needs, set, { own, revisions, steps, collisionCount: present.collisionCount })
    if (!isLeaving) await history.delete(surplusOf(set, present, current, own))
    if (failure !== undefined) throw failure.error
    return await nextVisit(set, own, clock.wallMs(), waitMs)
  }

  const { connect } = claims
  const controller = {
    name: 'statefulset',
    owners: 'statefulsets',
    dependents: pods,
    selects,
    reconcile,
    connect,
  } as const
  return [{ name: 'stateful-claims', run: claims.run }, ownerLoop(needs, controller)]
}

function wantedRevision({ spec: { template }, status }: StoredStatefulSet) {
  return {
    data: revisionData(template),
    labels: template.metadata?.labels,
    collisionCount: status?.collisionCount ?? 0,
  }
}

/** When the next pod becomes available, or a failed one may be replaced. */
async function nextVisit(
  set: StoredStatefulSet,
  own: readonly StoredPod[],
  nowMs: number,
  waitMs: number,
): Promise<Reconciled> {
  const availableMs = await finishedInTurns(nextAvailableMs(own, set.spec.minReadySeconds ?? 0, nowMs))
  const nextMs = Math.min((availableMs ?? Number.POSITIVE_INFINITY) - nowMs, waitMs)
  return Number.isFinite(nextMs) ? { requeueAfterMs: nextMs + 1 } : undefined
}

function claimFacts(claims: StatefulClaimControl, set: StoredStatefulSet): PlaceClaims<StoredPod> {
  return {
    isLeaving: (ordinal) => claims.isLeaving(set, ordinal),
    isMissing: (ordinal) => claims.isMissing(set, ordinal),
    hasOtherOwners: (pod) => claims.hasOtherOwners(set, pod),
  }
}

type Replacement = Extract<Step, { readonly step: 'delete' }>

function isReplacement(one: Step): one is Replacement {
  return one.step === 'delete' && one.because === 'ended' && one.pod.status?.phase === 'Failed'
}

/** The steps, except the replacement of pods that failed again too soon. `waitMs`: until the first of those is due. */
function withoutWaiting(set: StoredStatefulSet, failures: FailedPods, steps: readonly Step[]) {
  const waits = steps.map((one) => (isReplacement(one) ? failures.waitMs(failureKey(set, one.pod)) : 0))
  return {
    planned: steps.filter((_, index) => waits[index] === 0),
    waitMs: Math.min(...waits.filter((waitMs) => waitMs > 0), Number.POSITIVE_INFINITY),
  }
}

function countReplacements(set: StoredStatefulSet, failures: FailedPods, steps: readonly Step[]): void {
  for (const { pod } of steps.filter(isReplacement)) failures.deleted(failureKey(set, pod))
}

/** A set that was changed begins again. */
function failureKey({ metadata }: StoredStatefulSet, pod: StoredPod): string {
  return `${metadata.uid}/${metadata.generation ?? 0}/${pod.metadata.name}`
}

type Revisions = { readonly current: StoredRevision; readonly update: StoredRevision }

/** In the order of the plan, the first ones alone: what is refused is not asked a thousand times. Throws the first error. */
async function takeSteps(
  control: StatefulPodControl,
  set: StoredStatefulSet,
  steps: readonly Step[],
  revisions: Revisions,
): Promise<void> {
  const { error } = await slowStart(steps.length, async (index) => {
    const one = steps[index]
    return one === undefined || (await takeStep(control, set, one, revisions))
  })
  if (error !== undefined) throw error
}

async function takeStep(
  control: StatefulPodControl,
  set: StoredStatefulSet,
  one: Step,
  revisions: Revisions,
): Promise<boolean> {
  switch (one.step) {
    case 'create': {
      const revision = revisions[one.revision]
      const template = one.revision === 'update' ? set.spec.template : templateOf(revision)
      return await control.create(set, one.ordinal, revision.metadata.name, template)
    }
    case 'delete':
      await control.delete(set, one.pod)
      return true
    case 'identify':
      await control.identify(set, one.pod, one.ordinal)
      return true
    case 'claims':
      await control.settleClaims(set, one.pod, one.ordinal)
      return true
  }
}

function templateOf(revision: StoredRevision): PodTemplateSpec {
  const template = revisionTemplate(revision)
  if (template === undefined) throw new Error(`ControllerRevision ${revision.metadata.name} holds no template of pods`)
  return template
}

/** Revisions that neither the set nor a pod of it names. */
function surplusOf(
  { spec }: StoredStatefulSet,
  { old, duplicates }: PresentRevision,
  current: StoredRevision,
  own: readonly StoredPod[],
): readonly StoredRevision[] {
  if (duplicates.length + old.length === 0) return []
  const live = new Set([current.metadata.name, ...own.map(revisionOf)])
  const isLive = ({ metadata }: StoredRevision) => live.has(metadata.name)
  return surplusRevisions([...duplicates, ...old], spec.revisionHistoryLimit ?? 10, isLive, 'not-live')
}

type Seen = {
  readonly own: readonly StoredPod[]
  readonly revisions: { readonly current: string; readonly update: string }
  readonly steps: readonly Step[]
  readonly collisionCount: number
}

/** As they were before this visit: what it created and deleted is counted by the next one. */
async function writeStatus(
  needs: HistoryNeeds,
  set: StoredStatefulSet,
  { own, revisions, steps, collisionCount }: Seen,
): Promise<void> {
  const { name, namespace = '', uid, generation } = set.metadata
  const nowMs = needs.clock.wallMs()
  const facts = { pods: own, revisions, generation, collisionCount, steps, nowMs }
  const status = await finishedInTurns(statefulStatus(set, facts))
  if (equalJSON(status, set.status)) return
  // Conditions are written by others: those that the store has stay.
  const change = (fresh: StoredStatefulSet) => {
    const { conditions } = fresh.status ?? {}
    const { conditions: _, ...counts } = status
    return { ...fresh, status: { ...counts, ...(conditions && { conditions }) } }
  }
  await rewrite(needs, 'statefulsets', { key: { namespace, name }, uid, part: 'status', change })
}
