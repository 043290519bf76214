import { test } from 'tap'
import type { DeploymentCondition } from '../../../../api/workloads/deployment.ts'
import { aDeployment, aReplicaSet, type DeploymentOverrides } from '../../../testing/replica-sets.ts'
import {
  conditionOf,
  countedStatus,
  type DeploymentStatusFacts,
  hasProgressDeadline,
  isComplete,
  pausedConditions,
  progressCheckMs,
  progressing,
  rolloutStatus,
  withDeploymentCondition,
} from './deployment-status.ts'

const earlier = '2026-01-01T00:00:00Z'
const now = '2026-01-01T00:05:00Z'
const nowMs = Date.parse(now)
const condition = (type: string, status: DeploymentCondition['status'], reason: string): DeploymentCondition => ({
  ...{ type, status, reason, message: 'm' },
  lastUpdateTime: earlier,
  lastTransitionTime: earlier,
})
const progressed = (reason: string, status: DeploymentCondition['status'] = 'True') =>
  condition('Progressing', status, reason)
const facts = (over: DeploymentOverrides = {}, more: Partial<DeploymentStatusFacts> = {}): DeploymentStatusFacts => ({
  deployment: aDeployment({ progressDeadlineSeconds: 600, ...over }),
  sets: [],
  newSet: undefined,
  conditions: [],
  nowMs,
  now,
  ...more,
})
const counts = (replicas: number, available = replicas) => ({
  replicas,
  readyReplicas: available,
  availableReplicas: available,
})
/** With a new ReplicaSet of this many replicas, all available but `missing`, and an old one of others. */
const rollout = (
  size: number,
  missing: number,
  old: number,
  over: DeploymentOverrides = {},
  conditions: DeploymentStatusFacts['conditions'] = [],
) => {
  const newSet = aReplicaSet('new', { replicas: size, status: counts(size, size - missing) })
  const sets = [newSet, aReplicaSet('old', { replicas: old, status: counts(old) })]
  return facts(over, { newSet, sets, conditions })
}
const progressOf = (given: DeploymentStatusFacts) => conditionOf(rolloutStatus(given).conditions ?? [], 'Progressing')

test('a condition of the same status and reason stays as it is, one of the same status keeps its transition', async (t) => {
  const [first] = withDeploymentCondition([], progressing('True', 'A', 'a'), earlier)
  t.same(first, {
    type: 'Progressing',
    status: 'True',
    reason: 'A',
    message: 'a',
    lastUpdateTime: earlier,
    lastTransitionTime: earlier,
  })
  const conditions = [condition('Available', 'True', 'x'), ...(first ? [first] : [])]
  t.equal(withDeploymentCondition(conditions, progressing('True', 'A', 'other'), now), conditions)
  t.match(withDeploymentCondition(conditions, progressing('True', 'B', 'b'), now), [
    { type: 'Available' },
    { reason: 'B', lastUpdateTime: now, lastTransitionTime: earlier },
  ])
  t.match(withDeploymentCondition(conditions, progressing('False', 'A', 'b'), now), [
    { type: 'Available' },
    { status: 'False', lastUpdateTime: now, lastTransitionTime: now },
  ])
  const { lastTransitionTime: _, ...untimed } = progressed('A')
  t.match(withDeploymentCondition([untimed], progressing('True', 'B', 'b'), now), [{ lastTransitionTime: now }])
})

test('the largest deadline means no deadline', async (t) => {
  t.ok(hasProgressDeadline(aDeployment({ progressDeadlineSeconds: 600 })))
  t.notOk(hasProgressDeadline(aDeployment()))
  t.notOk(hasProgressDeadline(aDeployment({ progressDeadlineSeconds: 2 ** 31 - 1 })))
})

test('the counts are those of the ReplicaSets; a count of nothing is left out', async (t) => {
  const { conditions: _, ...counted } = countedStatus(rollout(4, 1, 6, { generation: 3 }))
  t.same(counted, {
    observedGeneration: 3,
    replicas: 10,
    updatedReplicas: 4,
    readyReplicas: 9,
    availableReplicas: 9,
    unavailableReplicas: 1,
  })
  const surplus = aReplicaSet('a', { replicas: 1, status: counts(2) })
  t.match(countedStatus(facts({}, { sets: [surplus] })), { updatedReplicas: undefined, unavailableReplicas: undefined })
  t.equal(countedStatus(facts({ status: { collisionCount: 0 } })).collisionCount, 0)
  t.notOk('collisionCount' in countedStatus(facts()))
})

test('a Deployment is available while at most as many pods are missing as may be', async (t) => {
  const available = (missing: number) =>
    conditionOf(countedStatus(rollout(10, missing, 0)).conditions ?? [], 'Available')
  t.match(available(2), { status: 'True', reason: 'MinimumReplicasAvailable', lastUpdateTime: now })
  t.match(available(3), { status: 'False', reason: 'MinimumReplicasUnavailable' })
})

