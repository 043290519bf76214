import { test } from 'tap'
import type { Pod } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import type { StatefulSet, StatefulSetStatus } from '../../../../api/workloads/stateful-set.ts'
import { finished } from '../../../../daemon/watchdog/steps.ts'
import { mostReadInStep } from '../../../testing/longest-step.ts'
import { type PlaceClaims, planStateful, statefulStatus } from './stateful-plan.ts'

const revisions = { current: 'old', update: 'new' }
const nowMs = Date.parse('2026-01-01T01:00:00Z')
const since = { lastTransitionTime: '2026-01-01T00:59:30Z' }
const setOf = (spec: Partial<StatefulSet['spec']>, status?: StatefulSetStatus) => ({
  metadata: { name: 'db' },
  spec: {
    replicas: 3,
    template: { spec: { containers: [] } },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    ...spec,
  },
  ...(status && { status }),
})
/** `0 1! 2- 3x 4*`: ready, not ready, leaving, failed, and of the old revision; `?` has no label of its name; `.` and `~` are pending. */
function podsOf(text: string): readonly Pod[] {
  return text
    .split(' ')
    .filter(Boolean)
    .map((one) => {
      const [, ordinal = '', marks = ''] = /^(\d+)(.*)$/.exec(one) ?? []
      const is = (mark: string) => marks.includes(mark)
      const name = `db-${ordinal}`
      return aPod({
        status: {
          phase: is('x') ? 'Failed' : is('.') || is('~') ? 'Pending' : 'Running',
          conditions: [{ type: 'Ready', status: is('!') || is('x') || is('.') ? 'False' : 'True', ...since }],
        },
        metadata: {
          name,
          labels: {
            'controller-revision-hash': is('*') ? 'old' : 'new',
            ...(!is('?') && { 'statefulset.kubernetes.io/pod-name': name }),
          },
          ...(is('-') && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
        },
      })
    })
}
const noClaims: PlaceClaims<Pod> = { isLeaving: () => false, isMissing: () => false, hasOtherOwners: () => false }
const plan = (
  text: string,
  spec: Partial<StatefulSet['spec']> = {},
  status?: StatefulSetStatus,
  claims: Partial<PlaceClaims<Pod>> = {},
) =>
  finished(planStateful(setOf(spec, status), podsOf(text), { revisions, claims: { ...noClaims, ...claims }, nowMs }))
    .map((one) => {
      if (one.step === 'create') return `create ${one.ordinal}${one.revision === 'current' ? ' as it was' : ''}`
      const { name } = one.pod.metadata
      return one.step === 'delete' ? `delete ${name?.slice(3)} (${one.because})` : `${one.step} ${name?.slice(3)}`
    })
    .join(', ')
const parallel = { podManagementPolicy: 'Parallel' }

test('in order, each pod waits until those before it are available', async (t) => {
  t.equal(plan(''), 'create 0')
  t.equal(plan('0.'), '')
  t.equal(plan('0!'), '')
  t.equal(plan('0~'), '', 'ready, but not running')
  t.equal(plan('0'), 'create 1')
  t.equal(plan('0 2'), 'create 1', 'a gap is filled first')
  t.equal(plan('0! 2'), '', 'and not before what precedes it is ready')
  t.equal(plan('0 1 2'), '')
  t.equal(plan('0', { minReadySeconds: 60 }), '')
  t.equal(plan('0', { minReadySeconds: 20 }), 'create 1')
})

test('claims are made for pods that wait for them, and get their owners before pods go', async (t) => {
  const withClaims = (text: string, spec: Partial<StatefulSet['spec']>, claims: Partial<PlaceClaims<Pod>>) =>
    plan(text, spec, undefined, claims)
  const missing = { isMissing: (ordinal: number) => ordinal === 1 }
  t.equal(withClaims('0 1.', {}, missing), 'claims 1')
  t.equal(withClaims('0 1 2', {}, missing), '', 'a pod that runs has what it needs')
  const others = { hasOtherOwners: ({ metadata }: Pod) => metadata.name === 'db-1' }
  t.equal(withClaims('0 1.', {}, others), 'claims 1')
  t.equal(withClaims('0 1!', {}, others), '')
  t.equal(withClaims('0 1 2', {}, others), 'claims 1')
  t.equal(withClaims('0 1', { replicas: 1 }, others), 'claims 1, delete 1 (scale-down)')
  t.equal(withClaims('0 1-', { replicas: 1 }, others), 'claims 1', 'also when it was deleted by hand')
  const leaving = { isLeaving: (ordinal: number) => ordinal === 1 }
  t.equal(withClaims('0', {}, leaving), '', 'its data goes with an earlier pod')
  t.equal(withClaims('0', parallel, leaving), 'create 2')
})

test('in parallel, no pod waits for another', async (t) => {
  t.equal(plan('', parallel), 'create 0, create 1, create 2')
  t.equal(plan('1!', parallel), 'create 0, create 2')
  t.equal(plan('0x 1 5 6', parallel), 'delete 0 (ended), create 2, delete 6 (scale-down), delete 5 (scale-down)')
  const many = finished(
    planStateful(setOf({ ...parallel, replicas: 2_000_000_000 }), [], { revisions, claims: noClaims, nowMs }),
  )
  t.equal(many.length, 250, 'a set may want more than can be listed')
})

test('a pod that is being deleted keeps its place: it is not run twice', async (t) => {
  t.equal(plan('0- 1 2'), '')
  t.equal(plan('0 1- 2'), '')
  t.equal(plan('0- 1'), '', 'and those after it wait')
  t.equal(plan('0- 1- 2-', parallel), '')
  t.equal(plan('0x- 1 2'), '', 'also when it has ended')
  t.equal(plan('0x- 1 2', parallel), '')
})

test('a pod that ended is deleted, and created again once it is gone', async (t) => {
  t.equal(plan('0 1x 2'), 'delete 1 (ended)')
  t.equal(plan('0! 1x 2'), '')
  t.equal(plan('0 2'), 'create 1')
})

test('the highest ordinals go first, one after the other', async (t) => {
  const one = { replicas: 1 }
  t.equal(plan('0 1 2', one), 'delete 2 (scale-down)')
  t.equal(plan('0 1 2-', one), '', 'not before the last one is gone')
  t.equal(plan('0 1', one), 'delete 1 (scale-down)')
  t.equal(plan('0! 1 2', one), '', 'not while another is not ready')
  t.equal(plan('0 1 2!', one), 'delete 2 (scale-down)', 'unless that is what goes')
  t.equal(plan('0 1! 2', one), 'delete 2 (scale-down)')
  t.equal(plan('0 1! 2!', one), '', 'or is not the first that is not ready')
  t.equal(plan('0 1 2', { replicas: 0 }), 'delete 2 (scale-down)')
  t.equal(plan('0 1 2', { ...one, ...parallel }), 'delete 2 (scale-down), delete 1 (scale-down)')
  t.equal(plan('0 1- 2', { ...one, ...parallel }), 'delete 2 (scale-down)')
  t.equal(plan('0 1 2-', { ...one, ...parallel }), 'delete 1 (scale-down)')
  t.equal(plan('2 0 1', one), 'delete 2 (scale-down)', 'in whatever order they are found')
  t.equal(plan('0* 1 2', one), 'delete 2 (scale-down)', 'and an update waits until they are gone')
  t.equal(plan('0* 1-', one), '')
  t.equal(plan('0 1', { ...one, minReadySeconds: 60 }), '')
})

test('ordinals may begin anywhere', async (t) => {
  const late = { replicas: 2, ordinals: { start: 5 } }
  t.equal(plan('', late), 'create 5')
  t.equal(plan('4 5 6', late), 'delete 4 (scale-down)')
  const first = { ...late, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } }
  t.equal(plan('6*', first), 'create 5 as it was')
  t.equal(
    plan('5* 6*', { ...late, updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } }),
    'delete 6 (update)',
  )
})

