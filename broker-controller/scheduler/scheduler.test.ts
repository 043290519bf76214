import { type Test, test } from 'tap'
import type { PodSpec } from '../../api/pod.ts'
import type { PodOverrides } from '../../api/testing/builders.ts'
import { aPod } from '../../api/testing/builders.ts'
import { metricsRegistry } from '../../daemon/metrics-registry.ts'
import { fakeHold } from '../testing/fake-hold.ts'
import { type Fleet, fleet } from '../testing/fleet.ts'
import { dice, prefers, requires, spreads } from '../testing/scheduling.ts'
import { scheduler } from './scheduler.ts'

function opened(t: Test): Fleet {
  const world = fleet(t)
  t.teardown(world.start(scheduler({ ...world, random: () => 0 })))
  return world
}

const pending = (world: Fleet, over: PodOverrides) => world.run({ phase: 'Pending', status: {}, ...over })

async function bound(world: Fleet, ...names: readonly string[]): Promise<readonly (string | undefined)[]> {
  return Promise.all(names.map(async (name) => (await world.pod(name))?.spec.nodeName))
}

async function condition(world: Fleet, name: string) {
  return (await world.pod(name))?.status?.conditions?.find(({ type }) => type === 'PodScheduled')
}

test('a pending pod is bound to a node on which it fits, and an Event is recorded', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', unschedulable: true }, { name: 'pi-2' })
  await pending(world, { name: 'web' })
  t.same(await bound(world, 'web'), ['pi-2'])
  t.match(await condition(world, 'web'), { status: 'True' })
  const [event] = (await world.store.list('events')).items
  t.match(event, { reason: 'Scheduled', type: 'Normal', message: 'Successfully assigned default/web to pi-2' })
})

test('a pod that fits nowhere gets the reason, and bound when a node comes that has room', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } }, { name: 'pi-2', unschedulable: true })
  await pending(world, { name: 'web', requests: { cpu: '2' } })
  const message =
    '0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. ' +
    'preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.'
  t.match(await condition(world, 'web'), { status: 'False', reason: 'Unschedulable', message })
  const [event] = (await world.store.list('events')).items
  t.match(event, { reason: 'FailedScheduling', type: 'Warning', message })
  await world.pass(2)
  await world.join({ name: 'pi-3' })
  await world.pass(1)
  t.same(await bound(world, 'web'), ['pi-3'])
  t.match(await condition(world, 'web'), { status: 'True' })
})

test('attempts and pods that wait are counted under the names of kube-scheduler', async (t) => {
  const world = fleet(t)
  const registry = metricsRegistry()
  t.teardown(world.start(scheduler({ ...world, random: () => 0, registry })))
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } })
  await pending(world, { name: 'small' })
  await pending(world, { name: 'large', requests: { cpu: '2' } })
  const lines = registry.text().split('\n')
  const value = (series: string) =>
    lines
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')
      .at(-1)
  t.equal(value('scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'), '1')
  t.equal(value('scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}'), '1')
  t.equal(value('scheduler_pending_pods{queue="unschedulable"}'), '1')
  t.equal(value('scheduler_pending_pods{queue="active"}'), '0')
  const took = 'scheduler_scheduling_attempt_duration_seconds_count{profile="default-scheduler",result="scheduled"}'
  t.equal(value(took), '1')
})

test('a pod that cannot be decided on keeps no other one from its node', async (t) => {
  const world = fleet(t, 'Cannot schedule the pod')
  t.teardown(world.start(scheduler({ ...world, random: () => 0 })))
  await world.join({ name: 'pi-1' })
  // The API accepts no such amount.
  await pending(world, { name: 'bad', requests: { cpu: 'much' } })
  await pending(world, { name: 'good' })
  await world.pass(2)
  t.same(await bound(world, 'bad', 'good'), [undefined, 'pi-1'])
  t.ok(world.log.messages('error').length > 0)
})

test('a pod of the backup is not bound while it is held after a restore', async (t) => {
  const world = fleet(t)
  const hold = fakeHold()
  t.teardown(world.start(scheduler({ ...world, random: () => 0, hold })))
  await world.join({ name: 'pi-1' })
  await pending(world, { name: 'web' })
  await world.pass(60)
  t.same(await bound(world, 'web'), [undefined])
  t.equal(await condition(world, 'web'), undefined, 'nothing is wrong with it')
  hold.release('none')
  await world.pass(1)
  t.same(await bound(world, 'web'), ['pi-1'])
})

