import { test } from 'tap'
import { type GrowingClaim, growthBegun, growthDone, growthFailed, growthPlan } from './claim-growth.ts'

type Status = NonNullable<GrowingClaim['status']>
const aClaim = (status?: Status, accessModes: readonly string[] = ['ReadWriteOnce']): GrowingClaim => ({
  metadata: { uid: 'u', resourceVersion: '7' },
  spec: { accessModes },
  ...(status && { status }),
})
const at = (step: string, more: Status = {}): Status => ({
  capacity: { storage: '1Gi' },
  allocatedResources: { storage: '2Gi' },
  allocatedResourceStatuses: { storage: step },
  ...more,
})

test('what the node does follows from the status of the claim', async (t) => {
  for (const [what, claim, plan] of [
    ['its controller has finished', aClaim(at('NodeResizePending')), { step: 'expand', size: '2Gi' }],
    ['an earlier attempt was interrupted', aClaim(at('NodeResizeInProgress')), { step: 'expand', size: '2Gi' }],
    ['its controller works on it', aClaim(at('ControllerResizeInProgress')), { step: 'wait' }],
    ['its controller cannot', aClaim(at('ControllerResizeInfeasible')), { step: 'wait' }],
    ['the node could not', aClaim(at('NodeResizeInfeasible')), { step: 'wait' }],
    ['it has the size', aClaim({ capacity: { storage: '2Gi' } }), { step: 'done' }],
    ['it has more', aClaim({ capacity: { storage: '3Gi' } }), { step: 'done' }],
    [
      'other pods have it, too',
      aClaim({ capacity: { storage: '2Gi' } }, ['ReadWriteMany']),
      { step: 'expand', size: '2Gi', isWritten: true },
    ],
    [
      'its resizer states no steps',
      aClaim({ capacity: { storage: '1Gi' } }),
      { step: 'expand', size: '2Gi', isOfOldResizer: true },
    ],
    ['it has no status', aClaim(), { step: 'expand', size: '2Gi', isOfOldResizer: true }],
    [
      'the size that was allocated counts',
      aClaim(at('NodeResizePending', { allocatedResources: { storage: '5Gi' } })),
      { step: 'expand', size: '5Gi' },
    ],
    [
      'no step, and the allocated size is not there',
      aClaim({ capacity: { storage: '1Gi' }, allocatedResources: { storage: '2Gi' } }),
      { step: 'wait' },
    ],
  ] as readonly [string, GrowingClaim, object][]) {
    t.same(growthPlan(claim, '2Gi'), plan, what)
  }
})

test('the status of a claim through its expansion', async (t) => {
  const metadata = { resourceVersion: '7' }
  t.same(growthBegun(aClaim()), {
    metadata,
    status: { allocatedResourceStatuses: { storage: 'NodeResizeInProgress' } },
  })
  const conditions = [
    { type: 'FileSystemResizePending', status: 'True' },
    { type: 'Resizing', status: 'True' },
    { type: 'Other', status: 'True' },
  ]
  t.same(
    growthDone(aClaim(at('NodeResizeInProgress', { conditions })), '2Gi'),
    {
      metadata,
      status: {
        ...{ capacity: { storage: '2Gi' }, allocatedResourceStatuses: null },
        conditions: [{ type: 'Other', status: 'True' }],
      },
    },
    'conditions of others stay',
  )
  const two = { storage: 'NodeResizeInProgress', 'example.com/x': 'NodeResizePending' }
  t.match(growthDone(aClaim(at('', { allocatedResourceStatuses: two })), '2Gi'), {
    status: { allocatedResourceStatuses: { storage: null } },
  })
})

test('a failure is a condition with its first time, and ends the attempts where no later one succeeds', async (t) => {
  const failed = {
    type: 'NodeResizeError',
    status: 'True',
    lastTransitionTime: 'now',
    message: 'failed to expand pvc with x',
  }
  const failure = { isInfeasible: false, message: 'x' }
  t.same(growthFailed(aClaim(), failure, 'now'), {
    ...{ metadata: { resourceVersion: '7' }, status: { conditions: [failed] } },
  })
  t.match(growthFailed(aClaim(), { ...failure, isInfeasible: true }, 'now'), {
    status: { conditions: [failed], allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } },
  })
  const before = [{ ...failed, lastTransitionTime: 'earlier' }]
  t.match(growthFailed(aClaim({ conditions: before }), failure, 'now'), { status: { conditions: before } })
  const over = [
    { ...failed, status: 'False' },
    { type: 'Other', status: 'True' },
  ]
  t.match(growthFailed(aClaim({ conditions: over }), failure, 'now'), {
    status: { conditions: [{ type: 'Other', status: 'True' }, failed] },
  })
})
