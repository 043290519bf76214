import { test } from 'tap'
import type { FlowSchema } from '../../../../api/flow-control/flow-schema.ts'
import { standardFlowSchemas } from '../../../../api/flow-control/standard-objects.ts'
import { problemText } from '../../../../api/problem.ts'
import { causes, create } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { flowSchemaStrategy } from './flow-schema.ts'

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
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

test('the precedence of a schema is 1000 where its author names none', async (t) => {
  const precedence = (spec?: FlowSchema['spec']) =>
    flowSchemaStrategy.withDefaults?.({ ...flow(), spec }).spec?.matchingPrecedence
  t.equal(precedence(), 1000)
  t.equal(precedence({ matchingPrecedence: 0 }), 1000)
  t.equal(precedence({ matchingPrecedence: 7 }), 7)
})

test('the schemas that every request falls into at last stay as they are', async (t) => {
  const changed = (name: string, more: FlowSchema['spec']) => {
    const one = standardFlowSchemas.find(({ metadata }) => metadata.name === name)
    if (one === undefined) return [`${name} does not exist`]
    return (flowSchemaStrategy.validateUpdate?.(one, { ...one, spec: { ...one.spec, ...more } }) ?? []).map(problemText)
  }
  for (const name of ['exempt', 'catch-all']) {
    t.same(changed(name, {}), [])
    t.match(changed(name, { priorityLevelConfiguration: { name: 'mine' } }), [
      new RegExp(`^spec: Invalid value: .*: spec of '${name}' must equal the fixed value$`),
    ])
  }
  t.same(changed('system-nodes', { matchingPrecedence: 501 }), [], 'others may change')
})

test('the table shows how a schema separates flows, and whether its level exists', async (t) => {
  const cells = (more: FlowSchema['spec'], status?: FlowSchema['status']) =>
    flowSchemaStrategy.table.cells({ ...flow(more), ...(status && { status }) }, 0)
  t.same(cells({ matchingPrecedence: 7 }), ['mine', 'mine', 7, '<none>', '<unknown>', '?'])
  t.equal(cells({ distinguisherMethod: { type: 'ByUser' } })[3], 'ByUser')
  const conditions = [{ type: 'Dangling', status: 'True' }] as const
  t.equal(cells({}, { conditions })[5], 'True')
})
