import { test } from 'tap'
import type { FlowSchema } from '../../../../api/flow-control/flow-schema.ts'
import type { PriorityLevelConfiguration } from '../../../../api/flow-control/priority-level-configuration.ts'
import { standardFlowSchemas, standardPriorityLevels } from '../../../../api/flow-control/standard-objects.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
const level = (spec: PriorityLevelConfiguration['spec']): PriorityLevelConfiguration => ({
  apiVersion,
  kind: 'PriorityLevelConfiguration',
  metadata: { name: 'mine' },
  spec,
})
const flow = (more: FlowSchema['spec'] = {}): FlowSchema => ({
  apiVersion,
  kind: 'FlowSchema',
  metadata: { name: 'mine' },
  spec: {
    priorityLevelConfiguration: { name: 'mine' },
    rules: [
      {
        subjects: [{ kind: 'User', user: { name: 'eve' } }],
        nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
      },
    ],
    ...more,
  },
})

test('the standard levels and schemas are valid, and the mandatory ones stay as they are', async (t) => {
  for (const one of standardPriorityLevels) {
    const made = create('prioritylevelconfigurations', one)
    t.same(made.spec, one.spec, `${one.metadata.name}`)
  }
  for (const one of standardFlowSchemas) t.same(create('flowschemas', one).spec, one.spec, `${one.metadata.name}`)
  const [exempt] = standardFlowSchemas
  if (exempt === undefined) return t.fail('no schema')
  t.match(
    causes(() => update('flowschemas', exempt, { ...exempt, spec: { ...exempt.spec, rules: [] } })),
    [/^spec: Invalid value: .*: spec of 'exempt' must equal the fixed value$/],
  )
})

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

test('a flow schema is checked in the words of Kubernetes', async (t) => {
  const wrong = (more: FlowSchema['spec']) => causes(() => create('flowschemas', flow(more)))
  t.match(create('flowschemas', flow()), { spec: { matchingPrecedence: 1000 } })
  t.same(wrong({ matchingPrecedence: 1 }), [
    "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
  ])
  t.same(wrong({ rules: [{}] }), [
    'spec.rules[0].subjects: Required value: subjects must contain at least one value',
    'spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty',
  ])
  const subjects = [{ kind: 'Group', user: { name: 'eve' } }]
  const nonResourceRules = [{ verbs: ['see'], nonResourceURLs: ['healthz'] }]
  t.match(wrong({ rules: [{ subjects, nonResourceRules }] }), [
    "spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'",
    "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
    /^spec.rules\[0\].nonResourceRules\[0\].verbs: Unsupported value: \["see"\]/,
    'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "healthz": must start with slash',
  ])
})

test('a flow schema has a status of its own', async (t) => {
  const { ask } = await anApi(t)
  const path = `/apis/${apiVersion}/flowschemas`
  t.match(await ask('POST', path, { body: flow() }), { code: 201 })
  const status = { conditions: [{ type: 'Dangling', status: 'False' }] }
  const patched = await ask('PATCH', `${path}/mine/status`, { type: patchTypes.merge, body: { status } })
  t.match(patched, { code: 200, body: { status } })
  const { body } = await ask('GET', path, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.match(body, { rows: [{ cells: ['mine', 'mine', 1000, '<none>', String, 'False'] }] })
})
