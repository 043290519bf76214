import { test } from 'tap'
import {
  aDeployment,
  aReplicaSet,
  type DeploymentOverrides,
  type ReplicaSetOverrides,
} from '../../../testing/replica-sets.ts'
import { type DeploymentFacts, type DeploymentWrite, planDeployment, type StoredSet } from './deployment-plan.ts'

const now = '2026-01-01T00:05:00Z'
const nowMs = Date.parse(now)
const revision = 'deployment.kubernetes.io/revision'
const desired = 'deployment.kubernetes.io/desired-replicas'
const most = 'deployment.kubernetes.io/max-replicas'
const sized = { [desired]: '10', [most]: '13' }

/** With this many replicas, all of them available but `missing`, and as a Deployment of ten leaves it. */
const set = (
  name: string,
  replicas: number,
  over: ReplicaSetOverrides & { readonly missing?: number } = {},
): StoredSet => {
  const { missing = 0, annotations, status, ...more } = over
  const counts = { replicas, readyReplicas: replicas - missing, availableReplicas: replicas - missing }
  return aReplicaSet(name, {
    replicas,
    annotations: { ...sized, ...annotations },
    status: { ...counts, ...status },
    ...more,
  })
}
const newSet = (replicas: number, over: Parameters<typeof set>[2] = {}) =>
  set('new', replicas, { image: 'web:2', ...over, annotations: { [revision]: '2', ...over.annotations } })
const oldSet = (replicas: number, over: Parameters<typeof set>[2] = {}) =>
  set('old', replicas, { ...over, annotations: { [revision]: '1', ...over.annotations } })

const plan = (over: DeploymentOverrides, sets: readonly StoredSet[], more: Partial<DeploymentFacts> = {}) =>
  planDeployment({
    deployment: aDeployment({ image: 'web:2', ...over }),
    sets,
    runsPods: () => false,
    nowMs,
    now,
    ...more,
  })
/** `old 10 > 8`, `create 3`, `delete old`. */
const writes = (...given: Parameters<typeof plan>) => plan(...given).writes.map(writeText)
const writeText = (write: DeploymentWrite): string => {
  switch (write.step) {
    case 'create':
      return `create ${write.set.spec.replicas}`
    case 'change':
      return `${write.after.metadata.name} ${write.before.spec.replicas} > ${write.after.spec.replicas}`
    case 'delete':
      return `delete ${write.set.metadata.name}`
  }
}

test('a template without a ReplicaSet gets one, with the next revision and what the surge leaves', async (t) => {
  const made = plan(
    { progressDeadlineSeconds: 600, status: { availableReplicas: 10, readyReplicas: 10, replicas: 10 } },
    [oldSet(10)],
  )
  t.match(made.writes, [
    { step: 'create', set: { spec: { replicas: 3 }, metadata: { annotations: { [revision]: '2' } } } },
  ])
  t.equal(made.revision, '2')
  t.match(made.status.conditions, [{ type: 'Progressing', reason: 'NewReplicaSetCreated' }, { type: 'Available' }])
  t.equal(made.checkAfterMs, 601_000)
  const silent = plan({}, [oldSet(10)])
  t.notOk(
    silent.status.conditions?.some(({ type }) => type === 'Progressing'),
    'without a deadline there is no Progressing condition',
  )
  t.equal(silent.checkAfterMs, undefined)
})

test('a rolling update grows the new ReplicaSet before it shrinks an old one', async (t) => {
  t.same(writes({}, [oldSet(8), newSet(3)]), ['new 3 > 5'])
  t.same(writes({}, [oldSet(8), newSet(5)]), ['old 8 > 3'])
  t.same(writes({}, [oldSet(0), newSet(10)]), [])
})

test('old pods go only while enough others are available', async (t) => {
  t.same(writes({}, [oldSet(8), newSet(5, { missing: 5 })]), [])
  t.same(writes({}, [oldSet(8), newSet(5, { missing: 4 })]), ['old 8 > 7'])
  t.same(writes({}, [oldSet(10), newSet(3, { missing: 3 })]), ['old 10 > 8'])
})

