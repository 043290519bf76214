import { test } from 'tap'
import { requestEviction } from './eviction-request.ts'
import type { LocalRequest } from './in-process-api.ts'

const pod = { namespace: 'shop', name: 'web-1', uid: 'u1' }

test('a pod is evicted by the eviction subresource, and no other pod of its name', async (t) => {
  const asked: LocalRequest[] = []
  const answer = await requestEviction(pod, async (request) => {
    asked.push(request)
    return { code: 201, body: undefined }
  })
  t.same(answer, { outcome: 'evicted', code: 201 })
  t.same(asked, [
    {
      ...{ method: 'POST', path: '/api/v1/namespaces/shop/pods/web-1/eviction' },
      body: {
        ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace: 'shop', name: 'web-1' } },
        deleteOptions: { preconditions: { uid: 'u1' } },
      },
    },
  ])
})

test('what an answer means', async (t) => {
  for (const [code, outcome] of [
    [404, 'evicted'],
    [429, 'held'],
    [409, 'held'],
    [403, 'refused'],
    [500, 'refused'],
  ] as const) {
    t.same(await requestEviction(pod, async () => ({ code, body: undefined })), { outcome, code })
  }
})
