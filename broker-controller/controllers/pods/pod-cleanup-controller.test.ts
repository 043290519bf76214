import { type Test, test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { finished } from '../../../daemon/watchdog/steps.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import { planCleanup } from './pod-cleanup.ts'
import { podCleanupController } from './pod-cleanup-controller.ts'

function opened(t: Test): Fleet {
  const world = fleet(t)
  t.teardown(world.start(podCleanupController(world)))
  return world
}

const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30 }
const meta = (name: string) => ({ name, namespace: 'default' })

async function names(world: Fleet): Promise<readonly string[]> {
  return (await world.store.list('pods')).items.map(({ metadata }) => metadata.name).toSorted()
}

test('pods of a node that does not exist go after its quarantine, Failed first', async (t) => {
  const world = opened(t)
  await world.join({ name: 'pi-1' })
  await world.run({ name: 'home', nodeName: 'pi-1' })
  await world.run({ name: 'lost', nodeName: 'pi-9' })
  const seen: string[] = []
  const stop = new AbortController()
  const watching = (async () => {
    for await (const { type, object } of world.store.watch('pods', undefined, stop.signal)) {
      seen.push(`${type} ${object.status?.phase} ${object.status?.conditions?.at(-1)?.reason}`)
    }
  })()
  await world.pass(50)
  t.same(await names(world), ['home', 'lost'])
  await world.pass(30)
  t.same(await names(world), ['home'])
  stop.abort()
  await watching
  t.same(seen, ['MODIFIED Failed DeletionByPodGC', 'DELETED Failed DeletionByPodGC'])
})

test('a node that turns up within the quarantine keeps its pods, and a later loss begins a new one', async (t) => {
  const world = opened(t)
  await world.run({ name: 'early', nodeName: 'pi-1' })
  await world.pass(30)
  await world.join({ name: 'pi-1' })
  await world.pass(60)
  t.same(await names(world), ['early'])
  world.silence('pi-1')
  await world.store.delete('nodes', { namespace: '', name: 'pi-1' })
  await world.pass(35)
  t.same(await names(world), ['early'])
  await world.pass(50)
  t.same(await names(world), [])
})

test('a pod deleted before it was placed goes', async (t) => {
  const world = opened(t)
  await world.run({ name: 'a', metadata: { ...meta('a'), ...leaving } })
  await world.run({ name: 'b' })
  await world.pass(21)
  t.same(await names(world), ['b'])
})

test('pods leaving a node that is out of service go without it, unless the node is Ready', async (t) => {
  const world = opened(t)
  const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] as const
  await world.join({ name: 'dead', ready: 'Unknown', taints }, { name: 'well', taints })
  for (const nodeName of ['dead', 'well']) {
    await world.run({ name: `going-${nodeName}`, nodeName, metadata: { ...meta(`going-${nodeName}`), ...leaving } })
    await world.run({ name: `staying-${nodeName}`, nodeName })
  }
  await world.pass(21)
  t.same(await names(world), ['going-well', 'staying-dead', 'staying-well'])
})

test('a finalizer holds the object, and nothing is written again and again', async (t) => {
  const world = opened(t)
  await world.run({ name: 'held', nodeName: 'pi-9', metadata: { ...meta('held'), finalizers: ['example.com/keep'] } })
  await world.pass(70)
  const held = await world.pod('held')
  t.match(held, { metadata: { deletionGracePeriodSeconds: 0 }, status: { phase: 'Failed' } })
  await world.pass(100)
  t.equal((await world.pod('held'))?.metadata.resourceVersion, held?.metadata.resourceVersion)
})

test('of too many finished pods the evicted go first, then the oldest', async (t) => {
  const pod = (name: string, day: number, status: object) =>
    aPod({
      name,
      nodeName: 'pi-1',
      phase: 'Succeeded',
      status,
      metadata: { creationTimestamp: `2026-01-0${day}T00:00:00Z` },
    })
  const pods = [
    pod('old', 1, { phase: 'Succeeded' }),
    pod('new', 9, { phase: 'Failed' }),
    pod('evicted', 8, { phase: 'Failed', reason: 'Evicted' }),
    pod('running', 2, { phase: 'Running' }),
  ]
  const plan = (terminatedPodGCThreshold: number) =>
    finished(planCleanup({ pods, node: () => undefined, missing: new Set(), terminatedPodGCThreshold })).map(
      ({ pod }) => pod.metadata.name,
    )
  t.same(plan(3), [])
  t.same(plan(1), ['evicted', 'old'])
  t.same(plan(0), [], 'zero keeps all')
})
