import { type Test, test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { controllerReference } from './controller-ref.ts'
import { ownedObjects } from './owned-objects.ts'
import { ownerLoop } from './owner-loop.ts'

/** A ReplicaSet with so many pods, and the times of the visits that it gets from now on. */
async function visitsWith(t: Test, pods: number) {
  const world = await workloadWorld(t)
  const { store, clock, needs } = world
  const set = await store.create('replicasets', {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, template: { spec: { containers: [] } } },
  })
  const ownerReferences = [controllerReference(set)]
  for (let at = 0; at < pods; at++) {
    await store.create('pods', aPod({ name: `web-${at}`, metadata: { ownerReferences } }))
  }
  const dependents = ownedObjects(needs, 'pods')
  const visits: number[] = []
  const loop = ownerLoop(needs, {
    name: 'test',
    owners: 'replicasets',
    dependents,
    selects: () => undefined,
    async reconcile() {
      visits.push(clock.monotonicMs())
      return undefined
    },
  })
  world.start([{ name: 'pods', run: dependents.run }, loop])
  await clock.advance(10_000)
  visits.length = 0
  return { ...world, visits }
}

test('the owner of a few pods is visited moments after each change', async (t) => {
  const { store, clock, visits } = await visitsWith(t, 150)
  const beganMs = clock.monotonicMs()
  await store.delete('pods', { namespace: 'default', name: 'web-1' })
  await clock.advance(1000)
  t.same(visits, [beganMs + 20])
})

test('the owner of many pods is not visited for each of their changes, and always after the last', async (t) => {
  const { store, clock, visits } = await visitsWith(t, 3000)
  for (let at = 0; at < 40; at++) {
    await store.delete('pods', { namespace: 'default', name: `web-${at}` })
    await clock.advance(25)
  }
  const lastMs = clock.monotonicMs() - 25
  await clock.advance(1000)
  t.ok(visits.length <= 5, `${visits.length} visits for 40 changes within a second`)
  t.ok((visits.at(-1) ?? 0) >= lastMs, 'the last change is seen')
})
