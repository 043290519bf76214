import { test } from 'tap'
import type { NodeSelectorTerm, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../pod.ts'
import { problemText } from '../problem.ts'
import { requiringNodes } from '../testing/builders.ts'
import { policyProblems, schedulingProblems } from './scheduling-validation.ts'

const wrong = (spec: Partial<PodSpec>) =>
  schedulingProblems('spec', { containers: [], ...spec }).map((problem) => problemText(problem).replace('spec.', ''))

test('terms for nodes are checked expression by expression', async (t) => {
  const at = 'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  t.same(wrong(requiringNodes()), [`${at}: Required value: must have at least one node selector term`])
  const term: NodeSelectorTerm = {
    matchExpressions: [
      { key: 'ok', operator: 'Gt', values: ['1'] },
      { key: 'a', operator: 'In' },
      { key: 'a', operator: 'Exists', values: ['x'] },
      { key: 'a', operator: 'Lt', values: ['1', '2'] },
      { key: 'a', operator: 'Like' },
    ],
    matchFields: [
      { key: 'metadata.name', operator: 'In', values: ['pi-1'] },
      { key: 'metadata.uid', operator: 'In', values: ['a', 'b'] },
    ],
  }
  t.same(wrong(requiringNodes(term)), [
    `${at}[0].matchExpressions[1].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
    `${at}[0].matchExpressions[2].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
    `${at}[0].matchExpressions[3].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
    `${at}[0].matchExpressions[4].operator: Invalid value: "Like": not a valid selector operator`,
    `${at}[0].matchFields[1].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
    `${at}[0].matchFields[1].key: Invalid value: "metadata.uid": not a valid field selector key`,
  ])
})

test('terms for pods need a topology key, a weight from 1 to 100 and a selector for their label keys', async (t) => {
  const at = 'affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution'
  const near = (term: Partial<PodAffinityTerm>, weight = 1): Partial<PodSpec> => ({
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', ...term } },
        ],
      },
    },
  })
  t.same(wrong(near({ labelSelector: { matchLabels: { app: 'web' } }, matchLabelKeys: ['version'] })), [])
  t.same(wrong(near({ topologyKey: '' }, 101)), [
    `${at}[0].weight: Invalid value: 101: must be in the range 1-100`,
    `${at}[0].podAffinityTerm.topologyKey: Required value: can not be empty`,
  ])
  t.same(wrong(near({ mismatchLabelKeys: ['version'] })), [
    `${at}[0].podAffinityTerm.mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
  ])
  t.same(
    wrong(near({ labelSelector: {}, matchLabelKeys: ['a'], mismatchLabelKeys: ['a'], namespaces: ['No'] })).length,
    2,
  )
})

test('spreading asks for a positive skew, a key, a supported action, and each topology key once', async (t) => {
  const spread = (over: Partial<TopologySpreadConstraint>): TopologySpreadConstraint => ({
    maxSkew: 1,
    topologyKey: 'zone',
    whenUnsatisfiable: 'DoNotSchedule',
    ...over,
  })
  const problems = (...topologySpreadConstraints: TopologySpreadConstraint[]) => wrong({ topologySpreadConstraints })
  const at = 'topologySpreadConstraints[0]'
  t.same(problems(spread({ minDomains: 2, nodeTaintsPolicy: 'Honor' })), [])
  t.same(problems(spread({ maxSkew: 0, minDomains: 0 })), [
    `${at}.maxSkew: Invalid value: 0: must be greater than zero`,
    `${at}.minDomains: Invalid value: 0: must be greater than zero`,
  ])
  t.same(problems(spread({ whenUnsatisfiable: 'ScheduleAnyway', minDomains: 1 })), [
    `${at}.minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway`,
  ])
  t.same(problems(spread({ whenUnsatisfiable: 'Perhaps', nodeAffinityPolicy: 'Maybe' })), [
    `${at}.whenUnsatisfiable: Unsupported value: "Perhaps": supported values: "DoNotSchedule", "ScheduleAnyway"`,
    `${at}.nodeAffinityPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"`,
  ])
  t.same(problems(spread({}), spread({})), [
    'topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"',
  ])
  t.same(problems(spread({ matchLabelKeys: ['app'], labelSelector: { matchLabels: { app: 'web' } } })), [
    `${at}.matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector`,
  ])
})

