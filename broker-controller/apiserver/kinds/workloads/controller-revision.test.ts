import { test } from 'tap'
import type { ControllerRevision } from '../../../../api/workloads/controller-revision.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
import { controllerRevisionStrategy } from './controller-revision.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const revision = (more: Partial<ControllerRevision> = {}): ControllerRevision => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: { name: 'web-1', namespace: 'default' },
  data: { spec: { replicas: 1 } },
  revision: 1,
  ...more,
})

test('a controller revision keeps its data; its number may change', async (t) => {
  const made = create('controllerrevisions', revision())
  t.match(update('controllerrevisions', made, revision({ revision: 2 })), { revision: 2 })
  t.match(
    causes(() => update('controllerrevisions', made, revision({ data: { spec: {} } }))),
    [/^data: Invalid value: .*: field is immutable$/],
  )
  t.same(
    causes(() => create('controllerrevisions', revision({ data: undefined, revision: -1 }))),
    ['revision: Invalid value: -1: must be greater than or equal to 0', 'data: Required value: data is mandatory'],
  )
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/controllerrevisions'
  const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'web', uid: 'u', controller: true }
  const metadata = { ...revision().metadata, ownerReferences: [owner] }
  t.match(await ask('POST', path, { body: revision({ metadata }) }), { code: 201 })
  const { body } = await ask('GET', path, { accept: tables })
  t.match(body, { rows: [{ cells: ['web-1', 'daemonset.apps/web', 1] }] })
})

test('a revision has data and a number, which is 0 where it is not set', async (t) => {
  const { revision: _, ...unnumbered } = revision()
  t.match(create('controllerrevisions', unnumbered), { revision: 0 })
  const wrong = (more: Partial<ControllerRevision>) => causes(() => create('controllerrevisions', revision(more)))
  t.same(wrong({ revision: 0, data: {} }), [])
  t.same(wrong({ data: null }), ['data: Required value: data is mandatory'])
  for (const data of ['x', 7, false, [{}]])
    t.same(wrong({ data }), ['data: Required value: data must be a valid JSON object'])
})

test('the table names the controller of a revision, with its group', async (t) => {
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u' }
  const controllerOf = (...ownerReferences: NonNullable<ControllerRevision['metadata']['ownerReferences']>) =>
    controllerRevisionStrategy.table.cells({ ...revision(), metadata: { name: 'db-1', ownerReferences } }, 0)[1]
  t.equal(controllerOf(), '<none>')
  t.equal(controllerOf(owner), '<none>', 'an owner that does not control it')
  t.equal(controllerOf({ ...owner, controller: true }), 'statefulset.apps/db')
  t.equal(controllerOf(owner, { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'v', controller: true }), 'pod/a')
})
