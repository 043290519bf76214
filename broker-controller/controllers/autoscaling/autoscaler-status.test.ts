import { test } from 'tap'
import { withAutoscalerCondition, withAutoscalerCounts } from './autoscaler-status.ts'

const finding = { status: 'True', reason: 'ReadyForNewScale', message: 'm' } as const

test('the time of a condition changes with its status only', async (t) => {
  const first = withAutoscalerCondition({}, 'AbleToScale', finding, 'T1')
  t.same(first.conditions, [{ type: 'AbleToScale', ...finding, lastTransitionTime: 'T1' }])
  const both = withAutoscalerCondition(first, 'ScalingActive', finding, 'T2')
  const again = withAutoscalerCondition(both, 'AbleToScale', { ...finding, reason: 'SucceededRescale' }, 'T3')
  t.match(again.conditions, [{ reason: 'SucceededRescale', lastTransitionTime: 'T1' }, { type: 'ScalingActive' }])
  const failed = withAutoscalerCondition(again, 'AbleToScale', { ...finding, status: 'False' }, 'T4')
  t.match(failed.conditions, [{ status: 'False', lastTransitionTime: 'T4' }, { lastTransitionTime: 'T2' }])
})

test('counts replace those before, and the time of scaling stays', async (t) => {
  const conditions = [{ type: 'AbleToScale', ...finding }]
  const before = { conditions, lastScaleTime: 'T0', currentReplicas: 3, desiredReplicas: 3, observedGeneration: 1 }
  const counts = { currentReplicas: 0, desiredReplicas: 0, currentMetrics: [] }
  t.same(withAutoscalerCounts(before, counts), { lastScaleTime: 'T0', desiredReplicas: 0, conditions })
  const currentMetrics = [{ type: '' }]
  t.same(withAutoscalerCounts({}, { currentReplicas: 1, desiredReplicas: 2, currentMetrics, scaledAt: 'T1' }), {
    lastScaleTime: 'T1',
    currentReplicas: 1,
    desiredReplicas: 2,
    currentMetrics,
  })
})