test('gates have names, and hold off a node', async (t) => {
  const schedulingGates = ['a', 'a', 'not this'].map((name) => ({ name }))
  const fields = wrong({ schedulingGates, nodeName: 'pi-1' }).map((text) => text.slice(0, text.indexOf(':')))
  t.same(fields, ['schedulingGates[1]', 'schedulingGates[2]', 'nodeName'])
})

test('what a pod or a class may preempt is one of two words', async (t) => {
  const problems = (policy: string) => policyProblems('preemptionPolicy', policy).map(problemText)
  t.same([problems('Never'), problems('PreemptLowerPriority')], [[], []])
  t.same(problems(''), ['preemptionPolicy: Required value'])
  t.same(problems('Always'), [
    'preemptionPolicy: Unsupported value: "Always": supported values: "Never", "PreemptLowerPriority"',
  ])
  t.same(wrong({ preemptionPolicy: 'Always' }).length, 1)
})

test('preferred nodes have a weight, and a field of a node is compared with one name', async (t) => {
  const at = 'affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution'
  const preferring = (weight: number, ...matchFields: NonNullable<NodeSelectorTerm['matchFields']>) =>
    wrong({
      affinity: {
        nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight, preference: { matchFields } }] },
      },
    })
  const name = { key: 'metadata.name', operator: 'In', values: ['pi-1'] }
  for (const weight of [1, 100]) t.same(preferring(weight, name, { ...name, operator: 'NotIn' }), [])
  for (const weight of [0, 101]) {
    t.same(preferring(weight, name), [`${at}[0].weight: Invalid value: ${weight}: must be in the range 1-100`])
  }
  const field = `${at}[0].preference.matchFields[0]`
  t.same(preferring(1, { ...name, operator: 'Exists' }), [
    `${field}.operator: Invalid value: "Exists": not a valid selector operator`,
  ])
  t.same(preferring(1, { ...name, operator: 'NotIn', values: [] }), [
    `${field}.values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
  ])
  t.match(preferring(1, { ...name, values: ['Pi_1'] }), [/matchFields\[0\]\.values\[0\]: Invalid value: "Pi_1"/])
})

test('values for nodes are those of labels where they are required, and free where they are preferred', async (t) => {
  const term = { matchExpressions: [{ key: 'size', operator: 'Gt', values: ['-5'] }] }
  const named = { matchExpressions: [{ key: 'size', operator: 'In', values: ['not a label!'] }] }
  t.match(wrong(requiringNodes(term)), [
    /nodeSelectorTerms\[0\].matchExpressions\[0\].values\[0\]: Invalid value: "-5"/,
  ])
  const preferred = [term, named].map((preference) => ({ weight: 1, preference }))
  const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preferred }
  t.same(wrong({ affinity: { nodeAffinity } }), [])
})

test('a key of matchLabelKeys is not selected by as well', async (t) => {
  const added = { key: 'app', operator: 'In', values: ['web'] }
  const spec = (labelSelector: PodAffinityTerm['labelSelector']): Partial<PodSpec> => {
    const term = { topologyKey: 'zone', matchLabelKeys: ['tier', 'app'], ...(labelSelector && { labelSelector }) }
    return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }
  }
  t.same(wrong(spec({ matchExpressions: [added] })), [])
  const both =
    /requiredDuringSchedulingIgnoredDuringExecution\[0\]\[1\]: .* exists in both matchLabelKeys and labelSelector$/
  t.match(wrong(spec({ matchLabels: { app: 'web' }, matchExpressions: [added] })), [both])
  t.match(wrong(spec({ matchExpressions: [added, added] })), [both])
})
