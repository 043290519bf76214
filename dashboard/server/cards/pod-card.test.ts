import { test } from 'tap'
import type { ContainerStatus, Pod, PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { podCard, whyPodWaits } from './pod-card.ts'

function withStatus(status: PodStatus): Pod {
  return { ...aPod({ name: 'web', nodeName: 'pi-1' }), status }
}

function container(more: Partial<ContainerStatus>): ContainerStatus {
  return { name: 'server', ready: false, restartCount: 0, image: 'web:1', imageID: '', ...more }
}

test('a pod that runs and is ready waits for nothing', async (t) => {
  const pod = withStatus({
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [container({ ready: true, restartCount: 2, state: { running: {} } })],
  })
  t.match(podCard(pod), { name: 'web', node: 'pi-1', status: 'Running', ready: '1/1', isReady: true, restarts: 2 })
  t.notOk('why' in podCard(pod))
  t.equal(whyPodWaits(withStatus({ phase: 'Succeeded' })), undefined)
})

test('a pod that no node fits gives the reason of the scheduler', async (t) => {
  const message = '0/3 nodes are available: 3 Insufficient memory.'
  t.equal(
    whyPodWaits(withStatus({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message }] })),
    message,
  )
})

test('a container that crashes, is out of memory or has no image is named', async (t) => {
  const waiting = { state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } } }
  const crashed = (terminated: { readonly exitCode: number; readonly reason?: string }) =>
    whyPodWaits(
      withStatus({ phase: 'Running', containerStatuses: [container({ ...waiting, lastState: { terminated } })] }),
    )
  t.equal(crashed({ exitCode: 3 }), 'Container server ended with exit code 3 and is started again after a pause.')
  t.match(crashed({ exitCode: 137, reason: 'OOMKilled' }), 'ran out of memory')
  const missing = container({ state: { waiting: { reason: 'ImagePullBackOff', message: 'manifest unknown' } } })
  t.equal(
    whyPodWaits(withStatus({ phase: 'Pending', containerStatuses: [missing] })),
    'Container server: manifest unknown.',
  )
  t.equal(
    whyPodWaits(
      withStatus({ phase: 'Failed', containerStatuses: [container({ state: { terminated: { exitCode: 2 } } })] }),
    ),
    'Container server ended with exit code 2.',
  )
})

test('a pod that is deleted names the finalizer it waits for', async (t) => {
  const pod = aPod({ name: 'web' })
  const leaving = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  t.match(whyPodWaits(leaving), 'is being stopped')
  t.match(
    whyPodWaits({ ...leaving, metadata: { ...leaving.metadata, finalizers: ['example.com/keep'] } }),
    'example.com/keep',
  )
})
