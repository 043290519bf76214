import { test } from 'tap'
import { administrator } from '../../../api/identity.ts'
import type { Lease } from '../../../api/lease.ts'
import { problemText } from '../../../api/problem.ts'
import { aLease } from '../../../api/testing/builders.ts'
import { leaseStrategy } from './lease.ts'

const facts = { nowMs: 0, requester: administrator }

test('a lease lasts for a second at least, and counts its transitions from zero', async (t) => {
  const problems = (spec: Lease['spec']) => {
    const lease = aLease({ spec })
    const made = (leaseStrategy.validateCreate?.(lease, facts) ?? []).map(problemText)
    t.same((leaseStrategy.validateUpdate?.(aLease(), lease) ?? []).map(problemText), made, 'the same for an update')
    return made
  }
  t.same(problems({ leaseDurationSeconds: 1, leaseTransitions: 0 }), [])
  for (const seconds of [0, -1])
    t.same(problems({ leaseDurationSeconds: seconds }), [
      `spec.leaseDurationSeconds: Invalid value: ${seconds}: must be greater than 0`,
    ])
  t.same(problems({ leaseTransitions: -1 }), [
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ])
  const { spec: _, ...bare } = aLease()
  t.same(leaseStrategy.validateCreate?.(bare, facts), [])
  t.same(leaseStrategy.table.cells(bare, Date.parse('2026-01-01T00:00:10Z')), ['pi-01', '', '10s'])
})