test('an update goes from the last pod to the first, each of which must be ready again', async (t) => {
  t.equal(plan('0* 1* 2*'), 'delete 2 (update)')
  t.equal(plan('0* 1* 2*-'), '')
  t.equal(plan('0* 1*'), 'create 2')
  t.equal(plan('0* 1* 2!'), '')
  t.equal(plan('0* 1* 2!', parallel), '')
  t.equal(plan('0* 1* 2'), 'delete 1 (update)')
  t.equal(plan('0 1 2'), '')
  t.equal(plan('0* 1* 2x*', parallel), 'delete 2 (ended)', 'once')
  t.equal(plan('0* 1*', parallel), 'create 2', 'and none beside one that is missing')
})

test('a pod that cannot start holds up an update that would correct it, in order, until it is deleted', async (t) => {
  t.equal(plan('0 1 2.*'), '', 'its template has been undone')
  t.equal(plan('0 1 2-.*'), '')
  t.equal(plan('0 1'), 'create 2')
  t.equal(plan('0 1 2.*', parallel), 'delete 2 (update)')
})

test('below the partition pods stay, and come back, as they were', async (t) => {
  const rolling = { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } }
  t.equal(plan('0* 1* 2*', rolling), 'delete 2 (update)')
  t.equal(plan('0* 1* 2', rolling), '')
  t.equal(plan('1* 2', rolling), 'create 0 as it was')
  t.equal(plan('0* 1*', rolling), 'create 2')
  const unset = { updateStrategy: { type: 'RollingUpdate' } }
  t.equal(plan('1* 2', unset, { currentReplicas: 2 }), 'create 0 as it was')
  t.equal(plan('0* 1*', unset, { currentReplicas: 2 }), 'create 2')
  t.equal(plan('1* 2', unset), 'create 0')
})

