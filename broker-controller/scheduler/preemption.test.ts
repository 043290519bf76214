import { test } from 'tap'
import type { Pod } from '../../api/pod.ts'
import { aPod, requiringNodes } from '../../api/testing/builders.ts'
import { finished, type Steps } from '../../daemon/watchdog/steps.ts'
import { aCluster, type Bound, dice, requires } from '../testing/scheduling.ts'
import type { ClusterCache } from './cluster.ts'
import { refusal, roundFor } from './filter.ts'
import { placePod } from './placement.ts'
import { type DisruptionBudget, preempt, readBudget } from './preemption.ts'

const small = (name: string) => ({ name, allocatable: { cpu: '2', memory: '4Gi' } })
const one = (nodeName: string, priority: number, more: Partial<Bound> = {}): Bound => ({
  nodeName,
  priority,
  requests: { cpu: '1' },
  ...more,
})
const asking = (cpu: string, priority = 100, more = {}) => aPod({ name: 'new', requests: { cpu }, priority, ...more })

/** `NODE: victims`, or the message instead. */
function outcome(pod: Pod, known: ClusterCache, budgets: readonly DisruptionBudget[] = [], random = () => 0): string {
  const placement = finished(placePod(pod, known, 0, () => 0))
  if (placement.found) return `fits ${placement.nodeName}`
  const found = finished(preempt(pod, known, placement, { budgets, random }))
  if (!found.helps) return found.message
  return `${found.nodeName}: ${found.victims.map(({ pod }) => pod.metadata.name).join(' ')}`
}

test('as few as possible go, and those that matter least', async (t) => {
  t.equal(outcome(asking('1'), aCluster([small('a')], [one('a', 1), one('a', 2)])), 'a: p0')
  t.equal(outcome(asking('2'), aCluster([small('a')], [one('a', 1), one('a', 2)])), 'a: p1 p0')
  const young = { status: { startTime: '2026-01-01T00:09:00Z' } }
  const old = { status: { startTime: '2026-01-01T00:01:00Z' } }
  t.equal(outcome(asking('1'), aCluster([small('a')], [one('a', 1, old), one('a', 1, young)])), 'a: p1')
})

test('the node where it does the least harm is taken', async (t) => {
  const two = [small('a'), small('b')]
  t.equal(outcome(asking('2'), aCluster(two, [one('a', 9), one('a', 1), one('b', 5), one('b', 5)])), 'b: p2 p3')
  t.equal(outcome(asking('2'), aCluster(two, [one('a', 5), one('a', 5), one('b', 5), one('b', 1)])), 'b: p2 p3')
  const big = one('b', 5, { requests: { cpu: '2' } })
  t.equal(outcome(asking('2'), aCluster(two, [one('a', 5), one('a', 5), big])), 'b: p2')
})

test('a pod does not preempt its equals; the message names what stands against each node', async (t) => {
  const known = aCluster(
    [small('a'), small('b'), { name: 'c', unschedulable: true }],
    [one('a', 100), one('a', 200), one('b', 100), one('b', 100)],
  )
  t.equal(
    outcome(asking('1'), known),
    'preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, ' +
      '2 No preemption victims found for incoming pod.',
  )
  const full = aCluster([small('a')], [one('a', 100), one('a', 1)])
  t.equal(outcome(asking('2'), full), 'preemption: 0/1 nodes are available: 1 Insufficient cpu.')
  t.equal(
    outcome(asking('1', 100, { spec: { preemptionPolicy: 'Never' } }), full),
    'preemption: not eligible due to preemptionPolicy=Never.',
  )
  t.match(outcome(asking('3'), full), /1 Preemption is not helpful/, 'it would not fit an empty node')
})

test('budgets are kept where there is a choice', async (t) => {
  const two = [small('a'), small('b')]
  const web = { labels: { app: 'web' } }
  const known = aCluster(two, [one('a', 1, web), one('a', 50), one('b', 9), one('b', 50)])
  const budget: DisruptionBudget = {
    namespace: 'default',
    requirements: [{ key: 'app', operator: 'In', values: ['web'] }],
    disruptionsAllowed: 0,
    disrupted: new Set(),
  }
  t.equal(outcome(asking('1'), known), 'a: p0')
  t.equal(outcome(asking('1'), known, [budget]), 'b: p2')
  t.equal(outcome(asking('1'), known, [{ ...budget, disruptionsAllowed: 1 }]), 'a: p0')
  const stored = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } } },
  } as const
  t.same(readBudget(stored), budget, 'not counted yet')
  t.equal(outcome(asking('1'), known, [{ ...budget, disrupted: new Set(['p0']) }]), 'a: p0', 'counted already')
  const alone = aCluster([small('a')], [one('a', 1, web), one('a', 9)])
  t.equal(outcome(asking('1'), alone, [budget]), 'a: p1', 'the guarded one comes back first')
})

