/** Loops: keep as many pods as ReplicaSets and ReplicationControllers want (pkg/controller/replicaset, pkg/controller/replication). */

import type { LabelSelector } from '../../../../api/meta.ts'
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import { inParallel } from '../../../../daemon/in-parallel.ts'
import { eachInTurns, finishedInTurns, yieldTurn } from '../../../../daemon/limits/turn-limit.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject, StoredPod } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import { controllerOf } from '../controller-ref.ts'
import { firstToDelete } from '../deletion-order.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { ownerLoop } from '../owner-loop.ts'
import { type PodControl, type PodControlNeeds, podControl } from '../pod-control.ts'
import { isActivePod, nextAvailableMs } from '../pod-readiness.ts'
import { selecting } from '../selecting.ts'
import { slowStart } from '../slow-start.ts'
import { replacementWaitMs } from './replica-backoff.ts'
import { countReplicas, planReplicas, replicaStatus } from './replica-plan.ts'

type ReplicaKind = 'replicasets' | 'replicationcontrollers'
type Owner<R extends ReplicaKind> = StoredObject<R>

/** What differs between the two kinds. */
type Variant<R extends ReplicaKind> = {
  readonly name: string
  readonly owners: R
  /** In Events, and as the service account of its writes. */
  readonly component: string
  readonly selectorOf: (owner: Owner<R>) => LabelSelector | undefined
  readonly templateOf: (owner: Owner<R>) => PodTemplateSpec | undefined
  /** The pods that serve the same purpose; undefined: only its own are known. */
  readonly relatedTo: (owner: Owner<R>) => readonly StoredPod[] | undefined
}

const writesAtOnce = 32
const waiting =
  'Back-off creating pods: those created last failed, see their status. Delete them to create pods at once'

export function replicaSetController(
  needs: PodControlNeeds,
  pods: OwnedObjects<'pods'>,
  replicaSets: OwnedObjects<'replicasets'>,
): Loop {
  return replicaLoop(needs, pods, {
    name: 'replicaset',
    owners: 'replicasets',
    component: 'replicaset-controller',
    selectorOf: ({ spec }) => spec.selector,
    templateOf: ({ spec }) => spec.template,
    relatedTo(owner) {
      const controller = controllerOf(owner)
      if (controller === undefined) return undefined
      return [...replicaSets.ofController({ metadata: { ...owner.metadata, uid: controller.uid } })].flatMap((set) => [
        ...pods.ofController(set),
      ])
    },
  })
}

export function replicationControllerController(needs: PodControlNeeds, pods: OwnedObjects<'pods'>): Loop {
  return replicaLoop(needs, pods, {
    name: 'replicationcontroller',
    owners: 'replicationcontrollers',
    component: 'replication-controller',
    selectorOf: ({ spec }) => spec.selector && { matchLabels: spec.selector },
    templateOf: ({ spec }) => spec.template,
    relatedTo: () => undefined,
  })
}

function replicaLoop<R extends ReplicaKind>(
  needs: PodControlNeeds,
  pods: OwnedObjects<'pods'>,
  variant: Variant<R>,
): Loop {
  const { clock } = needs
  const control = podControl(needs, variant.component)
  const selects = selecting(variant.selectorOf)

  const reconcile = async (owner: Owner<R>, found: readonly StoredPod[]): Promise<Reconciled> => {
    const select = selects(owner)
    if (select === undefined) return undefined
    const active: StoredPod[] = []
    const failed: StoredPod[] = []
    await eachInTurns(found, (pod) => {
      if (isActivePod(pod)) active.push(pod)
      else if (hasEndedForGood(pod) && controllerOf(pod)?.uid === owner.metadata.uid) failed.push(pod)
    })
    const claim = { owners: variant.owners, owner, dependents: pods.resource, selects: select }
    const own = await claimObjects(needs, claim, active)
    await yieldTurn()
    const isLeaving = owner.metadata.deletionTimestamp !== undefined
    const present = { own, failed, nowMs: clock.wallMs() }
    const managed = isLeaving ? nothing : await manage(variant, owner, present, control)
    const { failure, isPartial, waitMs } = managed
    const minReadySeconds = owner.spec.minReadySeconds ?? 0
    await writeStatus(needs, variant, owner, own, failure)
    if (failure !== undefined) throw failure
    if (isPartial) return { requeueAfterMs: 1 }
    await yieldTurn()
    const nowMs = clock.wallMs()
    const nextAtMs = await finishedInTurns(nextAvailableMs(own, minReadySeconds, nowMs))
    const availableMs = (nextAtMs ?? Number.POSITIVE_INFINITY) - nowMs
    const nextMs = Math.min(availableMs, waitMs === 0 ? Number.POSITIVE_INFINITY : waitMs)
    return Number.isFinite(nextMs) ? { requeueAfterMs: nextMs + 1 } : undefined
  }

  return ownerLoop(needs, {
    name: variant.name,
    owners: variant.owners,
    dependents: pods,
    selects,
    concerns: isOtherReplica,
    reconcile,
    ownStatus: true,
  })
}

