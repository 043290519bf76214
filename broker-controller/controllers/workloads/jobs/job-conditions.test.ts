import { test } from 'tap'
import { midnightMs, timeAt } from '../../../testing/job-objects.ts'
import { failedFor, jobCondition, withCondition } from './job-conditions.ts'

const condition = (status: 'True' | 'False', reason = 'Because', second = 0) =>
  jobCondition('Suspended', { status, reason, message: 'A sentence.' }, midnightMs + second * 1000)

test('a condition has the time at which it is set', async (t) => {
  t.same(condition('True', 'Because', 7), {
    type: 'Suspended',
    status: 'True',
    lastProbeTime: timeAt(7),
    lastTransitionTime: timeAt(7),
    reason: 'Because',
    message: 'A sentence.',
  })
})

test('a Job fails for the reason that was decided before', async (t) => {
  t.match(failedFor(condition('True'), midnightMs), {
    type: 'Failed',
    status: 'True',
    reason: 'Because',
    message: 'A sentence.',
  })
  t.match(failedFor({ type: 'FailureTarget', status: 'True' }, midnightMs), { reason: '', message: '' })
})

test('a condition that never was true is not added as false', async (t) => {
  t.same(withCondition([], condition('False')), { conditions: [], isNew: false })
  t.same(withCondition([], condition('True')), { conditions: [condition('True')], isNew: true })
})

test('a condition changes in its place, and keeps its times where nothing is new', async (t) => {
  const other = { type: 'Other', status: 'True' }
  const before = [other, condition('True'), { ...other, type: 'Last' }]
  const after = condition('False', 'Because', 9)
  t.same(withCondition(before, after), { conditions: [other, after, { ...other, type: 'Last' }], isNew: true })
  t.same(withCondition(before, condition('True', 'Because', 9)), { conditions: before, isNew: false })
  t.equal(withCondition(before, condition('True', 'Another')).isNew, true)
  t.equal(withCondition(before, { ...condition('True'), message: 'Another.' }).isNew, true)
})
