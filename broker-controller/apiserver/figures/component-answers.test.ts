import { test } from 'tap'
import { anApi } from '../../testing/api-in-memory.ts'

const path = '/api/v1/componentstatuses'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const well = { name: 'store', check: async () => undefined }

test('kubectl get cs prints the components of a controller that leads as healthy', async (t) => {
  const { ask } = await anApi(t, { readiness: [well] })
  const { code, body, warnings } = await ask('GET', path, { accept: table })
  t.equal(code, 200)
  t.same(warnings, ['v1 ComponentStatus is deprecated in v1.19+'])
  t.match(body, {
    columnDefinitions: [{ name: 'Name' }, { name: 'Status' }, { name: 'Message' }, { name: 'Error' }],
    rows: [
      { cells: ['controller-manager', 'Healthy', 'ok', ''] },
      { cells: ['scheduler', 'Healthy', 'ok', ''] },
      { cells: ['etcd-0', 'Healthy', 'ok', ''] },
    ],
  })
  t.match((await ask('GET', path)).body, { kind: 'ComponentStatusList', items: { length: 3 } })
  t.match((await ask('GET', `${path}?labelSelector=a=b`)).body, { items: { length: 0 } })
  t.match((await ask('GET', `${path}?fieldSelector=metadata.name=scheduler`)).body, {
    items: [{ metadata: { name: 'scheduler' } }],
  })
})

test('a store that does not answer is an unhealthy etcd-0', async (t) => {
  const broken = { name: 'etcd', check: () => Promise.reject(new Error('no leader')) }
  const { ask } = await anApi(t, { readiness: [well, broken] })
  t.match((await ask('GET', `${path}/etcd-0`)).body, {
    kind: 'ComponentStatus',
    metadata: { name: 'etcd-0' },
    conditions: [{ type: 'Healthy', status: 'False', error: 'no leader' }],
  })
  t.match((await ask('GET', `${path}/scheduler`)).body, { conditions: [{ status: 'True', message: 'ok' }] })
})

test('a component that does not exist is not found, and none can be written', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('GET', `${path}/kubelet`), { code: 404, body: { reason: 'NotFound' } })
  t.match(await ask('DELETE', `${path}/scheduler`), { code: 405 })
})

test('only who may read componentstatuses may, and discovery lists them with their short name', async (t) => {
  const { ask } = await anApi(t)
  const as = { user: 'jane', groups: ['system:authenticated'] }
  t.match(await ask('GET', path, { as }), { code: 403, body: { message: /cannot list resource "componentstatuses"/ } })
  const { resources } = (await ask('GET', '/api/v1')).body
  const listed = [...Object(resources)].find(({ name }) => name === 'componentstatuses')
  t.match(listed, { kind: 'ComponentStatus', shortNames: ['cs'], verbs: ['get', 'list'], namespaced: false })
})
