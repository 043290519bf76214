import { type Test, test } from 'tap'
import type { Pod, PodStatus } from '../../../api/pod.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { fakeControlPlane } from '../../testing/fake-control-plane.ts'
import { podRecords } from '../record/pod-records.ts'
import { podStatusManager } from './pod-status-manager.ts'

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', uid: 'u1' },
  spec: { containers: [] },
}

function reports(t: Test) {
  const clock = fakeClock()
  const starts: number[] = []
  const manager = podStatusManager({
    records: podRecords(),
    controlPlane: fakeControlPlane(),
    started: (seconds) => starts.push(seconds),
    clock,
    log: quietLog(t),
  })
  const report = (phase: NonNullable<PodStatus['phase']>, uid = 'u1', message = '') =>
    manager.report(uid, pod, { phase, ...(message && { message }) })
  return { clock, starts, manager, report }
}

test('a pod starts from its first report until it runs, once', async (t) => {
  const { clock, starts, report } = reports(t)
  report('Pending')
  await clock.advance(1_500)
  report('Pending', 'u1', 'pulling')
  await clock.advance(1_000)
  report('Running')
  report('Running', 'u1', 'ready')
  t.same(starts, [2.5])
})

test('a pod that ran before the agent started, fails, or is removed first, has no start', async (t) => {
  const { clock, starts, manager, report } = reports(t)
  report('Running', 'adopted')
  report('Pending', 'rejected')
  report('Failed', 'rejected')
  report('Running', 'rejected')
  report('Pending', 'removed')
  manager.reportGone('removed', false)
  await clock.advance(60_000)
  report('Running', 'removed')
  t.same(starts, [])
})