test('old pods that are not available go first, and count for none', async (t) => {
  t.same(writes({}, [oldSet(8, { missing: 2 }), newSet(5, { missing: 5 })]), [])
  t.same(writes({}, [oldSet(10, { missing: 10 }), newSet(3, { missing: 3 })]), ['old 10 > 8'])
  const older = set('older', 4, { image: 'web:0', creationTimestamp: '2025-01-01T00:00:00Z', missing: 1 })
  t.same(writes({}, [oldSet(4), older, newSet(5)]), ['older 4 > 0', 'old 4 > 3'])
  t.same(writes({}, [oldSet(6, { missing: 3 }), set('b', 2, { image: 'web:0' }), newSet(5, { missing: 3 })]), [
    'old 6 > 4',
  ])
})

test('of unavailable old pods at most as many go as may be missing', async (t) => {
  const older = set('older', 4, { image: 'web:0', creationTimestamp: '2025-01-01T00:00:00Z', missing: 4 })
  t.same(writes({}, [oldSet(4, { missing: 4 }), older, newSet(5)]), ['older 4 > 0', 'old 4 > 3'])
})

test('pods that an old ReplicaSet is still losing do not make it lose more', async (t) => {
  t.same(writes({}, [oldSet(3, { missing: -5 }), newSet(10, { missing: 5 })]), [])
})

test('a new ReplicaSet that is too large shrinks', async (t) => {
  t.same(writes({}, [newSet(12)]), ['new 12 > 10'])
})

test('ReplicaSets that were scaled for another size of the Deployment are scaled first, in proportion', async (t) => {
  t.same(writes({ replicas: 15 }, [oldSet(8), newSet(5)]), ['old 8 > 11', 'new 5 > 7'])
  const follows = newSet(5, { annotations: { [desired]: '15' } })
  t.same(writes({ replicas: 15 }, [oldSet(8), follows]), ['old 8 > 11', 'new 5 > 7'], 'one of them is enough')
  const other = set('other', 4, { image: 'web:0' })
  t.same(writes({ replicas: 15 }, [oldSet(9), other]), ['old 9 > 12', 'other 4 > 6'], 'none is of the template')
  t.same(writes({ replicas: 4 }, [newSet(10)]), ['new 10 > 4'])
  t.same(writes({ replicas: 12 }, [oldSet(10)]), ['old 10 > 12'], 'before the new one is made')
  t.same(writes({ strategy: { type: 'Recreate' }, replicas: 15 }, [oldSet(8), newSet(5)]), [])
})

test('annotations of sizes follow also where the size does not change', async (t) => {
  const { writes: made } = plan({ replicas: 5 }, [newSet(5)])
  t.match(made, [
    { step: 'change', after: { metadata: { annotations: { [desired]: '5', [most]: '8' } }, spec: { replicas: 5 } } },
  ])
  t.same(
    writes({ replicas: 5 }, [newSet(5, { annotations: { [desired]: 'x' } })]),
    [],
    'what is not a number is not a size',
  )
  t.same(writes({ replicas: 0 }, [newSet(0), oldSet(0)]), [], 'nor is that of a ReplicaSet without replicas')
})

test('once the new ReplicaSet has all replicas, the others are emptied', async (t) => {
  const paused = (sets: readonly StoredSet[]) => writes({ paused: true }, sets)
  t.same(paused([oldSet(3), newSet(10)]), ['old 3 > 0'])
  t.same(paused([oldSet(3), newSet(10, { missing: 1 })]), [], 'one is missing')
  t.same(paused([oldSet(3), newSet(12, { missing: 2 })]), ['new 12 > 10'], 'it has too many')
  t.same(paused([oldSet(3), newSet(10, { annotations: { [desired]: '9' } })]), ['new 10 > 10'])
})

