import { test } from 'tap'
import type { PodAffinityTerm, PodSpec } from '../pod.ts'
import { problemText } from '../problem.ts'
import { mostSchedulingTerms, mostTermRequirements, schedulingExcesses } from './scheduling-terms.ts'

const many = <T>(count: number, item: (number: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, number) => item(number))
const excesses = (spec: Partial<PodSpec>) => schedulingExcesses('spec', { containers: [], ...spec }).map(problemText)
const term: PodAffinityTerm = { topologyKey: 'zone', labelSelector: {} }
const weighted = { weight: 1, podAffinityTerm: term }

test('terms for pods are counted over all four lists', async (t) => {
  const affinity = (count: number): PodSpec['affinity'] => ({
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: many(count - 3, () => term),
      preferredDuringSchedulingIgnoredDuringExecution: [weighted],
    },
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [term],
      preferredDuringSchedulingIgnoredDuringExecution: [weighted],
    },
  })
  t.same(excesses({ affinity: affinity(mostSchedulingTerms) }), [])
  t.same(excesses({ affinity: affinity(2_700) }), [
    'spec.affinity: Too many: 2700: must have at most 64 terms in podAffinity and podAntiAffinity',
  ])
})

test('terms for nodes and spread constraints have a bound each', async (t) => {
  const preference = { matchExpressions: [{ key: 'ssd', operator: 'Exists' }] }
  const nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [preference] },
    preferredDuringSchedulingIgnoredDuringExecution: many(64, () => ({ weight: 1, preference })),
  }
  const constraint = (number: number) =>
    ({ topologyKey: `k${number}`, maxSkew: 1, whenUnsatisfiable: 'ScheduleAnyway' }) as const
  t.same(excesses({ affinity: { nodeAffinity }, topologySpreadConstraints: many(65, constraint) }), [
    'spec.affinity.nodeAffinity: Too many: 65: must have at most 64 terms',
    'spec.topologySpreadConstraints: Too many: 65: must have at most 64 items',
  ])
})

test('selectors with many requirements cost as much as many terms', async (t) => {
  const labelSelector = { matchExpressions: many(mostTermRequirements, (n) => ({ key: `k${n}`, operator: 'Exists' })) }
  const asking = (more: Partial<PodAffinityTerm>): PodSpec['affinity'] => ({
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', labelSelector, ...more }],
    },
  })
  const text = 'spec.affinity: Too many: 257: must have at most 256 requirements in the selectors of its terms'
  t.same(excesses({ affinity: asking({}) }), [])
  t.same(excesses({ affinity: asking({ namespaceSelector: { matchLabels: { a: 'b' } } }) }), [text])
  t.same(excesses({ affinity: asking({ matchLabelKeys: ['a'] }) }), [text])
})
