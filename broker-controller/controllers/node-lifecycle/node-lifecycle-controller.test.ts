import { type Test, test } from 'tap'
import type { NodeOverrides } from '../../../api/testing/builders.ts'
import { informer } from '../../store/informer.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { nodeLifecycleController } from './node-lifecycle-controller.ts'
import { defaultNodeLifecycleSettings } from './node-lifecycle-settings.ts'

const unreachable = 'Unknown unreachable:NoExecute unreachable:NoSchedule'
const names = (count: number) => Array.from({ length: count }, (_, i) => `pi-${i + 1}`)

async function watched(t: Test, ...nodes: readonly NodeOverrides[]): Promise<Fleet> {
  const world = fleet(t)
  await world.join(...nodes)
  start(t, world)
  await world.pass(20)
  return world
}

function start(t: Test, world: Fleet): () => Promise<void> {
  const stop = world.start(nodeLifecycleController(world))
  t.teardown(stop)
  return stop
}

async function tainted(world: Fleet): Promise<readonly string[]> {
  const { items } = await world.store.list('nodes')
  return items
    .filter(({ spec }) => spec?.taints?.some(({ effect }) => effect === 'NoExecute'))
    .map((it) => it.metadata.name)
}

test('a healthy fleet is left alone', async (t) => {
  const world = await watched(t, ...names(5).map((name) => ({ name })))
  const before = (await world.store.list('nodes')).items
  await world.pass(600)
  t.same((await world.store.list('nodes')).items, before)
  t.same(world.log.messages('warn'), [])
})

test('a silent node becomes Unknown when its heartbeat is late, and is tainted a period after the grace', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  await world.run({ name: 'web', nodeName: 'pi-1' })
  await world.pass(1)
  world.silence('pi-1')
  let unknownAfter = 0
  while ((await world.state('pi-1')) === 'True' && unknownAfter < 60) {
    await world.pass(1)
    unknownAfter += 1
  }
  t.ok(unknownAfter > 4 && unknownAfter <= 15, `Unknown ${unknownAfter} s after it stopped`)
  t.match((await world.node('pi-1')).status?.conditions?.at(-1), { message: 'The heartbeat of the node is late.' })
  await world.pass(40 - unknownAfter)
  t.equal(await world.state('pi-1'), 'Unknown unreachable:NoSchedule', 'within the grace nothing is evicted')
  await world.pass(16)
  t.match(await world.state('pi-1'), /^Unknown/)
  const { status } = await world.node('pi-1')
  t.match(
    status?.conditions?.map(({ type, status, reason }) => [type, status, reason]),
    [
      ['MemoryPressure', 'Unknown', 'NodeStatusUnknown'],
      ['DiskPressure', 'Unknown', 'NodeStatusUnknown'],
      ['PIDPressure', 'Unknown', 'NodeStatusUnknown'],
      ['Ready', 'Unknown', 'NodeStatusUnknown'],
    ],
  )
  t.equal(status?.conditions?.[3]?.message, 'Kubelet stopped posting node status.')
  await world.pass(6)
  t.equal(await world.state('pi-1'), unreachable)
  t.ok((await world.reasons('pi-1')).includes('NodeNotReady'))
  t.same(
    (await world.pod('web'))?.status?.conditions?.map(({ status }) => status),
    ['False'],
    'its pod is not ready',
  )
  t.same(await world.reasons('web'), ['NodeNotReady'])
  t.equal(await world.state('pi-2'), 'True')
})

test('a node that returns loses its taints at its first report; a renewed lease alone is not enough', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  world.silence('pi-1')
  await world.pass(70)
  t.equal(await world.state('pi-1'), unreachable)
  await world.connection('pi-1', 'online')
  await world.pass(30)
  t.equal(await world.state('pi-1'), unreachable)
  await world.revive('pi-1')
  t.equal(await world.state('pi-1'), 'True')
})

test('a broken connection makes a node Unknown soon, and evicts no pod until silence has proven it', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  world.silence('pi-1')
  await world.connection('pi-1', 'lost')
  await world.clock.advance(900)
  t.equal(await world.state('pi-1'), 'True', 'it may come back at once')
  await world.clock.advance(600)
  t.equal(await world.state('pi-1'), 'Unknown unreachable:NoSchedule')
  await world.pass(38)
  t.equal(await world.state('pi-1'), 'Unknown unreachable:NoSchedule', 'still not proven')
  await world.pass(30)
  t.equal(await world.state('pi-1'), unreachable)
  t.equal((await world.node('pi-1')).status?.conditions?.at(-1)?.message, 'Kubelet stopped posting node status.')
})