const webBudget: DisruptionBudget = {
  namespace: 'default',
  requirements: [{ key: 'app', operator: 'In', values: ['web'] }],
  disruptionsAllowed: 0,
  disrupted: new Set(),
}

test('a budget is for the pods of its namespace that its selector names; an empty selector names none', async (t) => {
  const web = { labels: { app: 'web' } }
  const known = aCluster([small('a'), small('b')], [one('a', 1, web), one('a', 50), one('b', 9), one('b', 50)])
  t.equal(outcome(asking('1'), known, [webBudget]), 'b: p2')
  t.equal(outcome(asking('1'), known, [{ ...webBudget, namespace: 'other' }]), 'a: p0')
  const everything = { ...webBudget, requirements: [] }
  t.equal(outcome(asking('1'), known, [everything]), 'a: p0')
  const plain = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'a', namespace: 'default' },
  } as const
  t.same(readBudget(plain).requirements, [], 'nor does one without a selector')
  const expression = { key: 'app', operator: 'Like', values: ['web'] }
  t.same(
    readBudget({ ...plain, spec: { selector: { matchExpressions: [expression] } } }).requirements,
    [],
    'nor an invalid one',
  )
})

test('a budget with an empty selector protects no pod', async (t) => {
  const large = one('b', 9, { requests: { cpu: '2' } })
  const known = aCluster([small('a'), small('b')], [one('a', 1), one('a', 1), large])
  const empty = { ...webBudget, requirements: [] }
  t.equal(outcome(asking('2'), known, [empty]), 'a: p0 p1', 'two disruptions of it are not worse than one')
})

test('where budgets must be violated anyway, the node with fewer violations is taken', async (t) => {
  const web = { labels: { app: 'web' } }
  const known = aCluster([small('a'), small('b')], [one('a', 1, web), one('a', 1, web), one('b', 1, web), one('b', 50)])
  t.equal(outcome(asking('2'), known), 'a: p0 p1')
  t.equal(outcome(asking('2'), known, [webBudget]), 'b: p3 p2')
})

test('among equal nodes chance decides where to begin, so that no node is always the one', async (t) => {
  const names = ['a', 'b', 'c', 'd']
  const known = aCluster(
    names.map(small),
    names.flatMap((name) => [one(name, 1), one(name, 1)]),
  )
  const at = (random: number) => outcome(asking('2'), known, [], () => random).slice(0, 1)
  t.same([0, 0.25, 0.5, 0.99].map(at), names)
})

test('a pod that has not started yet goes before one that runs', async (t) => {
  const started = { status: { startTime: '2026-01-01T00:09:00Z' } }
  t.equal(outcome(asking('1'), aCluster([small('a')], [one('a', 1), one('a', 1, started)])), 'a: p0')
  t.equal(outcome(asking('1'), aCluster([small('a')], [one('a', 1, started), one('a', 1)])), 'a: p1')
})

test('a pod waits only for room that preemption is making for it', async (t) => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const preempted = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' } as const
  const on = (priority: number, more: Partial<Bound>) => {
    const known = aCluster([small('a')], [one('a', priority, more)])
    const pod = asking('2')
    known.nominate('default/new', pod, 'a')
    return outcome(pod, known)
  }
  const waiting = 'preemption: not eligible due to a terminating pod on the nominated node.'
  const metadata = { deletionTimestamp }
  t.equal(on(1, { metadata, status: { conditions: [{ ...preempted, type: 'Ready' }, preempted] } }), waiting)
  for (const condition of [
    { ...preempted, type: 'Ready' },
    { ...preempted, status: 'False' },
    { ...preempted, reason: 'EvictionByEvictionAPI' },
  ] as const) {
    t.equal(on(1, { metadata, status: { conditions: [condition] } }), 'a: p0', JSON.stringify(condition))
  }
  t.equal(on(1, { metadata }), 'a: p0', 'it leaves for another reason')
  t.equal(on(1, { status: { conditions: [preempted] } }), 'a: p0', 'it does not leave')
  t.equal(
    on(100, { metadata, status: { conditions: [preempted] } }),
    'preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    'it does not matter less',
  )
  const two = aCluster([small('a')], [one('a', 1), one('a', 1, { metadata, status: { conditions: [preempted] } })])
  two.nominate('default/new', asking('2'), 'a')
  t.equal(outcome(asking('2'), two), waiting, 'one of several is enough')
})