test('a paused Deployment is scaled, and its template waits', async (t) => {
  const paused = plan({ paused: true, progressDeadlineSeconds: 600 }, [oldSet(10)])
  t.same(paused.writes, [])
  t.match(paused.status.conditions, [{ reason: 'DeploymentPaused' }, { type: 'Available' }])
  t.equal(paused.checkAfterMs, undefined)
  t.same(writes({ paused: true, replicas: 4 }, [oldSet(10)]), ['old 10 > 4'])
  t.same(
    writes({ paused: true, replicas: 4 }, [
      oldSet(0),
      set('older', 0, { image: 'web:0', creationTimestamp: '2025-01-01T00:00:00Z' }),
    ]),
    ['old 0 > 4'],
  )
  t.same(writes({ paused: true, replicas: 4 }, [oldSet(10), newSet(0)]), ['old 10 > 4'], 'the one with pods')
  t.same(writes({ paused: true, replicas: 4 }, [oldSet(0)]), ['old 0 > 4'])
  t.same(writes({ paused: true }, []), [])
})

test('Recreate makes new pods when the old ones have ended', async (t) => {
  const recreate = { strategy: { type: 'Recreate' } }
  t.same(writes(recreate, [oldSet(10)]), ['old 10 > 0'])
  t.same(writes(recreate, [oldSet(0, { status: { replicas: 2 } })]), [], 'pods are counted')
  const ended = set('ended', 0, { image: 'web:0' })
  t.same(writes(recreate, [oldSet(0, { status: { replicas: 2 } }), ended]), [], 'of one of them')
  t.same(writes(recreate, [oldSet(0)], { runsPods: () => true }), [], 'pods are leaving')
  t.same(writes(recreate, [oldSet(0)]), ['create 10'])
  t.same(writes(recreate, [oldSet(0), newSet(0)]), ['new 0 > 10'])
  const leavingOnly = (one: StoredSet) => one.metadata.name === 'new'
  t.same(
    writes(recreate, [oldSet(0), newSet(0)], { runsPods: leavingOnly }),
    ['new 0 > 10'],
    'new pods are not waited for',
  )
})

test('a ReplicaSet that is found again has the annotations, the revision and the readiness of its Deployment', async (t) => {
  const found = plan({ minReadySeconds: 7, annotations: { a: 'b' }, progressDeadlineSeconds: 600 }, [
    oldSet(0),
    newSet(10, { annotations: { [revision]: '1' } }),
  ])
  t.match(found.writes, [
    { step: 'change', after: { metadata: { annotations: { a: 'b', [revision]: '2' } }, spec: { minReadySeconds: 7 } } },
  ])
  t.equal(found.writes.length, 1)
  t.equal(found.revision, '2')
  const { conditions = [] } = plan({ progressDeadlineSeconds: 600 }, [newSet(3)]).status
  t.match(
    conditions.find(({ type }) => type === 'Progressing'),
    { status: 'True' },
  )
  t.same(writes({ minReadySeconds: 7 }, [newSet(10, { minReadySeconds: 7 })]), [])
  t.same(writes({}, [newSet(10, { minReadySeconds: 7 })]), ['new 10 > 10'])
})

test('changes of one ReplicaSet are one write, of what it was and what it becomes', async (t) => {
  const [write, ...others] = plan({ annotations: { a: 'b' } }, [oldSet(8), newSet(3)]).writes
  t.match(write, {
    step: 'change',
    before: { spec: { replicas: 3 } },
    after: { metadata: { annotations: { a: 'b' } }, spec: { replicas: 5 } },
  })
  t.notOk(write?.step === 'change' && 'a' in (write.before.metadata.annotations ?? {}))
  t.same(others, [])
})

test('a rollout is looked at again when its progress is due', async (t) => {
  const under = plan({ progressDeadlineSeconds: 600 }, [oldSet(8), newSet(5, { missing: 5 })])
  t.equal(under.checkAfterMs, 601_000)
  t.equal(plan({ progressDeadlineSeconds: 600 }, [newSet(10)]).checkAfterMs, undefined)
})

const revised = (number: number, over: Parameters<typeof set>[2] = {}) =>
  set(`old-${number}`, 0, { image: `old:${number}`, ...over, annotations: { [revision]: String(number) } })

