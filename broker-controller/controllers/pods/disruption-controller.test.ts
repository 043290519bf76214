import { type Test, test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import type { ResourceName } from '../../../api/resources.ts'
import { type Fleet, fleet } from '../../testing/fleet.ts'
import type { Scales } from '../autoscaling/scales.ts'
import { disruptionController } from './disruption-controller.ts'

const budget: PodDisruptionBudget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: 'default' },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
}
const key = { namespace: 'default', name: 'web' }
const ready = { conditions: [{ type: 'Ready', status: 'True' }] } as const
const web = (name: string) => ({ name, labels: { app: 'web' }, nodeName: 'pi-1', status: ready })

async function opened(t: Test): Promise<Fleet> {
  const world = fleet(t)
  await world.store.create('poddisruptionbudgets', budget)
  t.teardown(world.start(disruptionController(world)))
  await world.pass(1)
  return world
}

async function status(world: Fleet) {
  return (await world.store.get('poddisruptionbudgets', key))?.status
}

test('a budget follows its pods as they come, fail, are relabelled and go', async (t) => {
  const world = await opened(t)
  t.match(await status(world), { observedGeneration: 1, expectedPods: 0, disruptionsAllowed: 0 })
  await world.run(web('a'))
  await world.run(web('b'))
  await world.run({ ...web('other'), labels: { app: 'db' } })
  await world.pass(1)
  t.match(await status(world), { expectedPods: 2, currentHealthy: 2, disruptionsAllowed: 1 })
  const a = await world.pod('a')
  if (a === undefined) return t.fail('no pod a')
  await world.store.updateStatus('pods', { ...a, status: { conditions: [{ type: 'Ready', status: 'False' }] } })
  await world.pass(1)
  t.match(await status(world), { expectedPods: 2, currentHealthy: 1, disruptionsAllowed: 0 })
  const other = await world.pod('other')
  if (other === undefined) return t.fail('no pod other')
  await world.store.update('pods', { ...other, metadata: { ...other.metadata, labels: { app: 'web' } } })
  await world.pass(1)
  t.match(await status(world), { expectedPods: 3, currentHealthy: 2, disruptionsAllowed: 1 })
  await world.store.delete('pods', { namespace: 'default', name: 'b' })
  await world.pass(1)
  t.match(await status(world), { expectedPods: 2, currentHealthy: 1, disruptionsAllowed: 0 })
})

test('a changed budget is counted again, and its status names the version it is about', async (t) => {
  const world = await opened(t)
  for (const name of ['a', 'b', 'c']) await world.run(web(name))
  await world.pass(1)
  const before = await world.store.get('poddisruptionbudgets', key)
  if (before === undefined) return t.fail('no budget')
  await world.store.update('poddisruptionbudgets', { ...before, spec: { maxUnavailable: '50%', selector: {} } })
  await world.pass(1)
  t.match(await status(world), { observedGeneration: 2, desiredHealthy: 1, disruptionsAllowed: 2 })
})

test('an eviction that was granted and never happened is forgotten after two minutes, with an Event', async (t) => {
  const world = await opened(t)
  await world.run(web('a'))
  await world.run(web('b'))
  await world.pass(1)
  const before = await world.store.get('poddisruptionbudgets', key)
  if (before?.status === undefined) return t.fail('no status')
  const disruptedPods = { a: new Date(world.clock.wallMs()).toISOString() }
  await world.store.updateStatus('poddisruptionbudgets', {
    ...before,
    status: { ...before.status, disruptionsAllowed: 0, disruptedPods },
  })
  await world.pass(60)
  t.match(await status(world), { disruptionsAllowed: 0, currentHealthy: 1, disruptedPods })
  await world.pass(61)
  t.match(await status(world), { disruptionsAllowed: 1, currentHealthy: 2 })
  t.equal((await status(world))?.disruptedPods, undefined)
  t.match(await world.reasons('a'), ['NotDeleted'])
})

test('a budget that selects no pods has an Event that shows it', async (t) => {
  const world = await opened(t)
  t.match(await eventsOf(world), [
    { type: 'Normal', reason: 'NoPods', message: 'No matching pods found', source: { component: 'controllermanager' } },
  ])
  const counted = (await eventsOf(world))[0]?.count
  await world.run(web('a'))
  await world.pass(1)
  t.equal((await eventsOf(world))[0]?.count, counted, 'and none with the pods that it has later')
})

async function eventsOf(world: Fleet) {
  const { items } = await world.store.list('events')
  return items.filter(({ involvedObject }) => involvedObject.kind === 'PodDisruptionBudget')
}

test('the share of a budget is one of the pods that a custom kind wants, and none may go while that cannot be read', async (t) => {
  const world = fleet(t, 'Reconcile failed')
  let failure: ApiError | undefined
  let asked = 0
  const scales: Pick<Scales, 'get'> = {
    async get(namespace, { name = '' }) {
      asked += 1
      if (failure !== undefined) throw failure
      const metadata = { name, namespace, uid: 'u', resourceVersion: '1', creationTimestamp: '' }
      const scale = { metadata, spec: { replicas: 3 }, status: { replicas: 3 } }
      return {
        resource: 'shops.example.com' as ResourceName,
        scale: { ...scale, apiVersion: 'autoscaling/v1', kind: 'Scale' },
      }
    },
  }
  const owner = { apiVersion: 'example.com/v1', kind: 'Shop', name: 'shop', uid: 'u', controller: true }
  const owned = (name: string) => ({ ...web(name), metadata: { ownerReferences: [owner] } })
  await world.store.create('poddisruptionbudgets', budget)
  t.teardown(world.start(disruptionController({ ...world, scales })))
  await world.run(owned('a'))
  await world.run(owned('b'))
  await world.pass(1)
  t.match(await status(world), { expectedPods: 2, disruptionsAllowed: 1 })
  t.equal(asked, 0, 'a number of pods is not a percentage')
  const share = async (maxUnavailable: number) => {
    const before = await world.store.get('poddisruptionbudgets', key)
    if (before === undefined) throw new Error('no budget')
    const { selector } = budget.spec ?? {}
    await world.store.update('poddisruptionbudgets', {
      ...before,
      spec: { maxUnavailable, ...(selector && { selector }) },
    })
    await world.pass(1)
  }
  await share(2)
  t.match(await status(world), { expectedPods: 3, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1 })
  failure = new ApiError('InternalError', 'the spec replicas field ".spec.replicas" does not exist')
  await share(3)
  t.match(await status(world), {
    observedGeneration: 2,
    disruptionsAllowed: 0,
    conditions: [
      {
        ...{ type: 'DisruptionAllowed', status: 'False', reason: 'SyncFailed', message: failure.message },
        observedGeneration: 2,
      },
    ],
  })
  const message = `Failed to calculate the number of expected pods: ${failure.message}`
  const events = await eventsOf(world)
  t.match(
    events.filter(({ reason }) => reason === 'CalculateExpectedPodCountFailed'),
    [{ type: 'Warning', message }],
  )
  failure = undefined
  await world.pass(600, 60)
  t.match(await status(world), {
    observedGeneration: 3,
    disruptionsAllowed: 2,
    conditions: [{ reason: 'SufficientPods', message: '' }],
  })
})
