import { test } from 'tap'
import type { NodeSelectorTerm, PodAffinityTerm, PodSpec, TopologySpreadConstraint } from '../../api/pod.ts'
import { problemText } from '../../api/problem.ts'
import { schedulingProblems } from '../../api/validation/scheduling-validation.ts'
import { gateChangeProblems, narrowingProblems } from './pod-change.ts'

const wrong = (spec: Partial<PodSpec>) =>
  schedulingProblems({ containers: [], ...spec }).map((problem) => problemText(problem).replace('spec.', ''))

const requiring = (...nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
})

test('terms for nodes are checked expression by expression', async (t) => {
  const at = 'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  t.same(wrong(requiring()), [`${at}: Required value: must have at least one node selector term`])
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
  t.same(wrong(requiring(term)), [
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

test('spreading asks for a positive skew, a key, a word we know, and each once', async (t) => {
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

test('gates have names, hold off a node, and only open; meanwhile a pod may only become choosier', async (t) => {
  const gated = (...names: string[]): PodSpec => ({ containers: [], schedulingGates: names.map((name) => ({ name })) })
  t.same(
    wrong({ ...gated('a', 'a', 'not this'), nodeName: 'pi-1' }).map((text) => text.slice(0, text.indexOf(':'))),
    ['schedulingGates[1]', 'schedulingGates[2]', 'nodeName'],
  )
  t.same(gateChangeProblems(gated('a', 'b'), gated('b')), [])
  t.same(gateChangeProblems(gated('a'), gated('a', 'x')).map(problemText), [
    "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x'",
  ])
  const asking = (...values: string[]): NodeSelectorTerm => ({
    matchExpressions: values.map((value) => ({ key: 'place', operator: 'In', values: [value] })),
  })
  const with_ = (spec: Partial<PodSpec>): PodSpec => ({ containers: [], ...spec })
  const fields = (old: Partial<PodSpec>, now: Partial<PodSpec>) =>
    narrowingProblems(with_(old), with_(now)).map(({ field }) => field.replace(/.*nodeSelectorTerms/, 'terms'))
  t.same(fields({ nodeSelector: { a: '1' } }, { nodeSelector: { a: '1', b: '2' } }), [])
  t.same(fields({ nodeSelector: { a: '1' } }, { nodeSelector: { b: '2' } }), ['spec.nodeSelector'])
  t.same(fields({}, requiring(asking('roof'))), [])
  t.same(fields(requiring(asking('roof')), requiring(asking('roof', 'warm'))), [])
  t.same(fields(requiring(asking('roof')), requiring(asking('cellar'))), ['terms[0]'])
  t.same(fields(requiring(asking('roof')), requiring(asking('roof'), asking('cellar'))), ['terms'])
  t.same(fields(requiring(asking('roof')), {}), ['terms'])
})
