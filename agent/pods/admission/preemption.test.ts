import { test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { podsToPreempt } from './preemption.ts'

const critical = aPod({ name: 'critical', priority: 2_000_000_000 })
const memory = (pod: Pod, resource: string) =>
  resource === 'memory' ? Number(pod.spec.containers[0]?.resources?.requests?.['memory'] ?? 0) : 0
const burstable = (name: string, requested: number, priority?: number) =>
  aPod({ name, requests: { memory: String(requested) }, ...(priority === undefined ? {} : { priority }) })
const guaranteed = (name: string, requested: number) => {
  const amounts = { cpu: '1', memory: String(requested) }
  return aPod({ name, requests: amounts, limits: amounts })
}
const chosen = (others: readonly Pod[], wanting: number, pod: Pod = critical) => {
  const answer = podsToPreempt(pod, others, new Map([['memory', wanting]]), memory)
  return answer.possible ? answer.pods.map(({ metadata }) => metadata.name) : [...answer.wanting]
}

test('the smallest pod that is enough by itself goes', async (t) => {
  t.same(chosen([burstable('much', 900), burstable('enough', 300), burstable('little', 100)], 250), ['enough'])
})

test('where none is enough the largest go first', async (t) => {
  t.same(chosen([burstable('a', 100), burstable('b', 200), burstable('c', 300)], 450), ['c', 'b'])
})

test('guaranteed pods are preempted only when the others are not enough', async (t) => {
  const others = [guaranteed('promised', 500), burstable('a', 100), burstable('b', 100)]
  t.same(chosen(others, 200), ['a', 'b'])
  t.same(chosen(others, 300), ['promised'], 'and no other pod is preempted without effect')
})

test('no pod is preempted for a pod of the same priority, or in vain', async (t) => {
  t.same(chosen([burstable('equal', 500, 5)], 100, burstable('new', 100, 5)), [['memory', 100]])
  t.same(chosen([burstable('less', 500, 4)], 100, burstable('new', 100, 5)), ['less'])
  t.same(chosen([burstable('a', 100)], 150), [['memory', 50]])
})

test('the shares of what is missing are compared, not the amounts', async (t) => {
  const asks = (name: string, cpu: number, bytes: number) =>
    aPod({ name, requests: { cpu: `${cpu}m`, memory: String(bytes) } })
  const requested = (pod: Pod, resource: string) => {
    const quantity = pod.spec.containers[0]?.resources?.requests?.[resource] ?? '0'
    return Number(String(quantity).replace('m', ''))
  }
  const names = (others: readonly Pod[], wanting: readonly (readonly [string, number])[]) => {
    const answer = podsToPreempt(critical, others, new Map(wanting), requested)
    return answer.possible && answer.pods.map(({ metadata }) => metadata.name)
  }
  const both = [asks('memory', 10, 1000), asks('half', 100, 500)]
  const wanting = [
    ['cpu', 100],
    ['memory', 1000],
  ] as const
  t.same(names(both, wanting), ['half', 'memory'])
  const [large, small] = [asks('large', 500, 200), asks('small', 100, 200)]
  t.same(names([large, small], [['memory', 100]]), ['small'], 'of two with the memory the one with less cpu')
  t.same(names([small, large], [['memory', 100]]), ['small'])
})

test('a pod that asks for nothing is left where one that asks for more is needed anyway', async (t) => {
  const others = [aPod({ name: 'idle' }), burstable('needed', 100)]
  const requested = (pod: Pod, resource: string) => (resource === 'pods' ? 1 : memory(pod, resource))
  const wanting = new Map([
    ['pods', 1],
    ['memory', 100],
  ])
  const answer = podsToPreempt(critical, others, wanting, requested)
  t.same(answer.possible && answer.pods.map(({ metadata }) => metadata.name), ['needed'])
})