test('a pod whose nominated node became unfit looks for another', async (t) => {
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] as const
  const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, status: { conditions } }
  const known = aCluster([{ ...small('a'), unschedulable: true }, small('b')], [one('a', 1, leaving), one('b', 1)])
  const pod = asking('2')
  known.nominate('default/new', pod, 'a')
  t.equal(outcome(pod, known), 'b: p1')
})

test('a neighbour that keeps the pod away goes, too', async (t) => {
  const shy = { spec: { priority: 1, ...requires('podAntiAffinity', 'web') } }
  const known = aCluster([small('a')], [one('a', 1, shy)])
  t.equal(outcome(asking('1', 100, { labels: { app: 'web' } }), known), 'a: p0')
})

test('room that was made for a pod is not taken by one that matters less, and it waits for it', async (t) => {
  const leaving = {
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
    status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
  } as const
  const known = aCluster([small('a')], [one('a', 1, leaving)])
  const pod = asking('2')
  known.nominate('default/new', pod, 'a')
  t.equal(outcome(pod, known), 'preemption: not eligible due to a terminating pod on the nominated node.')
  t.match(outcome(aPod({ name: 'late', requests: { cpu: '1' }, priority: 10 }), known), /Insufficient cpu/)
  t.equal(outcome(aPod({ name: 'high', requests: { cpu: '1' }, priority: 200 }), known), 'fits a')
  known.remove('default/p0')
  t.equal(outcome(pod, known), 'fits a')
})

test('whatever the fleet: victims matter less, with them gone the pod fits, with any of them it does not', async (t) => {
  const random = dice(7)
  const pick = (most: number) => Math.floor(random() * most)
  for (let round = 0; round < 150; round++) {
    const names = ['a', 'b', 'c', 'd'].slice(0, 1 + pick(4))
    const bound = Array.from({ length: pick(12) }, () =>
      one(names[pick(names.length)] ?? 'a', pick(4) * 50, {
        requests: { cpu: `${100 * (1 + pick(10))}m` },
        labels: { app: pick(2) === 0 ? 'web' : 'db' },
      }),
    )
    const known = aCluster(names.map(small), bound)
    const spec = pick(3) === 0 ? requires('podAntiAffinity', 'db') : {}
    const pod = asking(`${100 * (1 + pick(20))}m`, 100, { spec: { priority: 100, ...spec } })
    const before = [...known.from(0)].map((usage) => [usage.name, usage.podCount, usage.requested('cpu')])
    const placement = finished(placePod(pod, known, 0, random))
    if (placement.found) {
      const usage = known.node(placement.nodeName)
      t.ok(usage && refusal(finished(roundFor(pod, known)), usage) === undefined, 'a placement passes every filter')
      continue
    }
    const found = finished(preempt(pod, known, placement, { budgets: [], random }))
    t.same(
      [...known.from(0)].map((usage) => [usage.name, usage.podCount, usage.requested('cpu')]),
      before,
    )
    if (!found.helps) continue
    const usage = known.node(found.nodeName)
    if (usage === undefined) return t.fail('no such node')
    t.ok(found.victims.every((victim) => (victim.pod.spec.priority ?? 0) < 100))
    const fits = function* (): Steps<boolean> {
      return refusal(yield* roundFor(pod, known), usage) === undefined
    }
    t.ok(finished(known.without(found.victims, usage.name, fits)))
    for (const kept of found.victims) {
      const others = found.victims.filter((victim) => victim !== kept)
      t.notOk(finished(known.without(others, usage.name, fits)), 'none goes for nothing')
    }
  }
})

test('of two nodes with equal victims the one is taken whose most important victim began last', async (t) => {
  const two = [small('a'), small('b')]
  const began = (minute: number) => ({ status: { startTime: `2026-01-01T00:0${minute}:00Z` } })
  const both = (aImportant: number, aLesser: number, bImportant: number, bLesser: number) =>
    aCluster(two, [
      one('a', 9, began(aImportant)),
      one('a', 1, began(aLesser)),
      one('b', 9, began(bImportant)),
      one('b', 1, began(bLesser)),
    ])
  t.equal(outcome(asking('2'), both(1, 2, 2, 1)), 'b: p2 p3')
  t.equal(outcome(asking('2'), both(2, 1, 1, 2)), 'a: p0 p1', 'the lesser ones do not count')
  const equals = aCluster(two, [
    one('a', 9, began(1)),
    one('a', 9, began(8)),
    one('b', 9, began(3)),
    one('b', 9, began(4)),
  ])
  t.equal(outcome(asking('2'), equals), 'b: p2 p3', 'of equal ones the longest running counts')
})

