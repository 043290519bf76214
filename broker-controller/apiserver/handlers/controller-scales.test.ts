import { test } from 'tap'
import { anApi } from '../../testing/api-in-memory.ts'

test('what scaled a workload owns its replicas', async (t) => {
  const { ask, scales } = await anApi(t)
  const sets = '/apis/apps/v1/namespaces/default/replicasets'
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'i' }] } }
  const spec = { replicas: 1, selector: { matchLabels: labels }, template }
  const body = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: { name: 'web' }, spec }
  await ask('POST', `${sets}?fieldManager=someone`, { body })
  const read = await scales.get('default', { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web' })
  t.match(read, { resource: 'replicasets', scale: { spec: { replicas: 1 }, status: { selector: 'app=web' } } })
  await scales.update(read, 3, 'horizontal-pod-autoscaler')
  t.match((await ask('GET', `${sets}/web`)).body, {
    spec: { replicas: 3 },
    metadata: {
      managedFields: [
        { manager: 'kube-controller-manager', operation: 'Update', subresource: 'scale' },
        { manager: 'someone' },
      ],
    },
  })
  await t.rejects(scales.update(read, 4, 'horizontal-pod-autoscaler'), { message: /the object has been modified/ })
})
