import { test } from 'tap'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import { causes, create, update } from '../../testing/admitting.ts'
import { podDisruptionBudgetStrategy } from './pod-disruption-budget.ts'

type Spec = NonNullable<PodDisruptionBudget['spec']>

const selector = { matchLabels: { app: 'web' } }
const aBudget = (spec: Partial<Spec> = {}, more: Partial<PodDisruptionBudget> = {}): PodDisruptionBudget => ({
  ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  metadata: { name: 'half', namespace: 'default' },
  spec: { minAvailable: '50%', selector, ...spec },
  ...more,
})
const asks = (spec: Spec): PodDisruptionBudget => ({ ...aBudget(), spec })
const percent = "a valid percent string must be a numeric string followed by an ending '%'"

test('a budget is a number or a percentage of pods, of those that it must keep or of those that may be missing', async (t) => {
  for (const [what, budget, problems] of [
    ['pods that it keeps', asks({ minAvailable: 0, selector }), []],
    ['a part that it keeps', asks({ minAvailable: '100%', selector }), []],
    ['pods that may be missing', asks({ maxUnavailable: 3, selector }), []],
    ['a part that may be missing', asks({ maxUnavailable: '0%', selector }), []],
    ['neither', asks({ selector }), []],
    ['fewer than none', asks({ minAvailable: -1, selector }), ['spec.minAvailable: -1 0']],
    ['fewer than none may be missing', asks({ maxUnavailable: -1, selector }), ['spec.maxUnavailable: -1 0']],
    ['more than all', asks({ minAvailable: '101%', selector }), ['spec.minAvailable: "101%" 100%']],
    ['more than all may be missing', asks({ maxUnavailable: '101%', selector }), ['spec.maxUnavailable: "101%" 100%']],
    ['a word', asks({ minAvailable: 'half', selector }), ['spec.minAvailable: "half"']],
    ['a number as a text', asks({ maxUnavailable: '3', selector }), ['spec.maxUnavailable: "3"']],
    ['a negative part', asks({ maxUnavailable: '-5%', selector }), ['spec.maxUnavailable: "-5%"']],
    ['a fraction', asks({ minAvailable: '12.5%', selector }), ['spec.minAvailable: "12.5%"']],
  ] as const) {
    const expected = problems.map((problem) => {
      const [field = '', value = '', bound] = problem.split(' ')
      if (bound === undefined) return `${field} Invalid value: ${value}: ${percent}`
      const limit = bound === '0' ? 'must be greater than or equal to 0' : `must not be greater than ${bound}`
      return `${field} Invalid value: ${value}: ${limit}`
    })
    t.same(
      causes(() => create('poddisruptionbudgets', budget)),
      expected,
      what,
    )
  }
})

test('a budget does not have both limits, also when each of them is fine', async (t) => {
  const both = asks({ minAvailable: 1, maxUnavailable: 1, selector })
  const found = causes(() => create('poddisruptionbudgets', both))
  t.equal(found.length, 1)
  t.match(found[0], /^spec: Invalid value: .*: minAvailable and maxUnavailable cannot be both set$/)
  const wrong = asks({ minAvailable: -1, maxUnavailable: 'all', selector })
  t.equal(causes(() => create('poddisruptionbudgets', wrong)).length, 3, 'each limit is judged besides')
})

test('a budget that selects all pods of its namespace or none is fine, and one whose selector cannot be read is not', async (t) => {
  const wrong = (selects: Spec['selector']) =>
    causes(() => create('poddisruptionbudgets', asks({ minAvailable: 1, ...(selects && { selector: selects }) })))
  t.same(wrong(undefined), [], 'no pod')
  t.same(wrong({}), [], 'every pod')
  t.same(wrong({ matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'api'] }] }), [])
  t.same(wrong({ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }), [])
  for (const [what, selects] of [
    ['a key', { matchLabels: { 'not a key': 'x' } }],
    ['a value', { matchLabels: { app: 'not a value' } }],
    ['an operator', { matchExpressions: [{ key: 'app', operator: 'Like', values: ['w'] }] }],
    ['an operator of nodes', { matchExpressions: [{ key: 'app', operator: 'Gt', values: ['1'] }] }],
    ['no values', { matchExpressions: [{ key: 'app', operator: 'In', values: [] }] }],
    ['values too many', { matchExpressions: [{ key: 'app', operator: 'Exists', values: ['w'] }] }],
  ] as const) {
    const found = wrong(selects)
    t.equal(found.length, 1, what)
    t.match(found[0], /^spec\.selector: Invalid value: /, what)
  }
})

test('an update is judged as a new budget is, and may change its limits and its pods', async (t) => {
  const old = create('poddisruptionbudgets', aBudget())
  const change = (spec: Spec) => causes(() => update('poddisruptionbudgets', old, { ...old, spec }))
  t.same(change({ maxUnavailable: 1, selector: { matchLabels: { app: 'api' } } }), [])
  t.same(change({ minAvailable: -1, selector }), [
    'spec.minAvailable: Invalid value: -1: must be greater than or equal to 0',
  ])
  t.match(change({ minAvailable: 1, maxUnavailable: 1, selector }), [/cannot be both set/])
})

test('the author of a new budget does not write its status', async (t) => {
  const status = { disruptionsAllowed: 9, currentHealthy: 9, desiredHealthy: 0, expectedPods: 9 }
  t.notMatch(create('poddisruptionbudgets', aBudget({}, { status })), { status: { disruptionsAllowed: 9 } })
})

test('the table shows the limit that is set and how many pods may go now', async (t) => {
  const born = { name: 'half', creationTimestamp: '1970-01-01T00:00:00Z' }
  const status = { disruptionsAllowed: 2, currentHealthy: 4, desiredHealthy: 2, expectedPods: 4 }
  const cellsOf = (budget: PodDisruptionBudget) =>
    podDisruptionBudgetStrategy.table.cells({ ...budget, metadata: born }, 60_000)
  t.same(cellsOf(aBudget({}, { status })), ['half', '50%', 'N/A', 2, '60s'])
  t.same(cellsOf(asks({ maxUnavailable: 1, selector })), ['half', 'N/A', '1', 0, '60s'])
})