/** Nodes n0, n1, … of 2 cpus, each with one pod that uses both. */
function fullFleet(size: number, pod: (i: number) => Partial<Bound>): ClusterCache {
  const names = Array.from({ length: size }, (_, i) => `n${i}`)
  return aCluster(
    names.map(small),
    names.map((name, i) => ({ nodeName: name, priority: 50, requests: { cpu: '2' }, ...pod(i) })),
  )
}

test('a hundred nodes are enough to choose from, once preemption on one of them violates no budget', async (t) => {
  const web = { labels: { app: 'web' } }
  const on = (known: ClusterCache) => outcome(asking('2'), known, [webBudget])
  const cheaperLater = (i: number) => ({ priority: i < 100 ? 50 : 1 })
  t.equal(on(fullFleet(101, cheaperLater)), 'n0: p0', 'a better one after them is not looked for')
  t.equal(on(fullFleet(100, (i) => ({ priority: i < 99 ? 50 : 1 }))), 'n99: p99', 'all hundred are compared')
  t.equal(on(fullFleet(102, (i) => (i < 100 ? web : {}))), 'n100: p100', 'all of the first hundred violate one')
  t.equal(on(fullFleet(101, (i) => ({ ...cheaperLater(i), ...(i < 99 ? web : {}) }))), 'n99: p99', 'one does not')
})

/** Whether the pod's nomination is to be withdrawn. */
function withdraws(pod: Pod, known: ClusterCache): boolean | undefined {
  const placement = finished(placePod(pod, known, 0, () => 0))
  const found = placement.found ? undefined : finished(preempt(pod, known, placement, { budgets: [], random: () => 0 }))
  return found?.helps === false ? found.withdraws : undefined
}

test('a nomination is withdrawn when preemption helps on no node, not when it is not tried', async (t) => {
  const known = aCluster([small('a')], [one('a', 200), one('a', 200)])
  t.equal(withdraws(asking('1'), known), true)
  t.equal(withdraws(asking('1', 100, { spec: { preemptionPolicy: 'Never' } }), known), false)
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] as const
  const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  const leaving = aCluster([small('a')], [one('a', 1, { metadata, status: { conditions } })])
  leaving.nominate('default/new', asking('2'), 'a')
  t.equal(withdraws(asking('2'), leaving), false, 'it waits for its node')
})

test('a pod whose own terms leave out its nominated node does not wait for it', async (t) => {
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] as const
  const leaving = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' }, status: { conditions } }
  const known = aCluster([small('a'), small('b')], [one('a', 1, leaving), one('b', 1)])
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['b'] }]
  const pod = asking('2', 100, { spec: { priority: 100, ...requiringNodes({ matchFields }) } })
  known.nominate('default/new', pod, 'a')
  t.equal(outcome(pod, known), 'b: p1')
})

test('a pod without a status has neither started nor been preempted', async (t) => {
  const bare = (name: string, metadata = {}) => ({
    ...aPod({ name, priority: 1, requests: { cpu: '1' }, metadata }),
    status: undefined,
  })
  const started = { status: { startTime: '2026-01-01T00:09:00Z' } }
  const known = aCluster([small('a')], [one('a', 1, started)])
  known.place('default/bare', bare('bare'), 'a')
  t.equal(outcome(asking('1'), known), 'a: bare')
  known.place('default/bare', bare('bare', { name: 'bare', deletionTimestamp: '2026-01-01T00:00:00Z' }), 'a')
  known.nominate('default/new', asking('2'), 'a')
  t.equal(outcome(asking('2'), known), 'a: p0 bare')
})

test('a pod that a budget guards is tried once, and counted once afterwards', async (t) => {
  const web = { labels: { app: 'web' } }
  const known = aCluster([small('a')], [one('a', 1, web), one('a', 9)])
  t.equal(outcome(asking('1'), known, [webBudget]), 'a: p1')
  t.same(
    [...known.podClasses.in('default')].map((podClass) => podClass.byNode.get('a')),
    [1, 1],
  )
})
