import { test } from 'tap'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { workloadControllers } from '../../controllers/workloads/workload-controllers.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { isWaiting, waitingLimits, waitingProblem } from './waiting-pods.ts'

const pod = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'busybox:1.36' }] },
})
const countOf = (names: number) => Array.from({ length: names }, (_, index) => index)

test('small fleets may have 500 pods of a namespace and 2,000 in all that wait; large ones a multiple of what their nodes hold', async (t) => {
  t.same(waitingLimits(0), { namespace: 500, fleet: 2000 })
  t.same(waitingLimits(3 * 110), { namespace: 660, fleet: 2000 })
  t.same(waitingLimits(100 * 110), { namespace: 22_000, fleet: 55_000 })
})

test('a pod waits until a node runs it, also where it is bound to a node that does not exist', async (t) => {
  t.ok(isWaiting(aPod({ name: 'unbound', phase: 'Pending' })))
  t.ok(isWaiting(aPod({ name: 'bound', nodeName: 'absent', phase: 'Pending' })))
  t.notOk(isWaiting(aPod({ name: 'running', nodeName: 'pi-1', phase: 'Running' })))
  t.notOk(isWaiting(aPod({ name: 'ended', phase: 'Failed' })))
})

test('kube-system is held to the limit of a namespace only, so that a full fleet can be repaired', async (t) => {
  const limits = waitingLimits(0)
  const full = { namespace: 10, fleet: 2000 }
  t.match(
    waitingProblem('default', full, limits),
    /^too many pods wait to start: 2000 in the fleet, limited to 2000\. /,
  )
  t.equal(waitingProblem('kube-system', full, limits), undefined)
  t.match(waitingProblem('kube-system', { namespace: 500, fleet: 0 }, limits), /in namespace kube-system/)
})

test('of creates at the same time only so many pass as may wait; one that starts or goes makes room', async (t) => {
  const { ask, store } = await anApi(t)
  const create = (name: string, namespace = 'default') =>
    ask('POST', `/api/v1/namespaces/${namespace}/pods`, { body: pod(name) })
  const answers = await Promise.all(countOf(510).map((index) => create(`p${index}`)))
  const refused = answers.filter(({ code }) => code !== 201)
  t.equal(refused.length, 10)
  t.match(refused[0], { code: 403, body: { kind: 'Status', reason: 'Forbidden', details: { kind: 'pods' } } })
  t.match(
    refused[0]?.body['message'],
    /^pods "p\d+" is forbidden: too many pods wait to start: 500 in namespace default, limited to 500\. Delete pods that cannot start, scale down what creates them, or add nodes$/,
  )
  t.equal((await store.list('pods', 'default')).items.length, 500)
  t.equal((await create('other', 'kube-system')).code, 201, 'another namespace')

  await store.delete('pods', { namespace: 'default', name: 'p0' })
  t.same([(await create('next')).code, (await create('too-many')).code], [201, 403])
  t.equal((await create('next')).code, 403, 'also a name that is taken')

  const p1 = await store.get('pods', { namespace: 'default', name: 'p1' })
  if (p1 === undefined) throw new Error('no p1')
  const bound = await store.update('pods', { ...p1, spec: { ...p1.spec, nodeName: 'pi-1' } })
  t.equal((await create('bound')).code, 403, 'a bound pod has not started yet')
  await store.updateStatus('pods', { ...bound, status: { ...bound.status, phase: 'Running' } })
  t.same([(await create('bound')).code, (await create('too-many')).code], [201, 403])
})

test('a create that fails and a dry run hold no place', async (t) => {
  const { ask } = await anApi(t)
  const create = (name: string, query = '') =>
    ask('POST', `/api/v1/namespaces/default/pods${query}`, { body: pod(name) })
  await Promise.all(countOf(499).map((index) => create(`p${index}`)))
  t.equal((await create('p1')).code, 409)
  t.equal((await create('dry', '?dryRun=All')).code, 201)
  t.same([(await create('last')).code, (await create('too-many')).code], [201, 403])
})

test('nodes raise the limit by what they can hold, as far as that is believable', async (t) => {
  const { ask, store, clock } = await anApi(t)
  const create = (index: number) => ask('POST', '/api/v1/namespaces/default/pods', { body: pod(`p${index}`) })
  const codes = async (names: number, from = 0) =>
    (await Promise.all(countOf(names).map((index) => create(from + index)))).filter(({ code }) => code === 201).length
  t.equal(await codes(501), 500)
  const node = await store.create('nodes', aNode({ name: 'pi-1' }))
  await store.updateStatus('nodes', { ...node, status: { ...node.status, allocatable: { pods: '1000000000000' } } })
  await clock.advance(1000)
  t.equal(await codes(2000, 1000), 1500, 'it counts for 1,000 pods')
})

for (const kind of ['deployments', 'jobs'] as const) {
  test(`one of ${kind} that wants 2,000,000,000 pods creates as many as may wait, and has an Event that names the limit and the remedy`, async (t) => {
    const world = await workloadWorld(t)
    world.start(workloadControllers(world.needs))
    await world.settle()
    await world.needs.creation.create(kind, endless[kind] as never, 'test')
    await world.settle(60_000)
    t.equal((await world.pods()).length, 500)
    const owner = kind === 'jobs' ? 'Job' : 'ReplicaSet'
    const failed = async () =>
      (await world.store.list('events')).items.filter(
        ({ reason, involvedObject }) => reason === 'FailedCreate' && involvedObject.kind === owner,
      )
    t.match((await failed())[0]?.message, /Error creating: pods "web-.*" is forbidden: .* limited to 500\. Delete pods/)
    const tries = async () => (await failed()).reduce((sum, { count = 1 }) => sum + count, 0)
    const before = await tries()
    await world.settle(10 * 60_000)
    t.ok((await tries()) - before <= 60, 'it is tried less and less often')

    await world.runPods()
    await world.settle(60_000)
    t.equal((await world.pods()).length, 1000, 'pods that have started make room for others')
  })
}

const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
const endless = {
  deployments: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 2_000_000_000, selector: { matchLabels: { app: 'web' } }, template },
  },
  jobs: {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'web', namespace: 'default' },
    spec: { parallelism: 2_000_000_000, template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
  },
}
