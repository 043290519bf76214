/** Loop: replaces the ReplicaSets of Deployments by those of their present templates (pkg/controller/deployment). */
import { isApiError } from '../../../../api/api-error.ts'
import { hasEndedForGood } from '../../../../api/node/node-shutdown.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import type { Reconciled } from '../../../../daemon/controller.ts'
import { messageOf } from '../../../../daemon/errors.ts'
import type { Loop } from '../../../../daemon/run.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { removeObject } from '../../../store/object-removal.ts'
import { rewrite } from '../../../store/rewrite.ts'
import type { StoredObject } from '../../../store/store.ts'
import { claimObjects } from '../claims.ts'
import { controllerOf } from '../controller-ref.ts'
import type { OwnedObjects } from '../owned-objects.ts'
import { type OwnersInQueue, ownerLoop } from '../owner-loop.ts'
import { isNamespaceTerminating, type PodControl, type PodControlNeeds, podControl } from '../pod-control.ts'
import { selecting } from '../selecting.ts'
import { type DeploymentPlan, type DeploymentWrite, planDeployment, type StoredSet } from './deployment-plan.ts'
import { revisionAnnotation } from './deployment-revisions.ts'
import { sizeOf } from './deployment-sizes.ts'
import { hasProgressDeadline, progressing, withDeploymentCondition } from './deployment-status.ts'
import { isSameTemplate } from './template-hash.ts'

type StoredDeployment = StoredObject<'deployments'>

const component = 'deployment-controller'

export function deploymentController(
  needs: PodControlNeeds,
  pods: OwnedObjects<'pods'>,
  replicaSets: OwnedObjects<'replicasets'>,
): Loop {
  const { clock } = needs
  const control = podControl(needs, component)
  const selects = selecting((deployment: StoredDeployment) => deployment.spec.selector)
  const isRunning = (set: StoredSet) => {
    for (const pod of pods.ofController(set)) if (!hasEndedForGood(pod)) return true
    return false
  }

  const reconcile = async (deployment: StoredDeployment, found: readonly StoredSet[]): Promise<Reconciled> => {
    const select = selects(deployment)
    if (select === undefined) return undefined
    const claim = {
      owners: 'deployments',
      owner: deployment,
      dependents: replicaSets.resource,
      selects: select,
    } as const
    const sets = await claimObjects(needs, claim, found)
    pods.catchUp()
    const nowMs = clock.wallMs()
    const plan = planDeployment({ deployment, sets, runsPods: isRunning, nowMs, now: rfc3339(nowMs) })
    for (const write of plan.writes) {
      if (!(await execute(needs, control, deployment, write))) return undefined
    }
    await writeStatus(needs, deployment, plan)
    return plan.checkAfterMs === undefined ? undefined : { requeueAfterMs: plan.checkAfterMs }
  }

  return ownerLoop(needs, {
    name: 'deployment',
    owners: 'deployments',
    dependents: replicaSets,
    selects,
    reconcile,
    ownStatus: true,
    connect: (owners) => visitAtLastPod(owners, pods, replicaSets),
  })
}

/** Recreate waits for the old pods to end, which no ReplicaSet shows: its replicas do not include pods that are being deleted. */
function visitAtLastPod(
  owners: OwnersInQueue<'deployments'>,
  pods: OwnedObjects<'pods'>,
  replicaSets: OwnedObjects<'replicasets'>,
): void {
  pods.onChange((present, previous) => {
    if (previous === undefined || hasEndedForGood(previous) || (present !== undefined && !hasEndedForGood(present)))
      return
    const namespace = previous.metadata.namespace ?? ''
    const set = replicaSets.get({ namespace, name: controllerOf(previous)?.name ?? '' })
    const deployment = set && owners.get({ namespace, name: controllerOf(set)?.name ?? '' })
    if (deployment?.spec.strategy?.type === 'Recreate') owners.enqueue(deployment)
  })
}

/** False: the plan cannot continue, and another visit follows. */
async function execute(
  needs: PodControlNeeds,
  control: PodControl,
  deployment: StoredDeployment,
  write: DeploymentWrite,
): Promise<boolean> {
  switch (write.step) {
    case 'create':
      return await createSet(needs, control, deployment, write.set)
    case 'change':
      return await changeSet(needs, control, deployment, write)
    case 'delete':
      await removeObject(needs, 'replicasets', write.set)
      return true
  }
}

