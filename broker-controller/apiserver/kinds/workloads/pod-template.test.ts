import { test } from 'tap'
import type { PodTemplate } from '../../../../api/workloads/pod-template.ts'
import { causes, create } from '../../../testing/admitting.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'

const tables = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const template = (image = 'nginx:1.27'): PodTemplate => ({
  apiVersion: 'v1',
  kind: 'PodTemplate',
  metadata: { name: 'web', namespace: 'default' },
  template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image }] } },
})

test('a pod template is created, listed, replaced, patched and deleted', async (t) => {
  const { ask } = await anApi(t)
  const path = '/api/v1/namespaces/default/podtemplates'
  t.match(await ask('POST', path, { body: template() }), {
    code: 201,
    body: { template: { spec: { restartPolicy: 'Always', containers: [{ imagePullPolicy: 'IfNotPresent' }] } } },
  })
  const { body } = await ask('GET', path, { accept: tables })
  t.match(body, { rows: [{ cells: ['web', 'web', 'nginx:1.27', 'app=web'] }] })
  t.match(await ask('PUT', `${path}/web`, { body: template('nginx:1.28') }), { code: 200 })
  const labels = { metadata: { labels: { a: 'b' } } }
  t.match(await ask('PATCH', `${path}/web`, { type: patchTypes.strategic, body: labels }), {
    body: { metadata: { labels: { a: 'b' } }, template: { spec: { containers: [{ image: 'nginx:1.28' }] } } },
  })
  t.match(await ask('DELETE', `${path}?labelSelector=a=b`), { code: 200, body: { items: { length: 1 } } })
  t.same(
    causes(() => create('podtemplates', template(''))),
    ['template.spec.containers[0].image: Required value'],
  )
})