test('without any node a pod waits, and is bound when the first one joins', async (t) => {
  const world = opened(t)
  await pending(world, { name: 'web' })
  t.match(await condition(world, 'web'), { message: 'no nodes available to schedule pods' })
  await world.join({ name: 'pi-1' })
  await world.pass(1)
  t.same(await bound(world, 'web'), ['pi-1'])
})

test('pods that arrive together do not overfill a node', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '2' } }, { name: 'pi-2', allocatable: { cpu: '2' } })
  const names = ['a', 'b', 'c', 'd', 'e']
  for (const name of names) await pending(world, { name, requests: { cpu: '1' } })
  t.teardown(world.start(scheduler({ ...world, random: () => 0 })))
  await world.clock.settle()
  const where = await bound(world, ...names)
  t.same([where.filter((name) => name === 'pi-1').length, where.filter((name) => name === 'pi-2').length], [2, 2])
})

test('the more important pod is placed first', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } })
  await pending(world, { name: 'low', requests: { cpu: '1' } })
  await pending(world, { name: 'high', requests: { cpu: '1' }, priority: 1000 })
  t.teardown(world.start(scheduler({ ...world, random: () => 0 })))
  await world.clock.settle()
  t.same(await bound(world, 'low', 'high'), [undefined, 'pi-1'])
})

test('room that becomes free is used: a pod deleted, a pod finished, a cordon lifted, a taint gone', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } })
  const full = { requests: { cpu: '1' } }
  await pending(world, { name: 'first', ...full })
  await pending(world, { name: 'second', ...full })
  t.same(await bound(world, 'first', 'second'), ['pi-1', undefined])
  await world.store.delete('pods', { namespace: 'default', name: 'first' })
  await world.pass(2)
  t.same(await bound(world, 'second'), ['pi-1'])

  await pending(world, { name: 'third', ...full })
  const second = await world.pod('second')
  if (second === undefined) return t.fail('the pod is gone')
  await world.store.updateStatus('pods', { ...second, status: { phase: 'Succeeded' } })
  await world.pass(2)
  t.same(await bound(world, 'third'), ['pi-1'])

  const node = await world.node('pi-1')
  const cordoned = {
    ...node,
    spec: { unschedulable: true },
    status: { ...node.status, allocatable: { cpu: '9', memory: '4Gi', pods: '9' } },
  }
  await world.store.update('nodes', cordoned)
  await pending(world, { name: 'fourth' })
  await world.pass(2)
  t.same(await bound(world, 'fourth'), [undefined])
  await world.store.update('nodes', { ...(await world.node('pi-1')), spec: {} })
  await world.pass(2)
  t.same(await bound(world, 'fourth'), ['pi-1'])
})

test('a pod for another scheduler, a gated one and a leaving one are left alone', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' })
  await pending(world, { name: 'other', spec: { schedulerName: 'mine' } })
  await pending(world, { name: 'gated', spec: { schedulingGates: [{ name: 'wait' }] } })
  await pending(world, {
    name: 'leaving',
    metadata: { name: 'leaving', namespace: 'default', deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  await world.pass(5)
  t.same(await bound(world, 'other', 'gated', 'leaving'), [undefined, undefined, undefined])
  const gated = await world.pod('gated')
  if (gated === undefined) return t.fail('the pod is gone')
  const { schedulingGates: _, ...spec } = gated.spec
  await world.store.update('pods', { ...gated, spec })
  await world.pass(1)
  t.same(await bound(world, 'gated'), ['pi-1'])
})

test('a pod that matters more makes room for itself, with grace and with reasons', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } }, { name: 'pi-2', allocatable: { cpu: '1' } })
  const full = { requests: { cpu: '1' } }
  await pending(world, { name: 'batch', ...full, priority: 1 })
  await pending(world, { name: 'web', ...full, priority: 5 })
  const [victimsNode] = await bound(world, 'batch')
  await pending(world, { name: 'vip', ...full, priority: 1000 })
  t.match(await world.pod('vip'), {
    spec: { nodeName: undefined },
    status: {
      nominatedNodeName: victimsNode,
      conditions: [{ type: 'PodScheduled', message: '0/2 nodes are available: 2 Insufficient cpu.' }],
    },
  })
  const victim = await world.pod('batch')
  t.match(victim, {
    metadata: { deletionGracePeriodSeconds: 30 },
    status: {
      conditions: [
        { type: 'PodScheduled' },
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'PreemptionByScheduler',
          message: 'default-scheduler: preempting to accommodate a higher priority pod',
        },
      ],
    },
  })
  const vip = await world.pod('vip')
  const events = (await world.store.list('events')).items
  t.match(
    events.find(({ reason }) => reason === 'Preempted'),
    { type: 'Normal', message: `Preempted by pod ${vip?.metadata.uid} on node ${victimsNode}` },
  )
  await pending(world, { name: 'late', ...full, priority: 10 })
  await world.store.delete('pods', { namespace: 'default', name: 'batch' })
  await world.pass(2)
  t.same(await bound(world, 'vip', 'late'), [victimsNode, undefined], 'the room is kept for whom it was made')
  t.equal(await world.reasons('web').then((reasons) => reasons.includes('Preempted')), true, 'late is above web')
})