test('a rollout is complete when all pods are of the new template, available and counted', async (t) => {
  const whole = { updatedReplicas: 10, replicas: 10, availableReplicas: 10, observedGeneration: 1 }
  t.ok(isComplete(aDeployment(), whole))
  for (const [count, value] of [
    ['updatedReplicas', 9],
    ['replicas', 11],
    ['availableReplicas', 9],
    ['observedGeneration', 0],
  ] as const) {
    t.notOk(isComplete(aDeployment(), { ...whole, [count]: value }), count)
  }
  t.ok(isComplete(aDeployment({ replicas: 0, generation: 0 }), {}))
})

test('a rollout that is complete has progressed, and keeps that condition', async (t) => {
  const progress = progressOf(rollout(10, 0, 0, {}, [progressed('ReplicaSetUpdated')]))
  t.match(progress, {
    status: 'True',
    reason: 'NewReplicaSetAvailable',
    message: 'ReplicaSet "new" has successfully progressed.',
    lastUpdateTime: now,
    lastTransitionTime: earlier,
  })
  const known = [progressed('NewReplicaSetAvailable')]
  t.same(progressOf(rollout(10, 1, 0, {}, known)), known[0], 'a pod that fails later does not begin a rollout')
  t.match(progressOf(rollout(5, 0, 5, {}, known)), { reason: 'ReplicaSetUpdated' }, 'old pods are one')
})

test('each step forward is progress', async (t) => {
  const before = { replicas: 10, updatedReplicas: 5, readyReplicas: 9, availableReplicas: 8 }
  const at = (status: typeof before) => {
    const newSet = aReplicaSet('new', { replicas: 5, status: { ...counts(status.updatedReplicas, 0) } })
    const old = {
      replicas: status.replicas - status.updatedReplicas,
      readyReplicas: status.readyReplicas,
      availableReplicas: status.availableReplicas,
    }
    const sets = [newSet, aReplicaSet('old', { replicas: 5, status: old })]
    return progressOf(facts({ status: before }, { newSet, sets, conditions: [progressed('Seen')] }))?.reason
  }
  t.equal(at(before), 'Seen')
  t.equal(at({ ...before, updatedReplicas: 6, replicas: 11 }), 'ReplicaSetUpdated')
  t.equal(at({ ...before, replicas: 9 }), 'ReplicaSetUpdated', 'an old pod less')
  t.equal(at({ ...before, readyReplicas: 10 }), 'ReplicaSetUpdated')
  t.equal(at({ ...before, availableReplicas: 9 }), 'ReplicaSetUpdated')
  t.equal(at({ ...before, updatedReplicas: 4, replicas: 9, readyReplicas: 8, availableReplicas: 7 }), 'Seen')
})

test('progress moves the time of the update each time, and that of the transition after a failure only', async (t) => {
  const again = progressOf(rollout(5, 0, 5, {}, [progressed('ReplicaSetUpdated')]))
  t.match(again, { message: 'ReplicaSet "new" is progressing.', lastUpdateTime: now, lastTransitionTime: earlier })
  const recovered = progressOf(rollout(5, 0, 5, {}, [progressed('ReplicaSetCreateError', 'False')]))
  t.match(recovered, { status: 'True', lastUpdateTime: now, lastTransitionTime: now })
  t.match(progressOf(rollout(5, 0, 5)), { reason: 'ReplicaSetUpdated', lastTransitionTime: now })
  t.match(progressOf(facts({}, { sets: [aReplicaSet('old', { replicas: 5, status: counts(5) })] })), {
    message: 'Deployment "web" is progressing.',
  })
})

/** Nothing has changed for five minutes. */
const stuck = (deadline: number, conditions: DeploymentStatusFacts['conditions']) => {
  const status = { replicas: 10, updatedReplicas: 5, readyReplicas: 5, availableReplicas: 5 }
  return rollout(5, 5, 5, { progressDeadlineSeconds: deadline, status }, conditions)
}

test('a rollout without progress for longer than its deadline has timed out', async (t) => {
  t.match(progressOf(stuck(299, [progressed('ReplicaSetUpdated')])), {
    status: 'False',
    reason: 'ProgressDeadlineExceeded',
    message: 'ReplicaSet "new" has timed out progressing.',
    lastTransitionTime: now,
  })
  t.match(progressOf(stuck(300, [progressed('ReplicaSetUpdated')])), { reason: 'ReplicaSetUpdated' })
  t.equal(progressOf(stuck(1, [])), undefined, 'what was never seen to start cannot be late')
  const done = progressed('NewReplicaSetAvailable')
  t.same(progressOf(stuck(1, [done])), done, 'nor what has ended')
  const late = progressed('ProgressDeadlineExceeded', 'False')
  t.same(progressOf(stuck(600, [late])), late)
  const { lastUpdateTime: _, ...untimed } = progressed('ReplicaSetUpdated')
  t.match(progressOf(stuck(600, [untimed])), { reason: 'ProgressDeadlineExceeded' })
})