async function createSet(
  { store, clock, creation }: PodControlNeeds,
  control: PodControl,
  deployment: StoredDeployment,
  set: Extract<DeploymentWrite, { step: 'create' }>['set'],
): Promise<boolean> {
  const { name, namespace = '', uid } = deployment.metadata
  const key = { namespace, name }
  const setName = set.metadata.name ?? ''
  try {
    await creation.create('replicasets', set, component)
    if (sizeOf(set) > 0) await recordScaled(control, deployment, 'up', setName, 0, sizeOf(set))
    return true
  } catch (error) {
    if (isNamespaceTerminating(error)) return false
    if (isApiError(error, 'AlreadyExists')) {
      const other = await store.get('replicasets', { namespace, name: setName })
      const isOurs = other !== undefined && controllerOf(other)?.uid === uid
      if (isOurs && isSameTemplate(other.spec.template, deployment.spec.template)) return true
      // Another object has the name: the next visit makes another one (ComputeHash).
      const change = (fresh: StoredDeployment) => ({
        ...fresh,
        status: { ...fresh.status, collisionCount: (deployment.status?.collisionCount ?? 0) + 1 },
      })
      await rewrite({ store, clock }, 'deployments', { key, uid, part: 'status', change })
      throw error
    }
    const message = `Failed to create new replica set "${setName}": ${messageOf(error)}`
    if (hasProgressDeadline(deployment)) {
      const failed = progressing('False', 'ReplicaSetCreateError', message)
      const now = rfc3339(clock.wallMs())
      const change = (fresh: StoredDeployment) => {
        const conditions = withDeploymentCondition(fresh.status?.conditions ?? [], failed, now)
        return { ...fresh, status: { ...fresh.status, conditions } }
      }
      await rewrite({ store, clock }, 'deployments', { key, uid, part: 'status', change })
    }
    await control.record(deployment, { type: 'Warning', reason: 'ReplicaSetCreateError', message })
    throw error
  }
}

/** Nothing is written over a size that somebody else has set in the meantime: the next visit plans with it. */
async function changeSet(
  { store, clock }: PodControlNeeds,
  control: PodControl,
  deployment: StoredDeployment,
  { before, after }: Extract<DeploymentWrite, { step: 'change' }>,
): Promise<boolean> {
  const { name, namespace = '', uid } = before.metadata
  const { minReadySeconds, replicas } = after.spec
  const change = (fresh: StoredSet) => {
    if (sizeOf(fresh) !== sizeOf(before)) return undefined
    const annotations = { ...fresh.metadata.annotations, ...after.metadata.annotations }
    const spec = {
      ...fresh.spec,
      ...(replicas !== undefined && { replicas }),
      ...(minReadySeconds !== undefined && { minReadySeconds }),
    }
    return { ...fresh, metadata: { ...fresh.metadata, annotations }, spec }
  }
  const written = await rewrite({ store, clock }, 'replicasets', { key: { namespace, name }, uid, change })
  if (written === undefined) return false
  const [from, to] = [sizeOf(before), sizeOf(after)]
  if (from !== to) await recordScaled(control, deployment, from < to ? 'up' : 'down', name, from, to)
  return true
}

async function recordScaled(
  control: PodControl,
  deployment: StoredDeployment,
  direction: 'up' | 'down',
  set: string,
  from: number,
  to: number,
): Promise<void> {
  const message = `Scaled ${direction} replica set ${set} from ${from} to ${to}`
  await control.record(deployment, { type: 'Normal', reason: 'ScalingReplicaSet', message })
}

async function writeStatus(
  { store, clock }: PodControlNeeds,
  deployment: StoredDeployment,
  { status, revision }: DeploymentPlan,
): Promise<void> {
  const { name, namespace = '', uid, annotations } = deployment.metadata
  const isRevised = revision === undefined || annotations?.[revisionAnnotation] === revision
  if (isRevised && equalJSON(status, deployment.status)) return
  const change = (fresh: StoredDeployment) => {
    const revised = { ...fresh.metadata.annotations, ...(revision !== undefined && { [revisionAnnotation]: revision }) }
    return { ...fresh, ...(!isRevised && { metadata: { ...fresh.metadata, annotations: revised } }), status }
  }
  const part = isRevised ? 'status' : 'whole'
  await rewrite({ store, clock }, 'deployments', { key: { namespace, name }, uid, part, change })
}
