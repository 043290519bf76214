import { test } from 'tap'
import { deletionStatus } from './namespace-status.ts'

const pods = { name: 'pods', group: '' }
const leases = { name: 'leases', group: 'coordination.k8s.io' }
const byType = ({ conditions = [] }: ReturnType<typeof deletionStatus>, type: string) =>
  conditions.find((condition) => condition.type === type)

const left = (finalizers?: readonly (readonly string[])[]) => ({
  remaining: finalizers === undefined ? [] : [{ kind: pods, finalizers }],
  failures: [],
  undiscovered: [],
})

test('content and finalizers that remain are counted by name', async (t) => {
  const remaining = [
    { kind: pods, finalizers: [[], ['a.example/hold']] },
    { kind: leases, finalizers: [['a.example/hold', 'b.example/hold']] },
  ]
  const status = deletionStatus(
    { phase: 'Active' },
    { remaining, failures: [], undiscovered: [] },
    '2026-01-01T00:00:00Z',
  )
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
  const first = deletionStatus(undefined, left([[], []]), '2026-01-01T00:00:00Z')
  const second = deletionStatus(first, left([[]]), '2026-01-01T00:00:01Z')
  t.match(byType(second, 'NamespaceContentRemaining'), {
    message: /1 resource/,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  })
  t.equal(deletionStatus(second, left([[]]), '2026-01-01T00:00:02Z'), second)
  const ended = deletionStatus(second, left(), '2026-01-01T00:00:03Z')
  t.match(byType(ended, 'NamespaceContentRemaining'), { status: 'False', lastTransitionTime: '2026-01-01T00:00:03Z' })
})

test('content that cannot be deleted is a condition with the failures in order', async (t) => {
  const failed = deletionStatus(undefined, { ...left(), failures: ['b: full', 'a: full'] }, '2026-01-01T00:00:00Z')
  t.match(byType(failed, 'NamespaceDeletionContentFailure'), {
    status: 'True',
    reason: 'ContentDeletionFailed',
    message: 'Failed to delete all resource types, 2 remaining: a: full, b: full',
  })
  const later = deletionStatus(failed, left(), '2026-01-01T00:00:09Z')
  t.match(byType(later, 'NamespaceDeletionContentFailure'), {
    status: 'False',
    reason: 'ContentDeleted',
    message: 'All content successfully deleted, may be waiting on finalization',
    lastTransitionTime: '2026-01-01T00:00:09Z',
  })
})

test('versions of extension servers that do not answer are a condition in the words of client-go', async (t) => {
  const undiscovered = ['b.example.com/v1', 'a.example.com/v1']
  const status = deletionStatus(undefined, { ...left(), undiscovered }, '2026-01-01T00:00:00Z')
  const stale = (version: string) => `${version}: stale GroupVersion discovery: ${version}`
  t.match(byType(status, 'NamespaceDeletionDiscoveryFailure'), {
    status: 'True',
    reason: 'DiscoveryFailed',
    message: `Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: ${stale('a.example.com/v1')}, ${stale('b.example.com/v1')}`,
  })
  const answered = deletionStatus(status, left(), '2026-01-01T00:00:09Z')
  t.match(byType(answered, 'NamespaceDeletionDiscoveryFailure'), { status: 'False', reason: 'ResourcesDiscovered' })
})
