import { test } from 'tap'
import type { ScalingBehavior, ScalingRules } from '../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import {
  afterScaling,
  type LimitInput,
  limitScaling,
  newScalingHistory,
  type ScalingHistory,
} from './scaling-limits.ts'

const minute = 60_000
const nothing: ScalingHistory = { recommendations: [], ups: [], downs: [] }

function limited(current: number, wanted: number, more: Partial<LimitInput> = {}) {
  return limitScaling({
    current,
    wanted,
    minReplicas: 1,
    maxReplicas: 100,
    behavior: undefined,
    history: nothing,
    downscaleStabilizationMs: 5 * minute,
    nowMs: 0,
    ...more,
  })
}
const rules = (given: ScalingRules): ScalingRules => ({ stabilizationWindowSeconds: 0, selectPolicy: 'Max', ...given })
const pods = (value: number, periodSeconds = 60) => ({ type: 'Pods', value, periodSeconds })
const percent = (value: number, periodSeconds = 60) => ({ type: 'Percent', value, periodSeconds })
const usual: ScalingRules = rules({ policies: [percent(100, 15)] })
const up = (given: ScalingRules): ScalingBehavior => ({ scaleUp: rules(given), scaleDown: usual })
const down = (given: ScalingRules): ScalingBehavior => ({ scaleUp: usual, scaleDown: rules(given) })

test('without a behavior replicas are doubled at most, or become four', async (t) => {
  t.match(limited(1, 10), { replicas: 4, scalingLimited: { status: 'True', reason: 'ScaleUpLimit' } })
  t.match(limited(3, 10), { replicas: 6, scalingLimited: { reason: 'ScaleUpLimit' } })
  t.match(limited(5, 10), { replicas: 10, scalingLimited: { status: 'False', reason: 'DesiredWithinRange' } })
})

test('the limits of the autoscaler hold', async (t) => {
  t.match(limited(5, 9, { maxReplicas: 7 }), {
    replicas: 7,
    scalingLimited: {
      status: 'True',
      reason: 'TooManyReplicas',
      message: 'the desired replica count is more than the maximum replica count',
    },
  })
  t.match(limited(5, 0, { minReplicas: 2 }), { replicas: 2, scalingLimited: { reason: 'TooFewReplicas' } })
  const behavior = up({ policies: [pods(50)] })
  t.match(limited(5, 9, { behavior, maxReplicas: 7 }), { replicas: 7, scalingLimited: { reason: 'TooManyReplicas' } })
  t.match(limited(5, 1, { behavior, minReplicas: 3 }), { replicas: 3, scalingLimited: { reason: 'TooFewReplicas' } })
})

test('what is exactly a limit is within the range, and the limit of the autoscaler is named before the rate', async (t) => {
  const reason = (...given: Parameters<typeof limited>) => limited(...given).scalingLimited.reason
  t.equal(reason(5, 1), 'DesiredWithinRange')
  t.equal(reason(5, 10), 'DesiredWithinRange')
  t.equal(reason(5, 11, { maxReplicas: 10 }), 'TooManyReplicas')
  const four = { scaleUp: rules({ policies: [pods(4)] }), scaleDown: rules({ policies: [pods(4)] }) }
  t.equal(reason(10, 14, { behavior: four }), 'DesiredWithinRange')
  t.equal(reason(10, 15, { behavior: four, maxReplicas: 14 }), 'TooManyReplicas')
  t.equal(reason(10, 6, { behavior: four }), 'DesiredWithinRange')
  t.equal(reason(10, 5, { behavior: four, minReplicas: 6 }), 'TooFewReplicas')
})

test('a behavior without rules scales nowhere', async (t) => {
  t.equal(limited(4, 9, { behavior: {} }).replicas, 4)
  t.equal(limited(4, 1, { behavior: {} }).replicas, 4)
})

test('replicas are removed only when nothing asked for more during the window', async (t) => {
  const first = newScalingHistory(5, 0)
  t.same(first, { recommendations: [{ replicas: 5, atMs: 0 }], ups: [], downs: [] })
  const at = (nowMs: number) => limited(5, 2, { history: first, nowMs })
  t.match(at(5 * minute), { replicas: 5, ableToScale: { status: 'True', reason: 'ScaleDownStabilized' } })
  t.match(at(5 * minute + 1), { replicas: 2, ableToScale: { reason: 'ReadyForNewScale' } })
  t.match(at(0).history.recommendations, [{ replicas: 5 }, { replicas: 2, atMs: 0 }])
  t.equal(
    limited(5, 2, { history: first, nowMs: 70 * minute }).history.recommendations.length,
    1,
    'old ones are dropped',
  )
})

