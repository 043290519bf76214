/** What the controllers of workloads do after a restore, while nodes have not sent their checkpoints. */
import { type Test, test } from 'tap'
import { aNode } from '../../../api/testing/builders.ts'
import { fakeHold } from '../../testing/fake-hold.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { workloadControllers } from './workload-controllers.ts'

const template = (app: string, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'app:1' }], ...more },
})
const specOf = (app: string) => ({ selector: { matchLabels: { app } }, template: template(app) })

async function held(t: Test) {
  const world = await workloadWorld(t)
  const { creation } = world.needs
  const { resourceVersion: _, ...node } = aNode({ name: 'pi-01' }).metadata
  await world.store.create('nodes', { ...aNode({ name: 'pi-01' }), metadata: node })
  const apps = { apiVersion: 'apps/v1' } as const
  const metadata = (name: string) => ({ name, namespace: 'default' })
  const web = {
    ...apps,
    kind: 'Deployment',
    metadata: metadata('web'),
    spec: { replicas: 1, ...specOf('web') },
  } as const
  const db = { replicas: 1, serviceName: 'db', ...specOf('db') }
  const job = { template: template('job', { restartPolicy: 'Never' as const }) }
  await creation.create('deployments', web, 'test')
  await creation.create('statefulsets', { ...apps, kind: 'StatefulSet', metadata: metadata('db'), spec: db }, 'test')
  await creation.create(
    'daemonsets',
    { ...apps, kind: 'DaemonSet', metadata: metadata('log'), spec: specOf('log') },
    'test',
  )
  await creation.create('jobs', { apiVersion: 'batch/v1', kind: 'Job', metadata: metadata('job'), spec: job }, 'test')
  const hold = fakeHold()
  world.start(workloadControllers({ ...world.needs, hold }))
  await world.settle(5_000)
  const appsWithPods = async () => (await world.pods()).map(({ metadata: { labels } }) => labels?.['app']).sort()
  return { ...world, hold, appsWithPods }
}

test('no controller creates pods while workloads are held, and each does when they are released', async (t) => {
  const { hold, appsWithPods, settle } = await held(t)
  t.same(await appsWithPods(), [])
  hold.release('none')
  await settle(5_000)
  t.same(await appsWithPods(), ['db', 'job', 'log', 'web'])
})

test('a StatefulSet waits longer, with an Event, and counts its pods meanwhile', async (t) => {
  const { hold, appsWithPods, settle, store } = await held(t)
  hold.release('statefulsets')
  await settle(5_000)
  t.same(await appsWithPods(), ['job', 'log', 'web'])
  const [event] = (await store.list('events')).items.filter(({ involvedObject }) => involvedObject.name === 'db')
  t.match(event, {
    reason: 'AcceptsCheckpoints',
    message: 'Pods are not created or deleted after the restore: StatefulSets wait for the checkpoints of pi-2',
  })
  t.match((await store.get('statefulsets', { namespace: 'default', name: 'db' }))?.status, {
    observedGeneration: 1,
    replicas: 0,
  })
  hold.release('none')
  await settle(5_000)
  t.same(await appsWithPods(), ['db', 'job', 'log', 'web'])
})
