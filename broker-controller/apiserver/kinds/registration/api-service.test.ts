import { test } from 'tap'
import { anApi } from '../../../testing/api-in-memory.ts'

const path = '/apis/apiregistration.k8s.io/v1/apiservices'
const anApiService = (spec: object = {}, name = 'v1.wardle.example.com') => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name },
  spec: { group: 'wardle.example.com', version: 'v1', groupPriorityMinimum: 2000, versionPriority: 10, ...spec },
})
const service = { namespace: 'ns', name: 'api' }

test('an APIService without a Service is available at once, one with a Service gets its default port', async (t) => {
  const { ask } = await anApi(t)
  t.match(await ask('POST', path, { body: anApiService() }), {
    code: 201,
    body: { status: { conditions: [{ type: 'Available', status: 'True', reason: 'Local' }] } },
  })
  await ask('DELETE', `${path}/v1.wardle.example.com`)
  const { body } = await ask('POST', path, { body: anApiService({ service }) })
  t.match(body, { spec: { service: { ...service, port: 443 } } })
  t.same(body['status'], {})
})

test('its status is written apart, and a write of it changes nothing else', async (t) => {
  const { ask } = await anApi(t)
  const made = await ask('POST', path, { body: anApiService({ service }) })
  const conditions = [{ type: 'Mine', status: 'True' }]
  const given = { ...anApiService({ service, versionPriority: 20 }), status: { conditions } }
  const changed = { ...given, metadata: made.body['metadata'] }
  const written = await ask('PUT', `${path}/v1.wardle.example.com/status`, { body: changed })
  t.match(written, {
    code: 200,
    body: { spec: { versionPriority: 10 }, status: { conditions } },
  })
  const { metadata } = written.body
  t.match(await ask('PUT', `${path}/v1.wardle.example.com`, { body: { ...changed, metadata, status: {} } }), {
    code: 200,
    body: { spec: { versionPriority: 20 }, status: { conditions } },
  })
  const { metadata: newest } = (await ask('GET', `${path}/v1.wardle.example.com`)).body
  const odd = { ...changed, metadata: newest, status: { conditions: [{ type: 'Mine', status: 'Yes' }] } }
  t.match(await ask('PUT', `${path}/v1.wardle.example.com/status`, { body: odd }), { code: 422 })
})

test('no other server takes the place of a group that the fleet serves, as metrics.k8s.io', async (t) => {
  const { ask } = await anApi(t)
  const metrics = { group: 'metrics.k8s.io', version: 'v1beta1', service }
  t.match(await ask('POST', path, { body: anApiService(metrics, 'v1beta1.metrics.k8s.io') }), {
    code: 422,
    body: { message: /spec\.service: Forbidden: the kinds of metrics\.k8s\.io are served by the fleet itself/ },
  })
  t.match(await ask('POST', path, { body: anApiService({ group: 'apps', service }, 'v1.apps') }), { code: 422 })
})

test('kubectl prints the Service of an APIService and why it is not available', async (t) => {
  const { ask, store } = await anApi(t)
  await ask('POST', path, { body: anApiService({ service }) })
  await ask('POST', path, { body: anApiService({ version: 'v2' }, 'v2.wardle.example.com') })
  const key = { namespace: '', name: 'v1.wardle.example.com' }
  const rows = async () => {
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const { body } = await ask('GET', path, { accept })
    const { columnDefinitions, rows: all } = body as unknown as {
      columnDefinitions: { name: string }[]
      rows: { cells: unknown[] }[]
    }
    t.same(
      columnDefinitions.map(({ name }) => name),
      ['Name', 'Service', 'Available', 'Age'],
    )
    return all.map(({ cells }) => cells.slice(0, 3))
  }
  t.same(await rows(), [
    ['v1.wardle.example.com', 'ns/api', 'Unknown'],
    ['v2.wardle.example.com', 'Local', 'True'],
  ])
  const present = await store.get('apiservices', key)
  if (present === undefined) throw new Error('It is gone')
  const conditions = [{ type: 'Available', status: 'False', reason: 'MissingEndpoints' }]
  await store.updateStatus('apiservices', { ...present, status: { conditions } })
  t.match(await rows(), [['v1.wardle.example.com', 'ns/api', 'False (MissingEndpoints)']])
})

test('a fleet has at most a hundred APIServices of other servers', async (t) => {
  const { ask } = await anApi(t)
  const create = (version: number, spec: object) =>
    ask('POST', path, { body: anApiService({ ...spec, version: `v${version}` }, `v${version}.wardle.example.com`) })
  for (let version = 1; version <= 100; version++) t.match(await create(version, { service }), { code: 201 })
  t.match(await create(101, { service }), { code: 403, body: { message: /has 100 APIServices of other servers/ } })
  t.match(await create(102, {}), { code: 201 })
})
