/** What the controllers of workloads do when a machine has announced that it goes down and is awaited back. */
import { test } from 'tap'
import { shutdownEnding } from '../../../api/node/node-shutdown.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { workloadWorld } from '../../testing/workload-world.ts'
import { workloadControllers } from './workload-controllers.ts'

const template = (app: string, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'app:1' }], ...more },
})
const specOf = (app: string) => ({ selector: { matchLabels: { app } }, template: template(app) })

test('pods that a shutdown ended wait for their machine, and are replaced when they are deleted', async (t) => {
  const world = await workloadWorld(t)
  const { store, settle, pods } = world
  const { creation } = world.needs
  const { resourceVersion: _, ...node } = aNode({ name: 'pi-01' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-01' }), metadata: node })
  const apps = { apiVersion: 'apps/v1' } as const
  const metadata = (name: string) => ({ name, namespace: 'default' })
  const web = { replicas: 2, ...specOf('web') }
  const db = { replicas: 1, serviceName: 'db', ...specOf('db') }
  const job = { template: template('job', { restartPolicy: 'OnFailure' as const }) }
  await creation.create('deployments', { ...apps, kind: 'Deployment', metadata: metadata('web'), spec: web }, 'test')
  await creation.create('statefulsets', { ...apps, kind: 'StatefulSet', metadata: metadata('db'), spec: db }, 'test')
  await creation.create(
    'daemonsets',
    { ...apps, kind: 'DaemonSet', metadata: metadata('log'), spec: specOf('log') },
    'test',
  )
  await creation.create('jobs', { apiVersion: 'batch/v1', kind: 'Job', metadata: metadata('job'), spec: job }, 'test')
  world.start(workloadControllers(world.needs))
  await settle(5_000)
  await world.runPods()
  await settle(5_000)
  const uids = async () => (await pods()).map(({ metadata: { uid } }) => uid).sort()
  const before = await uids()
  t.equal(before.length, 5)

  for (const pod of await pods())
    await store.updateStatus('pods', { ...pod, status: { phase: 'Failed', ...shutdownEnding } })
  await settle(60_000)
  t.same(await uids(), before, 'none is created, and none deleted')
  t.notOk((await store.get('jobs', metadata('job')))?.status?.failed, 'no attempt of the Job is counted')

  // As taints do, when the machine stays away for too long.
  for (const pod of await pods()) {
    const leaving = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
    await store.update('pods', { ...pod, metadata: leaving })
  }
  await settle(60_000)
  await world.endPods()
  await settle(60_000)
  const after = await pods()
  t.same(after.map(({ metadata: { labels } }) => labels?.['app']).sort(), ['db', 'job', 'log', 'web', 'web'])
  t.same(
    after.filter(({ metadata: { uid } }) => before.includes(uid)),
    [],
  )
})