test('OnDelete replaces nothing by itself', async (t) => {
  const onDelete = { updateStrategy: { type: 'OnDelete' } }
  t.equal(plan('0* 1* 2*', onDelete), '')
  t.equal(plan('0* 2*', onDelete), 'create 1')
  t.equal(plan('1* 2*', onDelete, { currentReplicas: 2 }), 'create 0')
})

test('a pod that was adopted gets the labels of its name', async (t) => {
  t.equal(plan('0? 1 2'), 'identify 0')
  t.equal(plan('0?! 1 2'), '')
  t.equal(plan('0?! 1 2', parallel), 'identify 0')
})

test('the status counts pods by state and revision', async (t) => {
  const statusOf = (text: string, spec: Partial<StatefulSet['spec']> = {}, before?: StatefulSetStatus) => {
    const set = setOf(spec, before)
    const pods = podsOf(text)
    const steps = finished(planStateful(set, pods, { revisions, claims: noClaims, nowMs }))
    return finished(statefulStatus(set, { pods, revisions, generation: 2, collisionCount: 0, steps, nowMs }))
  }
  t.same(statusOf('0* 1- 2!'), {
    observedGeneration: 2,
    replicas: 3,
    readyReplicas: 2,
    availableReplicas: 2,
    currentReplicas: 1,
    updatedReplicas: 1,
    currentRevision: 'old',
    updateRevision: 'new',
    collisionCount: 0,
  })
  t.match(statusOf('0* 1* 2*'), { currentReplicas: 2, updatedReplicas: undefined }, 'one is being replaced')
  t.match(statusOf('0* 1* 2x*', parallel), { currentReplicas: 3 }, 'one that ended is replaced, not updated')
  t.match(statusOf('0* 1*', parallel), { currentReplicas: 2 })
  t.match(statusOf('0 1 2'), { currentReplicas: 3, updatedReplicas: 3, currentRevision: 'new' }, 'the update is over')
  t.match(statusOf('0 1 2', { minReadySeconds: 60 }), { readyReplicas: 3, availableReplicas: 0 })
  t.match(statusOf('0 1 2', { updateStrategy: { type: 'OnDelete' } }), { currentRevision: 'old' })
  const conditions = [{ type: 'Mine', status: 'True' }] as const
  t.same(statusOf('', { replicas: 0 }, { conditions }), {
    observedGeneration: 2,
    replicas: 0,
    availableReplicas: 0,
    currentRevision: 'new',
    updateRevision: 'new',
    collisionCount: 0,
    conditions,
  })
})

test('no step of a plan, and none of a status, reads many pods', async (t) => {
  const pods = Array.from({ length: 4_000 }, (_, ordinal) => aPod({ name: `db-${ordinal}` }))
  for (const replicas of [0, 4_000, 5_000]) {
    const set = setOf({ podManagementPolicy: 'Parallel', replicas })
    const most = mostReadInStep(pods, function* (found) {
      const steps = yield* planStateful(set, found, { revisions, claims: noClaims, nowMs })
      yield* statefulStatus(set, { pods: found, revisions, generation: 1, collisionCount: 0, steps, nowMs })
    })
    t.ok(most <= 100, `${most} reads with ${replicas} replicas`)
  }
})