test('a connection that is back within the debounce was never gone', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  for (let i = 0; i < 5; i++) {
    await world.connection('pi-1', 'lost')
    await world.clock.advance(900)
    await world.connection('pi-1', 'online')
    await world.pass(10)
  }
  t.equal(await world.state('pi-1'), 'True')
  t.same(await world.reasons('pi-1'), ['RegisteredNode'])
})

test('a heartbeat that is late by less than the tolerance changes nothing; nor is a node late that never sent one', async (t) => {
  const world = await watched(t, { name: 'pi-1' }, { name: 'pi-2' })
  for (let i = 0; i < 5; i++) {
    await world.revive('pi-1')
    world.silence('pi-1')
    await world.clock.advance(13_000)
  }
  t.equal(await world.state('pi-1'), 'True')
  t.same(await world.reasons('pi-1'), ['RegisteredNode'])

  const restarted = fleet(t)
  await restarted.join({ name: 'pi-1' })
  restarted.silence('pi-1')
  await restarted.forgetLeases()
  start(t, restarted)
  await restarted.pass(45)
  t.equal(await restarted.state('pi-1'), 'True', 'a controller that just started gives its full grace')
})

test('heartbeats that arrived while the controller was held up count before nodes are judged', async (t) => {
  const world = await watched(t, { name: 'pi-1' }, { name: 'pi-2' })
  await world.revive('pi-1', 'pi-2')
  await world.clock.advance(9_000)
  world.clock.suspend(6_000)
  await world.clock.advance(100)
  await world.revive('pi-1')
  await world.pass(2)
  t.equal(await world.state('pi-1'), 'True')
  t.same(await world.reasons('pi-1'), ['RegisteredNode'])
})

test('nodes that come back to a restarted controller one after the other are not silent while many come', async (t) => {
  const world = fleet(t)
  const all = names(400)
  await world.join(...all.map((name) => ({ name })))
  world.silence(...all)
  await world.forgetLeases()
  start(t, world)
  const late = all.splice(-1)
  for (let first = 0; first < all.length; first += 25) {
    await world.revive(...all.slice(first, first + 25))
    await world.pass(5)
  }
  t.same(await world.reasons(all.at(-1) ?? ''), ['RegisteredNode'], 'the last one after 80 s')
  t.equal(await world.state(late[0] ?? ''), 'True')
  await world.pass(60)
  t.match(await world.state(late[0] ?? ''), /^Unknown/, 'one that stays away is noticed')
})

test('while nodes are refused none is judged, and afterwards each has its full grace', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' }, { name: 'pi-2' })
  let isRefusing = false
  t.teardown(world.start(nodeLifecycleController({ ...world, refusesNodes: () => isRefusing })))
  await world.revive('pi-1', 'pi-2')
  await world.pass(20)
  isRefusing = true
  world.silence('pi-1', 'pi-2')
  for (const name of ['pi-1', 'pi-2']) await world.connection(name, 'lost')
  await world.pass(600)
  isRefusing = false
  await world.pass(5)
  await world.revive('pi-1')
  t.equal(await world.state('pi-1'), 'True')
  t.same(await world.reasons('pi-1'), ['RegisteredNode'])
  await world.pass(60)
  t.match(await world.state('pi-2'), /^Unknown/, 'one that stays away is noticed')
})

test('a node that reports not ready is tainted as such, and swapped when it falls silent', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  await world.report('pi-1', 'False')
  t.equal(await world.state('pi-1'), 'False not-ready:NoSchedule')
  await world.pass(6)
  t.equal(await world.state('pi-1'), 'False not-ready:NoExecute not-ready:NoSchedule')
  world.silence('pi-1')
  await world.pass(70)
  t.equal(await world.state('pi-1'), unreachable)
  await world.report('pi-1', 'False')
  await world.pass(6)
  t.equal(await world.state('pi-1'), 'False not-ready:NoExecute not-ready:NoSchedule')
})

test('two dead nodes of one zone are tainted ten seconds apart', async (t) => {
  const world = await watched(t, ...names(8).map((name) => ({ name })))
  world.silence('pi-1', 'pi-2')
  const counts: number[] = []
  for (let second = 0; second < 90; second++) {
    await world.pass(1)
    counts.push((await tainted(world)).length)
  }
  const [first, second] = [counts.indexOf(1), counts.indexOf(2)]
  t.ok(first >= 45 && first <= 66, `the first after ${first} s`)
  t.equal(second - first, 10)
})