test('after a rollout the oldest revisions above the limit go', async (t) => {
  const sets = [revised(3), revised(1), revised(2), newSet(10, { annotations: { [revision]: '4' } })]
  t.same(writes({ revisionHistoryLimit: 1 }, sets), ['delete old-1', 'delete old-2'])
  t.same(writes({ revisionHistoryLimit: 0 }, sets), ['delete old-1', 'delete old-2', 'delete old-3'])
  t.same(writes({ revisionHistoryLimit: 3 }, sets), [])
  t.same(writes({ revisionHistoryLimit: 9 }, sets), [])
  t.same(writes({}, sets), [], 'without a limit all stay')
  const unfinished = [...sets.slice(0, 3), newSet(10, { missing: 1, annotations: { [revision]: '4' } })]
  t.same(writes({ revisionHistoryLimit: 0 }, unfinished), [], 'an unfinished rollout may need them')
  t.same(writes({ revisionHistoryLimit: 1, paused: true }, unfinished), ['delete old-1', 'delete old-2'])
  t.same(writes({ revisionHistoryLimit: 1, strategy: { type: 'Recreate' } }, sets), ['delete old-1', 'delete old-2'])
})

test('a revision that has pods, was not counted yet, or is going already stays, and does not displace another one', async (t) => {
  const kept = (one: StoredSet) =>
    writes({ revisionHistoryLimit: 0, paused: true }, [one, newSet(10, { annotations: { [revision]: '4' } })])
  t.same(kept(revised(1)), ['delete old-1'])
  t.same(kept(revised(1, { status: { replicas: 1 } })), [])
  const wanted = set('old-1', 3, { image: 'old:1', annotations: { [revision]: '1' }, status: { replicas: 0 } })
  t.same(writes({ revisionHistoryLimit: 0, paused: true }, [wanted, newSet(10, { missing: 1 })]), [])
  t.same(kept(revised(1, { generation: 3, status: { observedGeneration: 2 } })), [])
  t.same(kept(revised(1, { generation: 3, status: { observedGeneration: 3 } })), ['delete old-1'])
  t.same(kept(revised(1, { deletionTimestamp: now })), [])
  const sets = [revised(1, { deletionTimestamp: now }), revised(2), newSet(10, { annotations: { [revision]: '4' } })]
  t.same(writes({ revisionHistoryLimit: 1 }, sets), [])
})

test('a ReplicaSet that has reported nothing yet has no pods', async (t) => {
  const bare = (name: string, replicas: number, image: string) =>
    aReplicaSet(name, { replicas, image, annotations: { ...sized, [revision]: name === 'new' ? '2' : '1' } })
  t.same(writes({ paused: true }, [oldSet(3), bare('new', 10, 'web:2')]), [])
  t.same(writes({}, [oldSet(10), bare('new', 3, 'web:2')]), ['old 10 > 8'])
  t.same(writes({}, [bare('old', 10, 'web:1'), newSet(3)]), ['old 10 > 5'])
  t.same(writes({ strategy: { type: 'Recreate' } }, [bare('old', 0, 'web:1')]), ['create 10'])
})

test('progress begins with the ReplicaSet that is found, where nothing is known of it', async (t) => {
  const progressOf = (over: DeploymentOverrides) =>
    plan({ deletionTimestamp: now, ...over }, [newSet(10)]).status.conditions?.find(
      ({ type }) => type === 'Progressing',
    )
  t.match(progressOf({ progressDeadlineSeconds: 600 }), {
    status: 'True',
    reason: 'FoundNewReplicaSet',
    message: 'Found new replica set "new"',
  })
  t.equal(progressOf({}), undefined)
  const known = { type: 'Progressing', status: 'True', reason: 'Known' } as const
  t.match(progressOf({ progressDeadlineSeconds: 600, status: { conditions: [known] } }), known)
})

test('a Deployment that is being deleted only counts', async (t) => {
  const going = plan({ deletionTimestamp: now, replicas: 3, paused: true, progressDeadlineSeconds: 600 }, [newSet(10)])
  t.same(going.writes, [])
  t.equal(going.status.replicas, 10)
  t.notOk(going.status.conditions?.some(({ reason }) => reason === 'DeploymentPaused'))
})
