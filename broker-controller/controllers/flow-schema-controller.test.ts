import { test } from 'tap'
import type { FlowSchema } from '../../api/flow-control/flow-schema.ts'
import { fleet } from '../testing/fleet.ts'
import { flowSchemaController, statusAfter } from './flow-schema-controller.ts'

const apiVersion = 'flowcontrol.apiserver.k8s.io/v1'
const schema = (level: string): FlowSchema => ({
  apiVersion,
  kind: 'FlowSchema',
  metadata: { name: 'mine' },
  spec: { priorityLevelConfiguration: { name: level } },
})
const now = '2026-01-01T00:00:00Z'

test('a FlowSchema is dangling while the level that it names is missing', async (t) => {
  const world = fleet(t)
  t.teardown(world.start(flowSchemaController(world)))
  const dangling = async () => {
    await world.pass(1)
    const found = await world.store.get('flowschemas', { namespace: '', name: 'mine' })
    return found?.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)
  }
  await world.store.create('flowschemas', schema('later'))
  t.same(await dangling(), ['Dangling True NotFound'])
  await world.store.create('prioritylevelconfigurations', {
    apiVersion,
    kind: 'PriorityLevelConfiguration',
    metadata: { name: 'later' },
    spec: { type: 'Limited' },
  })
  t.same(await dangling(), ['Dangling False Found'])
  await world.store.delete('prioritylevelconfigurations', { namespace: '', name: 'later' })
  t.same(await dangling(), ['Dangling True NotFound'])
})

test('the condition has the words of Kubernetes, and is written only when it changes', async (t) => {
  const status = statusAfter(schema('a'), true, now)
  const message = 'This FlowSchema references the PriorityLevelConfiguration object named "a" and it exists'
  t.same(status?.conditions, [{ type: 'Dangling', status: 'False', reason: 'Found', message, lastTransitionTime: now }])
  t.equal(statusAfter({ ...schema('a'), ...(status && { status }) }, true, now), undefined)
  const foreign = { type: 'Mine', status: 'True' }
  const missing = statusAfter({ ...schema('a'), status: { conditions: [foreign] } }, false, now)
  t.match(missing?.conditions, [foreign, { status: 'True', message: /but there is no such object$/ }])
})
