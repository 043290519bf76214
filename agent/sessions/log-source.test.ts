import { test } from 'tap'
import type { ContainerStatus } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { logSource } from './log-source.ts'

const running = { running: { startedAt: '2026-01-01T00:00:00Z' } }
const ended = (containerID?: string) => ({
  terminated: { exitCode: 1, ...(containerID !== undefined && { containerID }) },
})

test('a log is read of the container that runs, ended, or ran before, in this order', async (t) => {
  t.same(source({ state: running, containerID: 'docker://now', lastState: ended('docker://before') }), { id: 'now' })
  t.same(source({ state: ended('docker://now'), lastState: ended('docker://before') }), { id: 'now' })
  const waiting = { waiting: { reason: 'CrashLoopBackOff' } }
  t.same(source({ state: waiting, lastState: ended('docker://before') }), { id: 'before' })
  t.same(source({ state: running, containerID: 'docker://now', lastState: ended('docker://before') }, true), {
    id: 'before',
  })
})

test('where there is none, the reason is in a sentence of the kubelet', async (t) => {
  const problem = (status: Partial<ContainerStatus>, previous = false) => source(status, previous)
  t.same(problem({ state: running, containerID: 'docker://now' }, true), {
    problem: 'previous terminated container "main" in pod "web" not found',
  })
  for (const [state, because] of [
    [{ waiting: { reason: 'ContainerCreating' } }, 'is waiting to start: ContainerCreating'],
    [{ waiting: { reason: 'ErrImagePull' } }, "is waiting to start: image can't be pulled"],
    [{ waiting: { reason: 'ImagePullBackOff' } }, 'is waiting to start: trying and failing to pull image'],
    [{}, 'is waiting to start - no logs yet'],
    [ended(), 'is terminated'],
  ] as const) {
    t.same(problem({ state }), { problem: `container "main" in pod "web" ${because}` })
  }
  t.same(logSource(aPod({ name: 'web' }), 'main', false), {
    problem: 'container "main" in pod "web" is not available',
  })
})

function source(status: Partial<ContainerStatus>, previous = false) {
  const pod = aPod({ name: 'web' })
  const container = { name: 'main', image: 'x', imageID: 'x', ready: true, restartCount: 0, ...status }
  return logSource({ ...pod, status: { ...pod.status, containerStatuses: [container] } }, 'main', previous)
}
