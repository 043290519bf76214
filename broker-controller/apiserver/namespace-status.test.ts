import { test } from 'tap'
import { deletionStatus } from './namespace-status.ts'

const pods = { name: 'pods', group: '' }
const leases = { name: 'leases', group: 'coordination.k8s.io' }
const byType = ({ conditions = [] }: ReturnType<typeof deletionStatus>, type: string) =>
  conditions.find((condition) => condition.type === type)

test('content and finalizers that remain are counted by name', async (t) => {
  const remaining = [
    { kind: pods, finalizers: [[], ['a.example/hold']] },
    { kind: leases, finalizers: [['a.example/hold', 'b.example/hold']] },
  ]
  const status = deletionStatus({ phase: 'Active' }, remaining, '2026-01-01T00:00:00Z')
  t.equal(status.phase, 'Terminating')
  t.match(byType(status, 'NamespaceContentRemaining'), {
    status: 'True',
    reason: 'SomeResourcesRemain',
    message:
      'Some resources are remaining: leases.coordination.k8s.io has 1 resource instances, pods. has 2 resource instances',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  t.match(byType(status, 'NamespaceFinalizersRemaining'), {
    status: 'True',
    message:
      'Some content in the namespace has finalizers remaining: a.example/hold in 2 resource instances, b.example/hold in 1 resource instances',
  })
  t.match(byType(status, 'NamespaceDeletionContentFailure'), { status: 'False', reason: 'ContentDeleted' })
})

test('a condition keeps its transition time while its status stays; an unchanged status is the same object', async (t) => {
  const first = deletionStatus(undefined, [{ kind: pods, finalizers: [[], []] }], '2026-01-01T00:00:00Z')
  const second = deletionStatus(first, [{ kind: pods, finalizers: [[]] }], '2026-01-01T00:00:01Z')
  t.match(byType(second, 'NamespaceContentRemaining'), {
    message: /1 resource/,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  t.equal(deletionStatus(second, [{ kind: pods, finalizers: [[]] }], '2026-01-01T00:00:02Z'), second)
  const ended = deletionStatus(second, [], '2026-01-01T00:00:03Z')
  t.match(byType(ended, 'NamespaceContentRemaining'), { status: 'False', lastTransitionTime: '2026-01-01T00:00:03Z' })
})