test('without a deadline there is no condition of progress', async (t) => {
  const given = rollout(10, 0, 0, { progressDeadlineSeconds: 2 ** 31 - 1 }, [progressed('ReplicaSetUpdated')])
  t.same(
    (rolloutStatus(given).conditions ?? []).map(({ type }) => type),
    ['Available'],
  )
})

test('pausing and resuming are conditions, and end no timeout', async (t) => {
  const after = (paused: boolean, conditions: DeploymentStatusFacts['conditions'], deadline = 600) =>
    pausedConditions(aDeployment({ paused, progressDeadlineSeconds: deadline }), conditions, now)
  t.match(after(true, []), [{ status: 'Unknown', reason: 'DeploymentPaused', message: 'Deployment is paused' }])
  t.match(after(false, [progressed('DeploymentPaused', 'Unknown')]), [
    { status: 'Unknown', reason: 'DeploymentResumed', message: 'Deployment is resumed' },
  ])
  for (const [paused, reason] of [
    [true, 'DeploymentPaused'],
    [false, 'ReplicaSetUpdated'],
    [true, 'ProgressDeadlineExceeded'],
  ] as const) {
    const conditions = [progressed(reason)]
    t.equal(after(paused, conditions), conditions, reason)
  }
  t.same(after(false, []), [])
  t.same(after(true, [], 2 ** 31 - 1), [])
})

test('progress is looked at again a second after the deadline, while a rollout is under way', async (t) => {
  const after = (deadline: number, conditions: DeploymentStatusFacts['conditions'], complete = false) => {
    const { deployment } = facts({ progressDeadlineSeconds: deadline })
    const done = complete ? { updatedReplicas: 10, replicas: 10, availableReplicas: 10, observedGeneration: 1 } : {}
    return progressCheckMs(deployment, { ...done, conditions: [...conditions] }, nowMs)
  }
  t.equal(after(600, [progressed('ReplicaSetUpdated')]), 301_000)
  t.equal(after(60, [progressed('ReplicaSetUpdated')]), 1_000)
  t.equal(after(600, []), undefined)
  t.equal(after(2 ** 31 - 1, [progressed('ReplicaSetUpdated')]), undefined)
  t.equal(after(600, [progressed('ProgressDeadlineExceeded')]), undefined)
  t.equal(after(600, [progressed('ReplicaSetUpdated')], true), undefined)
  t.equal(after(60, [progressed('NewReplicaSetAvailable')]), undefined, 'a pod that is lost later begins no rollout')
  t.equal(progressCheckMs(aDeployment({ progressDeadlineSeconds: 600 }), {}, nowMs), undefined)
})

test('the failure of the new ReplicaSet is shown, or else that of another one', async (t) => {
  const failed = (name: string, reason = 'FailedCreate') => {
    const failure = {
      type: 'ReplicaFailure',
      status: 'True',
      reason,
      message: name,
      lastTransitionTime: earlier,
    } as const
    const other = { type: 'Other', status: 'True' } as const
    return aReplicaSet(name, { replicas: 1, status: { conditions: [other, failure] } })
  }
  const failureOf = (given: Partial<DeploymentStatusFacts>) =>
    conditionOf(rolloutStatus(facts({}, given)).conditions ?? [], 'ReplicaFailure')
  const [old, newSet] = [failed('old'), failed('new')]
  t.same(failureOf({ sets: [old, newSet], newSet }), {
    ...{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'new' },
    lastUpdateTime: earlier,
    lastTransitionTime: earlier,
  })
  t.match(failureOf({ sets: [old, aReplicaSet('new')], newSet: aReplicaSet('new') }), { message: 'old' })
  t.match(failureOf({ sets: [old] }), { message: 'old' })
  const present = condition('ReplicaFailure', 'True', 'FailedCreate')
  t.same(failureOf({ sets: [old], conditions: [present] }), present, 'the same failure stays as it is')
  const first = { ...present, lastTransitionTime: '2025-12-31T00:00:00Z' }
  t.match(
    failureOf({ sets: [failed('old', 'FailedDelete')], conditions: [first] }),
    { reason: 'FailedDelete', lastUpdateTime: earlier, lastTransitionTime: first.lastTransitionTime },
    'another failure follows: as SetDeploymentCondition, since the first',
  )
  t.equal(failureOf({ sets: [aReplicaSet('old')], conditions: [present] }), undefined)
})
