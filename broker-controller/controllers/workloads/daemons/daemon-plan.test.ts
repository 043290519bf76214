import { test } from 'tap'
import type { Pod } from '../../../../api/pod.ts'
import { aPod, type PodOverrides } from '../../../../api/testing/builders.ts'
import { type DaemonFacts, type DaemonNode, daemonStatus, planDaemons } from './daemon-plan.ts'

const nowMs = Date.parse('2026-01-01T01:00:00Z')
const facts: DaemonFacts = {
  isUpdated: ({ metadata }) => metadata.labels?.['v'] === 'new',
  minReadySeconds: 0,
  allowsSurge: false,
  nowMs,
}
type Given = {
  readonly day?: number
  readonly ready?: boolean
  readonly phase?: 'Failed' | 'Succeeded'
  readonly old?: boolean
  readonly unbound?: boolean
  readonly leaving?: boolean
}
function daemon(name: string, { day = 1, ready = true, phase, old, unbound, leaving }: Given = {}): Pod {
  const since = { lastTransitionTime: '2026-01-01T00:59:00Z' }
  const over: PodOverrides = {
    ...(!unbound && { nodeName: 'a' }),
    status: { phase: phase ?? 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', ...since }] },
    metadata: {
      name,
      creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      labels: { v: old ? 'old' : 'new' },
      ...(leaving && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
  }
  return aPod(over)
}
const runs = { shouldRun: true, shouldContinue: true }
const stays = { shouldRun: false, shouldContinue: true }
const goes = { shouldRun: false, shouldContinue: false }
const node = (pods: readonly Pod[], placement = runs, exists = true): DaemonNode<Pod> => ({
  name: 'a',
  exists,
  placement,
  pods,
})
const planned = (one: DaemonNode<Pod>, more: Partial<DaemonFacts> = {}) => {
  const plan = planDaemons([one], { ...facts, ...more })
  const namesOf = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name)
  return [...plan.create, '|', ...namesOf(plan.delete), '|', ...namesOf(plan.ended.map(({ pod }) => pod))].join(' ')
}

test('a node without a pod gets one, if one belongs there', async (t) => {
  t.equal(planned(node([])), 'a | |')
  t.equal(planned(node([], stays)), '| |')
  t.equal(planned(node([], goes)), '| |')
  t.equal(planned(node([daemon('x')])), '| |')
  t.equal(planned(node([daemon('x', { leaving: true })])), '| |', 'not before its predecessor is gone')
})

test('a node where none belongs loses its pods, unless a taint only keeps others away', async (t) => {
  t.equal(planned(node([daemon('x'), daemon('y', { leaving: true })], goes)), '| x |')
  t.equal(planned(node([daemon('x')], stays)), '| |')
})

test('a pod that was not placed goes with its node', async (t) => {
  t.equal(planned(node([daemon('x', { unbound: true }), daemon('y')], goes, false)), '| x |')
})

test('a pod that ended is replaced', async (t) => {
  t.equal(planned(node([daemon('x', { phase: 'Failed' })])), '| | x')
  t.equal(planned(node([daemon('x', { phase: 'Succeeded' })], stays)), '| | x')
  t.equal(planned(node([daemon('x', { phase: 'Failed' })], goes)), '| x |', 'at once where none belongs')
})

test('of several pods the oldest that is placed stays', async (t) => {
  const pods = [daemon('young', { day: 3 }), daemon('old', { day: 2 }), daemon('waits', { day: 1, unbound: true })]
  t.equal(planned(node(pods)), '| young waits |')
  t.equal(planned(node([daemon('b'), daemon('a')])), '| b |', 'of the same age: by name')
})

test('with surge a node has two pods only while the new one is not available and the old one is ready', async (t) => {
  const surge = { allowsSurge: true }
  const old = daemon('old', { old: true })
  t.equal(planned(node([old, daemon('new', { ready: false })]), surge), '| |')
  t.equal(planned(node([old, daemon('new')]), surge), '| old |')
  t.equal(planned(node([old, daemon('new')]), { ...surge, minReadySeconds: 120 }), '| |')
  const broken = daemon('old', { old: true, ready: false })
  t.equal(planned(node([broken, daemon('new', { ready: false })]), surge), '| old |')
  const third = daemon('third', { day: 2, ready: false })
  t.equal(planned(node([old, daemon('new', { ready: false }), third]), surge), '| third |')
  t.equal(planned(node([daemon('one'), third]), surge), '| third |', 'two of one template are one too many')
  t.equal(planned(node([daemon('x', { leaving: true })]), surge), 'a | |', 'the next one does not wait for the last')
  t.equal(planned(node([daemon('x', { leaving: true })], stays), surge), '| |')
  t.equal(planned(node([old]), surge), '| |')
})

test('the status counts nodes', async (t) => {
  const nodes = [
    node([daemon('a')]),
    node([daemon('b', { old: true })]),
    node([daemon('c', { ready: false, day: 2 }), daemon('older', { old: true })]),
    node([]),
    node([daemon('d')], stays),
    node([daemon('e')], goes, false),
  ]
  t.same(daemonStatus(nodes, facts, { status: undefined, generation: 4 }, 0), {
    desiredNumberScheduled: 4,
    currentNumberScheduled: 3,
    numberMisscheduled: 1,
    numberReady: 3,
    updatedNumberScheduled: 1,
    numberAvailable: 3,
    numberUnavailable: 1,
    observedGeneration: 4,
  })
  const patient = { ...facts, minReadySeconds: 120 }
  t.match(daemonStatus(nodes, patient, { status: undefined, generation: 4 }, 0), {
    numberReady: 3,
    numberAvailable: undefined,
    numberUnavailable: 4,
  })
  const conditions = [{ type: 'Mine', status: 'True' }] as const
  t.same(daemonStatus([], facts, { status: { conditions, collisionCount: 0 }, generation: undefined }, 1), {
    desiredNumberScheduled: 0,
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    numberReady: 0,
    collisionCount: 1,
    conditions,
  })
})

test('a pod that is not bound yet goes before one that is, in whatever order they are found', async (t) => {
  const pods = [daemon('late', { day: 2 }), daemon('early', { unbound: true })]
  t.equal(planned(node(pods)), '| early |')
  t.equal(planned(node(pods.toReversed())), '| early |')
})

test('with surge an old pod that is ready stays beside a new one that is not', async (t) => {
  const surge = { allowsSurge: true }
  const old = daemon('old', { old: true })
  t.equal(planned(node([old, daemon('new', { day: 2, ready: false })]), surge), '| |')
  t.equal(planned(node([old, daemon('new', { day: 2 })]), surge), '| old |')
  const broken = daemon('broken', { old: true, ready: false })
  t.equal(planned(node([broken, daemon('second', { old: true, day: 2 })]), surge), '| second |', 'without a new one')
})

test('the status counts what is ready, what is misplaced, and the collisions that there were', async (t) => {
  const statusOf = (nodes: readonly DaemonNode<Pod>[], collisionCount = 0, before?: number) =>
    daemonStatus(
      nodes,
      facts,
      { status: before === undefined ? undefined : { collisionCount: before }, generation: 1 },
      collisionCount,
    )
  t.match(statusOf([node([daemon('a', { ready: false })]), node([], goes)]), { numberReady: 0, numberMisscheduled: 0 })
  t.equal(statusOf([], 2).collisionCount, 2)
  t.equal(statusOf([], 0, 0).collisionCount, 0)
  t.notOk('collisionCount' in statusOf([]))
})
