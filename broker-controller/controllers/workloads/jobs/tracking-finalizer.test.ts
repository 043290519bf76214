import { test } from 'tap'
import { jobNames } from '../../../../api/batch/job.ts'
import type { OwnerReference } from '../../../../api/meta.ts'
import type { Pod } from '../../../../api/pod.ts'
import { fakeClock } from '../../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../../store/memory-store.ts'
import { crashingStore } from '../../../testing/crashing-store.ts'
import { jobTemplate, jobWorld } from '../../../testing/job-world.ts'
import { isTracked } from './job-pods.ts'
import { releasePod } from './tracking-finalizer.ts'

type World = Awaited<ReturnType<typeof jobWorld>>
const owner = (kind: string, name: string, uid: string, apiVersion = 'batch/v1'): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: true,
})
/** A pod with the finalizer, and more. */
async function createPod(
  world: World,
  name: string,
  ownerReferences: readonly OwnerReference[],
  finalizers = ['example.com/mine'],
) {
  const metadata = {
    name,
    namespace: 'default',
    finalizers: [...finalizers, jobNames.trackingFinalizer],
    ...(ownerReferences.length > 0 && { ownerReferences }),
  }
  const { spec } = jobTemplate()
  return await world.needs.creation.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec }, 'test')
}
const tracked = async (world: World) =>
  (await world.pods()).map((pod) => `${pod.metadata.name}: ${isTracked(pod) ? 'held' : pod.metadata.finalizers}`)

test('a pod without a controller loses the finalizer of Jobs, and no other', async (t) => {
  const world = await jobWorld(t)
  await createPod(world, 'lost', [])
  await world.settle()
  t.same(await tracked(world), ['lost: example.com/mine'])
})

test('a pod of a Job that is gone, or that had the name before, is released when it has ended', async (t) => {
  const world = await jobWorld(t)
  await world.create({ parallelism: 0 })
  const pod = await createPod(world, 'of-another', [owner('Job', 'work', 'uid-of-the-job-before')])
  await createPod(world, 'running', [owner('Job', 'gone', 'uid-of-gone')])
  await world.settle()
  await world.end(pod, 0)
  await world.settle()
  t.same(await tracked(world), ['of-another: example.com/mine', 'running: held'])
})

test('pods of other controllers, of other groups and of Jobs that others manage are left alone', async (t) => {
  const world = await jobWorld(t)
  const mine = await world.create({ managedBy: 'example.com/mine' }, 'managed')
  const owners = [
    owner('ReplicaSet', 'web', 'uid-of-web', 'apps/v1'),
    owner('Job', 'gone', 'uid-of-gone', 'example.com/v1'),
    owner('Job', 'managed', mine.metadata.uid),
  ]
  for (const [place, one] of owners.entries()) await world.end(await createPod(world, `pod-${place}`, [one]), 1)
  await world.settle()
  t.same(await tracked(world), ['pod-0: held', 'pod-1: held', 'pod-2: held'])
})

test('a pod that only the finalizer kept goes with it', async (t) => {
  const world = await jobWorld(t)
  const pod = await createPod(world, 'leaving', [owner('Job', 'gone', 'uid-of-gone')], [])
  const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
  await world.store.update('pods', { ...pod, metadata: { ...pod.metadata, ...deleted } })
  await world.settle()
  t.same(await world.pods(), [])
})

test('a process that ends after any write leaves no pod that nothing holds and nothing removes', async (t) => {
  const clock = fakeClock()
  const { store, allow } = crashingStore(memoryStore({ clock }))
  const finalizers = [jobNames.trackingFinalizer]
  const marks = { finalizers, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 }
  const { spec } = jobTemplate()
  const metadata = { name: 'ended', namespace: 'default', ...marks }
  const pod = await store.create('pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec } as Pod)
  allow(1)
  await releasePod({ store, clock }, pod)
  t.same((await store.list('pods')).items, [])
})
