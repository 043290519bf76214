import { test } from 'tap'
import type { PodAffinityTerm } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { withMatchLabelKeys } from './match-label-keys.ts'

const labels = { version: '2', team: 'red' }
const labelSelector = { matchLabels: { app: 'web' } }
const term = (more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({ topologyKey: 'zone', labelSelector, ...more })

/** The one required term of an affinity after the pod's labels were added. */
const resolved = (given: PodAffinityTerm, side: 'podAffinity' | 'podAntiAffinity' = 'podAffinity') => {
  const affinity = { [side]: { requiredDuringSchedulingIgnoredDuringExecution: [given] } }
  return withMatchLabelKeys(aPod({ labels, spec: { affinity } })).affinity?.[side]
    ?.requiredDuringSchedulingIgnoredDuringExecution?.[0]
}

test('the values of the labels of a pod are added to the selectors of its terms', async (t) => {
  const keys = { matchLabelKeys: ['version'], mismatchLabelKeys: ['team'] }
  const added = [
    { key: 'version', operator: 'In', values: ['2'] },
    { key: 'team', operator: 'NotIn', values: ['red'] },
  ]
  for (const side of ['podAffinity', 'podAntiAffinity'] as const) {
    t.same(resolved(term(keys), side), term({ ...keys, labelSelector: { ...labelSelector, matchExpressions: added } }))
  }
  const own = { key: 'tier', operator: 'Exists' }
  t.same(resolved(term({ matchLabelKeys: ['version'], labelSelector: { matchExpressions: [own] } }))?.labelSelector, {
    matchExpressions: [own, added[0]],
  })
  t.same(resolved(term({ matchLabelKeys: ['version'], labelSelector: {} }))?.labelSelector, {
    matchExpressions: [added[0]],
  })
})

test('a key that the pod does not have, or a term without a selector, adds nothing', async (t) => {
  for (const keys of [{}, { matchLabelKeys: ['none', 'toString'] }, { mismatchLabelKeys: ['none'] }])
    t.same(resolved(term(keys)), term(keys))
  const bare = { topologyKey: 'zone', matchLabelKeys: ['version'] }
  t.same(resolved(bare), bare, 'it is refused')
})

test('preferred terms keep their weight, and the rest of the affinity stays', async (t) => {
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [] }
  const preferred = (labelKeys: Partial<PodAffinityTerm>) => ({
    preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 7, podAffinityTerm: term(labelKeys) }],
  })
  const pod = aPod({
    labels,
    spec: { affinity: { nodeAffinity, podAntiAffinity: preferred({ matchLabelKeys: ['version'] }) } },
  })
  const matchExpressions = [{ key: 'version', operator: 'In', values: ['2'] }]
  t.same(withMatchLabelKeys(pod).affinity, {
    nodeAffinity,
    podAntiAffinity: preferred({ matchLabelKeys: ['version'], labelSelector: { ...labelSelector, matchExpressions } }),
  })
  const only = aPod({ spec: { affinity: { nodeAffinity } } })
  t.equal(withMatchLabelKeys(only), only.spec)
  t.equal(withMatchLabelKeys(aPod()).affinity, undefined)
})