/** `failure`: the error of the first write that failed. `isPartial`: the next visit continues at once. `waitMs`: until pods may be created. */
type Managed = { readonly failure: Error | undefined; readonly isPartial: boolean; readonly waitMs: number }
const nothing: Managed = { failure: undefined, isPartial: false, waitMs: 0 }

type Present = { readonly own: readonly StoredPod[]; readonly failed: readonly StoredPod[]; readonly nowMs: number }

async function manage<R extends ReplicaKind>(
  { templateOf, relatedTo }: Variant<R>,
  owner: Owner<R>,
  { own, failed, nowMs }: Present,
  control: PodControl,
): Promise<Managed> {
  const template = templateOf(owner)
  if (template === undefined) return nothing
  const wanted = owner.spec.replicas ?? 1
  const plan = planReplicas(wanted, own.length)
  switch (plan.step) {
    case 'none':
      return nothing
    case 'create': {
      const waitMs = await replacementWaitMs(failed, wanted, nowMs)
      if (waitMs > 0) {
        await control.record(owner, { type: 'Warning', reason: 'BackOff', message: waiting })
        return { ...nothing, waitMs }
      }
      const create = async () => (await control.create(owner, template)) !== undefined
      const { done, error } = await slowStart(plan.count, create)
      // In a namespace that is being deleted nothing is created, and nothing follows.
      const isPartial = plan.isPartial && done === plan.count
      return { ...nothing, failure: error === undefined ? undefined : asError(error), isPartial }
    }
    case 'delete': {
      const pods = await finishedInTurns(firstToDelete(own, relatedTo(owner) ?? [], { count: plan.count, nowMs }))
      const failure = await inParallel(pods, writesAtOnce, (pod) => control.delete(owner, pod)).then(
        () => undefined,
        (error: unknown) => asError(error),
      )
      return { ...nothing, failure, isPartial: plan.isPartial }
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(messageOf(error))
}

/** `own`: as they were before this visit, as in Kubernetes: what it created and deleted is counted by the next one. */
async function writeStatus<R extends ReplicaKind>(
  { store, clock }: PodControlNeeds,
  { owners, templateOf }: Variant<R>,
  owner: Owner<R>,
  own: readonly StoredPod[],
  failure: Error | undefined,
): Promise<void> {
  const { name, namespace = '', uid } = owner.metadata
  const nowMs = clock.wallMs()
  const counts = await countReplicas(own, {
    templateLabels: templateOf(owner)?.metadata?.labels,
    minReadySeconds: owner.spec.minReadySeconds ?? 0,
    nowMs,
  })
  const status = replicaStatus(owner.status, {
    counts,
    wanted: owner.spec.replicas ?? 1,
    generation: owner.metadata.generation,
    failure: failure?.message,
    now: rfc3339(nowMs),
  })
  if (equalJSON(status, owner.status)) return
  const change = (fresh: Owner<R>) => ({ ...fresh, status })
  await rewrite({ store, clock }, owners, { key: { namespace, name }, uid, part: 'status', change })
}

/** Whether a change of a pod may change what its owner does or counts. */
function isOtherReplica(present: StoredPod, previous: StoredPod): boolean {
  return (
    isActivePod(present) !== isActivePod(previous) ||
    !equalJSON(readyOf(present), readyOf(previous)) ||
    !equalJSON(present.metadata.labels ?? {}, previous.metadata.labels ?? {})
  )
}

function readyOf({ status }: StoredPod) {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return { status: ready?.status ?? '', since: ready?.lastTransitionTime ?? '' }
}