test('room promised to a pod is free again when that pod is deleted', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } })
  const full = { requests: { cpu: '1' } }
  await pending(world, { name: 'batch', ...full, priority: 1 })
  await pending(world, { name: 'vip', ...full, priority: 1000 })
  await pending(world, { name: 'patient', ...full, spec: { preemptionPolicy: 'Never', priority: 10 } })
  await world.store.delete('pods', { namespace: 'default', name: 'batch' })
  await world.store.delete('pods', { namespace: 'default', name: 'vip' })
  await world.pass(3)
  t.same(await bound(world, 'patient'), ['pi-1'])
})

test('pods that want company, distance or an even share are woken by what gives it to them', async (t) => {
  const world = opened(t)
  const zone = (name: string) => ({ 'topology.kubernetes.io/zone': name })
  await world.join({ name: 'pi-1', labels: zone('1') }, { name: 'pi-2', labels: zone('2') })
  const web = { labels: { app: 'web' } }
  await pending(world, { name: 'friend', spec: requires('podAffinity', 'web') })
  t.match(await condition(world, 'friend'), {
    message: /^0\/2 nodes are available: 2 node\(s\) didn't match pod affinity rules\./,
  })
  await pending(world, { name: 'web', ...web, nodeSelector: zone('1') })
  await world.pass(2)
  t.same(await bound(world, 'web', 'friend'), ['pi-1', 'pi-1'])

  await pending(world, {
    name: 'shy',
    ...web,
    spec: { ...requires('podAntiAffinity', 'web'), nodeSelector: zone('1') },
  })
  t.match(await condition(world, 'shy'), { message: /1 node\(s\) didn't match pod anti-affinity rules/ })
  await world.store.delete('pods', { namespace: 'default', name: 'web' })
  await world.pass(2)
  t.same(await bound(world, 'shy'), ['pi-1'])

  const spread = (more: object) => spreads({ labelSelector: { matchLabels: { app: 'share' } }, ...more })
  const share = { labels: { app: 'share' } }
  await pending(world, { name: 'one', ...share, spec: { ...spread({}), nodeSelector: zone('1') } })
  await pending(world, { name: 'two', ...share, spec: { ...spread({}), nodeSelector: zone('1') } })
  t.same(await bound(world, 'one', 'two'), ['pi-1', 'pi-1'], 'a zone that is not asked for does not count')
  const strict = { ...spread({ nodeAffinityPolicy: 'Ignore', maxSkew: 2 }), nodeSelector: zone('1') }
  await pending(world, { name: 'three', ...share, spec: strict })
  t.match(await condition(world, 'three'), { message: /1 node\(s\) didn't match pod topology spread constraints/ })
  await pending(world, { name: 'four', ...share, nodeSelector: zone('2') })
  await world.pass(2)
  t.same(await bound(world, 'three'), ['pi-1'])
})

test('with every kind of wish at once no strict one is ever broken', async (t) => {
  const world = fleet(t)
  const random = dice(3)
  await world.join(
    ...Array.from({ length: 12 }, (_, i) => ({
      name: `pi-${i}`,
      labels: { 'topology.kubernetes.io/zone': `${i % 3}` },
      allocatable: { cpu: '2' },
    })),
  )
  t.teardown(world.start(scheduler({ ...world, random })))
  const wishes = [
    { labels: { app: 'lone' }, spec: requires('podAntiAffinity', 'lone') },
    { labels: { app: 'web' }, spec: spreads({}) },
    { labels: { app: 'db' }, spec: prefers('podAffinity', 'web', {}, 10) },
  ]
  for (let i = 0; i < 60; i++) await pending(world, { name: `p${i}`, requests: { cpu: '100m' }, ...wishes[i % 3] })
  await world.pass(3)
  const placed = (await world.store.list('pods')).items.filter(({ spec }) => spec.nodeName)
  const of = (app: string) => placed.filter(({ metadata }) => metadata.labels?.['app'] === app)
  const zoneCounts = [0, 1, 2].map(
    (zone) => of('web').filter(({ spec }) => Number(spec.nodeName?.slice(3)) % 3 === zone).length,
  )
  t.equal(of('lone').length, 12, 'exactly one on each node')
  t.equal(new Set(of('lone').map(({ spec }) => spec.nodeName)).size, 12)
  t.equal(of('web').length, 20)
  t.ok(Math.max(...zoneCounts) - Math.min(...zoneCounts) <= 1, `${zoneCounts}`)
})

test('a restarted scheduler reckons with what is bound', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1', allocatable: { cpu: '1' } })
  await world.run({ name: 'running', nodeName: 'pi-1', requests: { cpu: '1' } })
  t.teardown(world.start(scheduler({ ...world, random: () => 0 })))
  await pending(world, { name: 'web', requests: { cpu: '1' } })
  t.same(await bound(world, 'web'), [undefined])
})

test('a fleet of five hundred: a thousand pods find their place, evenly', async (t) => {
  const world = fleet(t)
  await world.join(...Array.from({ length: 500 }, (_, i) => ({ name: `pi-${i}` })))
  for (let i = 0; i < 1000; i++) await world.store.create('pods', podOf(i))
  t.teardown(world.start(scheduler({ ...world, random: dice(1) })))
  await world.pass(2)
  const counts = new Map<string, number>()
  for (const { spec } of (await world.store.list('pods')).items) {
    counts.set(spec.nodeName ?? 'none', (counts.get(spec.nodeName ?? 'none') ?? 0) + 1)
  }
  t.equal(counts.get('none'), undefined)
  t.ok(Math.max(...counts.values()) <= 4, `at most ${Math.max(...counts.values())} on a node`)
})

function podOf(i: number) {
  const { metadata, ...pod } = aPod({
    name: `p${i}`,
    labels: { app: 'web' },
    requests: { cpu: '100m', memory: '64Mi' },
  })
  const { name, namespace, labels = {} } = metadata
  return { ...pod, metadata: { name, labels, ...(namespace !== undefined && { namespace }) } }
}

const manyTerms = (count: number): Partial<PodSpec> => {
  const term = { topologyKey: 'x', labelSelector: {}, namespaceSelector: {} }
  const requiredDuringSchedulingIgnoredDuringExecution = Array.from({ length: count }, () => term)
  return { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } }
}

test('a stored pod with more terms than the API accepts waits, and an Event has the reason', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' })
  await pending(world, { name: 'greedy', spec: manyTerms(2_700) })
  await pending(world, { name: 'most', spec: manyTerms(64) })
  t.same(await bound(world, 'greedy', 'most'), [undefined, 'pi-1'])
  const message =
    'too many terms: spec.affinity: Too many: 2700: must have at most 64 terms in podAffinity and podAntiAffinity'
  t.match(await condition(world, 'greedy'), { status: 'False', reason: 'Unschedulable', message })
  const events = (await world.store.list('events')).items
  t.match(
    events.find(({ reason }) => reason === 'FailedScheduling'),
    { type: 'Warning', message },
  )
})

test('pods that were placed with thousands of terms keep no other pod from its node', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  for (let number = 0; number < 20; number++) {
    await world.run({ name: `greedy-${number}`, nodeName: 'pi-1', spec: manyTerms(2_700) })
  }
  await pending(world, { name: 'other', namespace: 'default' })
  t.ok((await bound(world, 'other'))[0])
})
