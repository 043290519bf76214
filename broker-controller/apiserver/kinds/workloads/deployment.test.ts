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
