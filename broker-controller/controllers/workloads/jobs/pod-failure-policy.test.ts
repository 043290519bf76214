import { test } from 'tap'
import type { PodFailurePolicyRule } from '../../../../api/batch/job.ts'
import type { ContainerStatus, PodStatus } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { failureVerdict } from './pod-failure-policy.ts'

const container = (name: string, exitCode?: number): ContainerStatus => ({
  name,
  ready: false,
  restartCount: 0,
  image: '',
  imageID: '',
  ...(exitCode !== undefined && { state: { terminated: { exitCode } } }),
})
const verdict = (rules: readonly PodFailurePolicyRule[], status: PodStatus) =>
  failureVerdict({ rules }, aPod({ status: { phase: 'Failed', ...status } }))
const exits = (action: string, operator: string, values: readonly number[], containerName?: string) => ({
  action,
  onExitCodes: { operator, values, ...(containerName !== undefined && { containerName }) },
})

test('without a rule that matches, a failure counts', async (t) => {
  t.same(failureVerdict(undefined, aPod()), { counts: true })
  t.same(failureVerdict({}, aPod()), { counts: true })
  const { status: _, ...unseen } = aPod()
  const rules = [exits('Ignore', 'NotIn', [1]), { action: 'Ignore', onPodConditions: [{ type: 'A', status: 'True' }] }]
  t.same(failureVerdict({ rules }, unseen), { counts: true })
  t.same(verdict(rules, { containerStatuses: [{ ...container('main'), state: { running: {} } }] }), { counts: true })
  t.same(verdict([{ action: 'Ignore' }], { conditions: [{ type: 'A', status: 'True' }] }), { counts: true })
  t.same(verdict([], {}), { counts: true })
  t.same(verdict([exits('Ignore', 'In', [1])], { containerStatuses: [container('main', 2)] }), { counts: true })
})

test('the first rule that matches decides', async (t) => {
  const status = { containerStatuses: [container('main', 2)] }
  t.same(verdict([exits('Count', 'In', [1]), exits('Ignore', 'In', [2]), exits('FailJob', 'In', [2])], status), {
    action: 'Ignore',
    counts: false,
  })
  t.same(verdict([exits('FailIndex', 'NotIn', [1])], status), { action: 'FailIndex', counts: true })
  t.same(verdict([exits('Count', 'In', [2])], status), { action: 'Count', counts: true })
})

test('exit codes are those of containers that have ended, and never 0', async (t) => {
  const rule = [exits('Ignore', 'NotIn', [1])]
  t.equal(verdict(rule, { containerStatuses: [container('main', 0), container('side')] }).counts, true)
  t.equal(verdict(rule, { initContainerStatuses: [container('init', 7)] }).counts, false)
  const named = [exits('Ignore', 'In', [7], 'main')]
  t.equal(verdict(named, { containerStatuses: [container('side', 7)] }).counts, true)
  t.equal(verdict(named, { containerStatuses: [container('side', 7), container('main', 7)] }).counts, false)
  const of7 = { containerStatuses: [container('main', 7)] }
  t.equal(verdict([exits('Ignore', 'NotIn', [7])], of7).counts, true)
  t.equal(verdict([exits('Ignore', 'In', [])], of7).counts, true)
  t.equal(verdict([exits('Ignore', 'Magic', [1])], of7).counts, true, 'an operator that is not known matches nothing')
  t.same(verdict([exits('FailJob', 'In', [7])], of7).counts, true)
})

test('conditions of the pod match by type and status', async (t) => {
  const rule = [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }]
  t.equal(verdict(rule, { conditions: [{ type: 'DisruptionTarget', status: 'True' }] }).counts, false)
  t.equal(verdict(rule, { conditions: [{ type: 'DisruptionTarget', status: 'False' }] }).counts, true)
  t.equal(verdict(rule, { conditions: [{ type: 'Ready', status: 'True' }] }).counts, true)
  const two = [
    { type: 'A', status: 'True' },
    { type: 'B', status: 'True' },
  ]
  const either = [{ action: 'Ignore', onPodConditions: two }]
  t.equal(verdict(either, { conditions: [{ type: 'B', status: 'True' }] }).counts, false, 'one of them is enough')
})

test('a rule that fails the Job names the cause and its place', async (t) => {
  t.equal(
    verdict([exits('Count', 'In', [1]), exits('FailJob', 'In', [42])], { containerStatuses: [container('main', 42)] })
      .message,
    'Container main for pod default/a-pod failed with exit code 42 matching FailJob rule at index 1',
  )
  const rule = [{ action: 'FailJob', onPodConditions: [{ type: 'ConfigIssue', status: 'True' }] }]
  t.equal(
    verdict(rule, { conditions: [{ type: 'ConfigIssue', status: 'True' }] }).message,
    'Pod default/a-pod has condition ConfigIssue matching FailJob rule at index 0',
  )
})
