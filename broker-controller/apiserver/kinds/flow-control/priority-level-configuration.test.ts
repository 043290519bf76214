import { test } from 'tap'
import type { PriorityLevelConfiguration } from '../../../../api/flow-control/priority-level-configuration.ts'
import { standardPriorityLevels } from '../../../../api/flow-control/standard-objects.ts'
import { problemText } from '../../../../api/problem.ts'
import { causes, create } from '../../../testing/admitting.ts'
import { priorityLevelConfigurationStrategy } from './priority-level-configuration.ts'

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
const level = (spec: PriorityLevelConfiguration['spec']): PriorityLevelConfiguration => ({
  apiVersion,
  kind: 'PriorityLevelConfiguration',
  metadata: { name: 'mine' },
  spec,
})
const strategy = priorityLevelConfigurationStrategy

test('a level is checked in the words of Kubernetes', async (t) => {
  const wrong = (spec: PriorityLevelConfiguration['spec']) =>
    causes(() => create('prioritylevelconfigurations', level(spec)))
  t.same(wrong({ type: 'Limited', limited: { limitResponse: { type: 'Reject' } } }), [])
  t.same(wrong({ type: 'Limited' }), ['spec.limited: Required value: must not be empty when type is Limited'])
  t.same(wrong({ type: 'Exempt' }), [
    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
  ])
  const queue = (queues: number, handSize: number) =>
    wrong({ type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: { queues, handSize } } } })
  t.same(queue(64, 8), [])
  t.match(queue(8, 9), [/handSize: Invalid value: 9: should not be greater than queues \(8\)/])
  t.match(queue(10_000_000, 9_000_000), [/required entropy bits of deckSize 10000000 and handSize 9000000/])
})

test('what the author of a level leaves out has the defaults of Kubernetes', async (t) => {
  const made = (spec: PriorityLevelConfiguration['spec']) => strategy.withDefaults?.(level(spec)).spec
  t.same(made({ type: 'Limited', limited: {} }), {
    ...{ type: 'Limited', limited: { nominalConcurrencyShares: 30, lendablePercent: 0 } },
  })
  const own = { nominalConcurrencyShares: 0, lendablePercent: 50, borrowingLimitPercent: 10 }
  t.same(made({ type: 'Limited', limited: own }), { type: 'Limited', limited: own })
  t.same(made({ type: 'Exempt', exempt: {} }), {
    ...{ type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  })
  const queuing = (given: object) =>
    made({ type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: given } } })?.limited?.limitResponse
      ?.queuing
  t.same(queuing({}), { queues: 64, handSize: 8, queueLengthLimit: 50 })
  t.same(queuing({ queues: 16, handSize: 4 }), { queues: 16, handSize: 4, queueLengthLimit: 50 })
  const zeros = { queues: 0, handSize: 0, queueLengthLimit: 0 }
  t.same(queuing(zeros), { queues: 64, handSize: 8, queueLengthLimit: 50 }, 'Go clients send what is not set')
  t.same(strategy.withDefaults?.(level(undefined)), level(undefined))
})

test('the levels that every request can fall back to stay as they are', async (t) => {
  const problems = (name: string, change: Partial<NonNullable<PriorityLevelConfiguration['spec']>> = {}) => {
    const one = standardPriorityLevels.find(({ metadata }) => metadata.name === name)
    if (one === undefined) return [`${name} does not exist`]
    const spec = { type: '', ...one.spec, ...change }
    return (strategy.validateUpdate?.(one, { ...one, spec }) ?? []).map(problemText)
  }
  const reject = { limitResponse: { type: 'Reject' } }
  t.same(problems('exempt'), [])
  t.same(problems('exempt', { exempt: { nominalConcurrencyShares: 5, lendablePercent: 50 } }), [])
  t.match(problems('exempt', { type: 'Limited', limited: reject, exempt: undefined }), [
    /^spec.type: Invalid value: "Limited": must be 'Exempt' if and only if/,
    /^spec: Invalid value: .*: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value$/,
  ])
  t.same(problems('catch-all'), [])
  t.match(problems('catch-all', { limited: { ...reject, nominalConcurrencyShares: 6 } }), [
    /^spec: Invalid value: .*: spec of 'catch-all' must equal the fixed value$/,
  ])
  t.same(problems('workload-low', { limited: { ...reject, nominalConcurrencyShares: 6 } }), [], 'others may change')
})

test('the table shows the shares and the queues of a level', async (t) => {
  const cells = (spec?: PriorityLevelConfiguration['spec']) => strategy.table.cells(level(spec), 0)
  const none = '<none>'
  t.same(cells(), ['mine', '', none, none, none, none, '<unknown>'])
  t.same(cells({ type: 'Exempt', exempt: { nominalConcurrencyShares: 5 } }).slice(1, 6), [
    'Exempt',
    none,
    none,
    none,
    none,
  ])
  t.same(
    cells({ type: 'Limited', limited: { nominalConcurrencyShares: 0, limitResponse: { type: 'Reject' } } }).slice(1, 6),
    [...['Limited', 0, none, none, none]],
  )
  const queuing = { queues: 64, handSize: 8, queueLengthLimit: 50 }
  const limited = { nominalConcurrencyShares: 30, limitResponse: { type: 'Queue', queuing } }
  t.same(cells({ type: 'Limited', limited }).slice(1, 6), ['Limited', 30, 64, 8, 50])
})