test('half of a small zone down: nothing more is evicted while it lasts', async (t) => {
  const world = await watched(t, ...names(10).map((name) => ({ name })))
  await world.pass(10)
  world.silence(...names(6))
  await world.pass(300)
  t.ok((await tainted(world)).length <= 1, 'at most one before the others were known to be silent')
  await world.revive('pi-1')
  await world.pass(60)
  t.ok((await tainted(world)).length >= 4, 'five of ten is not a disruption: the rest goes at the usual rate')
})

test('a whole fleet down evicts nothing, and everybody gets a full grace when the first is back', async (t) => {
  const world = await watched(t, ...names(6).map((name) => ({ name })))
  world.silence(...names(6))
  await world.pass(80)
  t.same(await tainted(world), [])
  t.equal(await world.state('pi-3'), 'Unknown unreachable:NoSchedule')
  await world.pass(900)
  t.same(await tainted(world), [])
  await world.revive('pi-1')
  await world.pass(45)
  t.same(await tainted(world), [], 'the others may be on their way')
  await world.revive('pi-2', 'pi-3', 'pi-4', 'pi-5')
  await world.pass(60)
  t.same(await tainted(world), ['pi-6'])
})

test('a controller that starts while every node is down taints none of them, not for a moment', async (t) => {
  const world = fleet(t)
  await world.join(...names(3).map((name) => ({ name })))
  for (const name of names(3)) await world.report(name, 'False')
  await world.pass(60)
  const seen: string[] = []
  const stop = new AbortController()
  const onChange: Parameters<typeof informer<'nodes'>>[2] = (node) => {
    if (node?.spec?.taints?.some(({ effect }) => effect === 'NoExecute')) seen.push(node.metadata.name)
  }
  const watching = informer(world, 'nodes', onChange).run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await watching
  })
  // The writes of one node take long, and the zones are judged after them.
  const store: typeof world.store = {
    ...world.store,
    async update(resource, object, ...more) {
      if (object.metadata.name === 'pi-1') await world.clock.sleep(10_000)
      return world.store.update(resource, object, ...more)
    },
  }
  start(t, { ...world, store })
  await world.pass(60)
  t.same(seen, [])
  t.ok(world.log.messages('warn').includes('Every zone is down: nothing is evicted'))
})

test('a whole zone of three down: its nodes lose their pods at the usual rate', async (t) => {
  const zoned = names(9).map((name, i) => ({ name, labels: { 'topology.kubernetes.io/zone': `zone-${i % 3}` } }))
  const world = await watched(t, ...zoned)
  world.silence('pi-1', 'pi-4', 'pi-7')
  await world.pass(40)
  t.same(await tainted(world), [])
  await world.pass(50)
  t.same(await tainted(world), ['pi-1', 'pi-4', 'pi-7'])
})

test('an access point away for 90 seconds, with 8 of 12 nodes behind it, evicts nothing', async (t) => {
  const world = await watched(t, ...names(12).map((name) => ({ name })))
  await world.pass(10)
  const behind = names(8)
  world.silence(...behind)
  for (const name of behind) await world.connection(name, 'lost')
  const seen = new Set<string>()
  for (let second = 0; second < 90; second++) {
    await world.pass(1)
    for (const name of await tainted(world)) seen.add(name)
  }
  for (const name of behind) {
    await world.connection(name, 'online')
    await world.revive(name)
    await world.pass(1)
  }
  await world.pass(60)
  t.same([...seen], [])
  t.same(await tainted(world), [])
})

test('a controller that was stopped for a while holds no node silent for that time', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  world.clock.suspend(120_000)
  await world.clock.advance(1)
  for (const name of names(4)) t.equal(await world.state(name), 'True')
  t.same(world.log.messages('warn'), ['Controller was suspended, every node gets its full grace period'])
  world.silence('pi-1')
  await world.pass(70)
  t.match(await world.state('pi-1'), /^Unknown/, 'who is silent afterwards is found out all the same')
  t.equal(await world.state('pi-2'), 'True')
})

