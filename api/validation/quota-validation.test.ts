import { test } from 'tap'
import type { ResourceQuota, ResourceQuotaSpec } from '../limits/resource-quota.ts'
import { problemText } from '../problem.ts'
import { quotaChangeProblems, quotaProblems, quotaStatusProblems } from './quota-validation.ts'

const quota = (spec: ResourceQuotaSpec): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'mine' },
  spec,
})
const problems = (spec: ResourceQuotaSpec) => quotaProblems(quota(spec)).map(problemText)
const selecting = (scopeName: string, operator: string, values?: readonly string[]): ResourceQuotaSpec => ({
  scopeSelector: { matchExpressions: [{ scopeName, operator, ...(values && { values }) }] },
})
const expressions = 'spec.scopeSelector.matchExpressions'

test('a quota bounds the standard resources, and any with a prefix', async (t) => {
  const standard = ['cpu', 'limits.memory', 'requests.storage', 'pods', 'services.nodeports', 'configmaps']
  const others = ['count/widgets.example.com', 'requests.example.com/camera', 'requests.hugepages-2Mi']
  t.same(problems({ hard: Object.fromEntries([...standard, ...others].map((name) => [name, '1'])) }), [])
  const unknown = 'must be a standard resource type or fully qualified'
  t.same(problems({ hard: { fish: '1' } }), [
    `spec.hard[fish]: Invalid value: "fish": ${unknown}`,
    'spec.hard[fish]: Invalid value: "fish": must be a standard resource for quota',
  ])
  t.same(problems({ hard: { storage: '1' } }), [
    'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
  ])
  t.same(
    quotaStatusProblems({ ...quota({}), status: { hard: { pods: '0' }, used: { pods: '-1' } } }).map(problemText),
    ['status.used[pods]: Invalid value: "-1": must be greater than or equal to 0'],
  )
})

test('amounts are not negative, and objects are counted whole', async (t) => {
  t.same(problems({ hard: { cpu: '-1', pods: '0' } }), [
    'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
  ])
  t.same(problems({ hard: { pods: '500m', cpu: '500m' } }), [
    'spec.hard[pods]: Invalid value: "500m": must be an integer',
  ])
  t.match(problems({ hard: { 'count/pods': '1500m' } }), [/must be an integer$/])
})

test('a scope bounds pods and what they compute with', async (t) => {
  t.same(problems({ hard: { pods: '1', cpu: '1', 'limits.memory': '1' }, scopes: ['NotBestEffort'] }), [])
  const applied = (scope: string, name: string) => problems({ hard: { [name]: '1' }, scopes: [scope] })
  const refused = (scope: string) => [`spec.scopes: Invalid value: ["${scope}"]: unsupported scope applied to resource`]
  t.same(applied('BestEffort', 'pods'), [])
  t.same(applied('BestEffort', 'cpu'), refused('BestEffort'))
  t.same(applied('Terminating', 'secrets'), refused('Terminating'))
  t.same(applied('Terminating', 'count/secrets'), [], 'a name with a prefix is not a standard one')
  t.same(applied('Bad', 'secrets'), ['spec.scopes: Invalid value: ["Bad"]: unsupported scope'])
  t.same(problems({ scopes: ['BestEffort', 'NotBestEffort'] }), [
    'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
  ])
  t.match(problems({ scopes: ['NotTerminating', 'Terminating'] }), [/conflicting scopes$/])
})

test('a selector of scopes has an operator and the values that it needs', async (t) => {
  t.same(problems(selecting('PriorityClass', 'In', ['high'])), [])
  t.same(problems(selecting('PriorityClass', 'DoesNotExist')), [])
  t.same(problems(selecting('CrossNamespacePodAffinity', 'Exists')), [])
  t.match(problems(selecting('BestEffort', 'In', ['a'])), [
    /^spec.scopeSelector.matchExpressions.operator: .*must be 'Exists' when scope is any of/,
  ])
  for (const operator of ['In', 'NotIn']) {
    t.same(problems(selecting('PriorityClass', operator)), [
      `${expressions}.values: Required value: must be at least one value when \`operator\` is 'In' or 'NotIn' for scope selector`,
    ])
  }
  for (const operator of ['Exists', 'DoesNotExist']) {
    t.match(problems(selecting('PriorityClass', operator, ['a'])), [
      /\.values: Invalid value: \["a"\]: must be no value when/,
    ])
  }
  t.same(problems(selecting('PriorityClass', 'Like')), [
    `${expressions}.operator: Invalid value: "Like": not a valid selector operator`,
  ])
  t.same(problems(selecting('Bad', 'Exists')), [`${expressions}.scopeName: Invalid value: "Bad": unsupported scope`])
  t.match(problems({ ...selecting('PriorityClass', 'Exists'), hard: { secrets: '1' } }), [
    /unsupported scope applied to resource$/,
  ])
  const both = [
    { scopeName: 'Terminating', operator: 'Exists' },
    { scopeName: 'NotTerminating', operator: 'Exists' },
  ]
  t.same(problems({ scopeSelector: { matchExpressions: both } }), [
    `${expressions}: Invalid value: []: conflicting scopes`,
  ])
})

test('the scopes of a quota stay, in any order', async (t) => {
  const change = (before: readonly string[], after: readonly string[]) =>
    quotaChangeProblems(quota({ scopes: before }), quota({ scopes: after })).map(problemText)
  t.same(change(['BestEffort', 'Terminating'], ['Terminating', 'BestEffort']), [])
  t.same(change(['BestEffort'], ['Terminating']), ['spec.scopes: Invalid value: ["Terminating"]: field is immutable'])
  t.same(change(['BestEffort'], []), ['spec.scopes: Invalid value: []: field is immutable'])
  t.same(quotaChangeProblems(quota({}), quota({ hard: { pods: '-1' } })).length, 1)
})

test('a quota has at most a thousand resources', async (t) => {
  const hard = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`count/a${i}.example.com`, 1]))
  t.same(problems({ hard: hard(1000) }), [])
  t.same(problems({ hard: hard(1001) }), ['spec.hard: Too many: 1001: must have at most 1000 items'])
})