test('recommendations are kept for the longest window, or for that of the controller', async (t) => {
  const kept = (ageMinutes: number, windowMinutes: number) => {
    const history = newScalingHistory(5, 100 * minute - ageMinutes * minute)
    const more = { history, nowMs: 100 * minute, downscaleStabilizationMs: windowMinutes * minute }
    return limited(5, 2, more).history.recommendations.length === 2
  }
  t.same([kept(60, 5), kept(61, 5), kept(61, 90), kept(90, 90), kept(91, 90)], [true, false, true, true, false])
})

test('windows of a behavior hold back both directions', async (t) => {
  const history = {
    ...nothing,
    recommendations: [
      { replicas: 3, atMs: 0 },
      { replicas: 8, atMs: 1000 },
    ],
  }
  const slowUp = up({ stabilizationWindowSeconds: 60, policies: [pods(50)] })
  t.match(limited(4, 9, { behavior: slowUp, history, nowMs: 59_000 }), {
    replicas: 4,
    ableToScale: { reason: 'ScaleUpStabilized', message: /lowest recent recommendation/ },
  })
  t.match(limited(4, 9, { behavior: slowUp, history, nowMs: 60_000 }), { replicas: 8 })
  t.match(limited(4, 9, { behavior: slowUp, history, nowMs: 61_000 }), { replicas: 9 })
  const slowDown = down({ stabilizationWindowSeconds: 60, policies: [pods(50)] })
  t.match(limited(6, 2, { behavior: slowDown, history, nowMs: 60_999 }), {
    replicas: 6,
    ableToScale: { reason: 'ScaleDownStabilized' },
  })
  t.match(limited(6, 2, { behavior: slowDown, history, nowMs: 61_000 }), { replicas: 2 })
})

test('a behavior without a window for scaling down has the one of the controller', async (t) => {
  const history = { ...nothing, recommendations: [{ replicas: 6, atMs: 0 }] }
  const behavior = { scaleUp: usual, scaleDown: { selectPolicy: 'Max', policies: [pods(50)] } }
  t.match(limited(6, 2, { behavior, history, nowMs: 4 * minute }), { replicas: 6 })
  t.match(limited(6, 2, { behavior, history, nowMs: 5 * minute }), { replicas: 2 })
})

test('policies limit the change in a period, counted from its start', async (t) => {
  const behavior = up({ policies: [pods(4)] })
  t.match(limited(10, 30, { behavior }), { replicas: 14, scalingLimited: { reason: 'ScaleUpLimit' } })
  const scaled = afterScaling(nothing, 10, 14, 0)
  t.same(scaled, { ...nothing, ups: [{ change: 4, atMs: 0 }] })
  t.match(limited(14, 30, { behavior, history: scaled, nowMs: 59_999 }), { replicas: 14 })
  t.match(limited(14, 30, { behavior, history: scaled, nowMs: 60_000 }), { replicas: 18 })
  const back = afterScaling(scaled, 14, 12, 1000)
  t.same(back.downs, [{ change: 2, atMs: 1000 }])
  t.match(
    limited(12, 30, { behavior, history: back, nowMs: 2000 }),
    { replicas: 14 },
    'four above the ten at the start',
  )
  t.match(limited(12, 30, { behavior: up({ policies: [pods(1)] }), history: scaled }), { replicas: 12 }, 'never down')
})

test('percents are rounded so that something can change', async (t) => {
  t.match(limited(1, 9, { behavior: up({ policies: [percent(10)] }) }), { replicas: 2 })
  t.match(limited(9, 1, { behavior: down({ policies: [percent(10)] }) }), {
    replicas: 8,
    scalingLimited: { reason: 'ScaleDownLimit', message: /decreasing faster/ },
  })
})

test('of several policies the one with the most change is taken, or the one with the least, or none', async (t) => {
  const policies = [pods(4), percent(100)]
  const upTo = (current: number, selectPolicy: string) =>
    limited(current, 90, { behavior: up({ policies, selectPolicy }) }).replicas
  t.same([upTo(10, 'Max'), upTo(10, 'Min'), upTo(10, 'Disabled'), upTo(2, 'Max')], [20, 14, 10, 6])
  const less = [pods(4), percent(50)]
  const downTo = (selectPolicy: string) => limited(20, 1, { behavior: down({ policies: less, selectPolicy }) }).replicas
  t.same([downTo('Max'), downTo('Min'), downTo('Disabled')], [10, 16, 20])
})

test('what changed long ago is forgotten', async (t) => {
  const old = afterScaling(afterScaling(nothing, 1, 2, 0), 5, 3, 0)
  t.equal(afterScaling(old, 2, 4, 30 * minute - 1).ups.length, 2)
  const later = 30 * minute
  t.same(afterScaling(old, 2, 4, later), { recommendations: [], ups: [{ change: 2, atMs: later }], downs: old.downs })
  t.same(afterScaling(old, 4, 3, later).downs, [{ change: 1, atMs: later }])
})