test('a controller restarted in the middle gives everyone a full grace, and then goes on', async (t) => {
  const world = fleet(t)
  await world.join(...names(4).map((name) => ({ name })))
  const stop = start(t, world)
  await world.pass(20)
  world.silence('pi-1')
  await world.pass(70)
  t.equal(await world.state('pi-1'), unreachable)
  await stop()
  start(t, world)
  await world.pass(1)
  t.equal(await world.state('pi-1'), 'Unknown unreachable:NoSchedule', 'proven again before its pods go')
  await world.pass(60)
  t.equal(await world.state('pi-1'), unreachable)
  t.equal(await world.state('pi-2'), 'True')
  t.same(await world.reasons('pi-2'), ['RegisteredNode'])
})

test('a controller that takes long to read its store at the start was not asleep', async (t) => {
  const world = fleet(t)
  await world.join({ name: 'pi-1' })
  start(t, world)
  world.clock.suspend(60_000)
  await world.pass(20)
  t.same(world.log.messages('warn'), [])
})

test('a node that never reported: Unknown after the start-up grace, unless its lease is renewed', async (t) => {
  const world = await watched(t, { name: 'pi-1' }, { name: 'new', conditions: [] })
  world.silence('new')
  await world.pass(45)
  t.equal(await world.state('new'), 'nothing not-ready:NoSchedule')
  await world.pass(15)
  t.equal(await world.state('new'), unreachable, 'in the same period: it was not Ready before')
  const ready = (await world.node('new')).status?.conditions?.find(({ type }) => type === 'Ready')
  t.match(ready, { reason: 'NodeStatusNeverUpdated', message: 'Kubelet never posted node status.' })
  await world.pass(6)
  t.equal(await world.state('new'), unreachable, 'what the controller wrote is not a heartbeat')
})

test('a node whose conditions vanish after it was Ready has the start-up grace once, and not again', async (t) => {
  const world = await watched(t, ...names(4).map((name) => ({ name })))
  world.silence('pi-1')
  const node = await world.node('pi-1')
  await world.store.updateStatus('nodes', { ...node, status: { ...node.status, conditions: [] } })
  await world.pass(59)
  t.match(await world.state('pi-1'), /^nothing/)
  await world.pass(12)
  t.equal(await world.state('pi-1'), unreachable)
})

test('nodes that come and go get Events, and cordons and labels are applied', async (t) => {
  const world = await watched(t, { name: 'pi-1' })
  await world.join({ name: 'pi-2', unschedulable: true })
  await world.pass(1)
  t.same(await world.reasons('pi-1'), ['RegisteredNode'], 'also of a node that was there before the controller')
  t.same(await world.reasons('pi-2'), ['RegisteredNode'])
  t.equal(await world.state('pi-2'), 'True unschedulable:NoSchedule')
  t.equal((await world.node('pi-2')).metadata.labels?.['beta.kubernetes.io/arch'], 'arm64')
  world.silence('pi-2')
  await world.store.delete('nodes', { namespace: '', name: 'pi-2' })
  await world.pass(1)
  t.same((await world.reasons('pi-2')).toSorted(), ['RegisteredNode', 'RemovingNode'])
})

test('a pod bound to a failed node is marked not ready when it is seen', async (t) => {
  const world = await watched(t, ...names(3).map((name) => ({ name })))
  world.silence('pi-1')
  await world.pass(70)
  await world.run({ name: 'late', nodeName: 'pi-1' })
  await world.pass(1)
  t.equal((await world.pod('late'))?.status?.conditions?.[0]?.status, 'False')
})

test('what marks a pod reports that the store no longer has what its node published', async (t) => {
  const world = fleet(t)
  await world.join(...names(3).map((name) => ({ name })))
  const overwritten: string[] = []
  const podOverwritten = (...one: readonly [node: string, podUID: string]) => void overwritten.push(one.join())
  t.teardown(world.start(nodeLifecycleController({ ...world, podOverwritten })))
  await world.revive(...names(3))
  await world.run({ name: 'web', nodeName: 'pi-1' })
  await world.pass(5)
  world.silence('pi-1')
  await world.pass(70)
  t.same(overwritten, [`pi-1,${(await world.pod('web'))?.metadata.uid}`])
})

test('the settings are Kubernetes’ own', async (t) => {
  t.match(defaultNodeLifecycleSettings, {
    nodeMonitorPeriodMs: 5000,
    nodeMonitorGracePeriodMs: 50_000,
    nodeStartupGracePeriodMs: 60_000,
    nodeEvictionRate: 0.1,
    secondaryNodeEvictionRate: 0.01,
    unhealthyZoneThreshold: 0.55,
    largeClusterSizeThreshold: 50,
  })
})
