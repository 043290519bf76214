import { test } from 'tap'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

test('a write of the status leaves the labels as they are', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/deployments'
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
  const body = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', labels },
    spec: { selector: { matchLabels: labels }, template },
  }
  t.match(await ask('POST', path, { body }), { code: 201 })
  const written = await ask('PATCH', `${path}/web/status`, {
    type: patchTypes.strategic,
    body: {
      metadata: { labels: { app: 'other', more: 'b' }, annotations: { by: 'hand' } },
      status: { replicas: 1, readyReplicas: 1 },
    },
  })
  t.match(written, { code: 200, body: { metadata: { annotations: { by: 'hand' } }, status: { readyReplicas: 1 } } })
  const { metadata } = written.body as { metadata: { labels: unknown } }
  t.same(metadata.labels, labels)
})

test('a field that is empty is stored as an absent one, and stays with who applied it', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/apps/v1/namespaces/default/deployments/web'
  const labels = { app: 'web' }
  const applied = (env: readonly object[]) => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1', env }] } },
    },
  })
  const apply = async (env: readonly object[], fieldManager = 'me') =>
    await ask('PATCH', `${path}?fieldManager=${fieldManager}`, { type: patchTypes.apply, body: applied(env) })
  const first = await apply([{ name: 'A', value: '' }])
  t.match(first, { code: 201, body: { spec: { template: { spec: { containers: [{ env: [{ name: 'A' }] }] } } } } })
  t.notOk(JSON.stringify((first.body as { spec?: object }).spec).includes('"value"'))
  t.match(await apply([{ name: 'A', value: '' }]), { code: 200, body: { metadata: { generation: 1 } } })
  t.match(await apply([{ name: 'A' }]), { code: 200, body: { metadata: { generation: 1 } } })
  t.match(await apply([{ name: 'A', value: 'b' }]), { code: 200, body: { metadata: { generation: 2 } } })
  t.match(await apply([]), { code: 200, body: { metadata: { generation: 3 } } })
})
