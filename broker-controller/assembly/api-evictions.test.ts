import { test } from 'tap'
import type { LocalRequest } from '../apiserver/filters/in-process-api.ts'
import { apiEvictions } from './api-evictions.ts'

test('a pod is evicted by the eviction subresource, as a user of the controller', async (t) => {
  const asked: { readonly user: string; readonly request: LocalRequest }[] = []
  const answers = [201, 404, 429, 500]
  const evict = apiEvictions(async ({ user }, request) => {
    asked.push({ user, request })
    return { code: answers.shift() ?? 0, body: undefined }
  })
  const { signal } = new AbortController()
  const outcomes: string[] = []
  for (let at = 0; at < 4; at++) outcomes.push(await evict({ namespace: 'shop', name: 'web-1' }, signal))
  t.same(outcomes, ['evicted', 'evicted', 'held', 'held'])
  t.match(asked[0], {
    user: 'system:bramble-maintenance',
    request: {
      ...{ method: 'POST', path: '/api/v1/namespaces/shop/pods/web-1/eviction' },
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace: 'shop', name: 'web-1' } },
    },
  })
})
