import { test } from 'tap'
import type { ApiAnswer } from '../../daemon/api-client.ts'
import { viewOfFleet } from './fleet-view.ts'

const nowMs = Date.UTC(2026, 2, 1, 12)
const secondsAgo = (seconds: number) => new Date(nowMs - seconds * 1000).toISOString()
const renewed = (seconds: number, leaseDurationSeconds?: number) => ({
  metadata: { name: `pi-${seconds}` },
  spec: { renewTime: secondsAgo(seconds), leaseDurationSeconds },
})

type Given = {
  readonly ready?: number
  readonly pages?: readonly (readonly object[])[]
  /** What becomes of the Lease that is written. */
  readonly store?: 'keeps' | 'refuses' | 'loses'
}

/** An API with these leases of nodes, and what was asked of it. */
function api({ ready = 200, pages = [[]], store = 'keeps' }: Given) {
  const asked: string[] = []
  let lease: unknown
  const answer = (status: number, body: unknown = {}): ApiAnswer => ({
    ...{ status, body },
    dateHeader: new Date(nowMs).toUTCString(),
  })
  return {
    asked,
    client: {
      async get(path: string) {
        asked.push(`get ${path}`)
        if (path === '/readyz') return answer(ready)
        const { pathname, searchParams } = new URL(path, 'https://fleet')
        if (!pathname.includes('kube-node-lease')) return lease === undefined ? answer(404) : answer(200, lease)
        const at = Number(searchParams.get('continue') ?? 0)
        const isLast = at + 1 >= pages.length
        return answer(200, { metadata: isLast ? {} : { continue: String(at + 1) }, items: pages[at] ?? [] })
      },
      async post(path: string, body: unknown) {
        asked.push(`post ${path}`)
        if (store === 'refuses') return answer(507)
        if (store === 'keeps') lease = body
        return answer(201, body)
      },
      async delete(path: string) {
        asked.push(`delete ${path}`)
        const status = lease === undefined ? 404 : 200
        lease = undefined
        return answer(status)
      },
    },
  }
}

test('a controller works that is ready and keeps a Lease, which is not left behind', async (t) => {
  const { client, asked } = api({})
  t.same(await viewOfFleet(client), { works: true, connectedNodes: [] })
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'
  const one = `${path}/bramble-controller-trial`
  t.same(asked.slice(0, 5), ['get /readyz', `delete ${one}`, `post ${path}`, `get ${one}`, `delete ${one}`])
})

test('nodes are counted by their current leases, over all pages', async (t) => {
  const pages = [[renewed(1), renewed(41), renewed(42)], [renewed(100, 120), {}], [renewed(5, 40)]]
  t.same(await viewOfFleet(api({ pages }).client), { works: true, connectedNodes: ['pi-1', 'pi-41', 'pi-100', 'pi-5'] })
})

for (const [what, given] of [
  ['is not ready', { ready: 500 }],
  ['refuses a write', { store: 'refuses' }],
  ['loses what it has accepted', { store: 'loses' }],
] as const)
  test(`a controller that ${what} does not work`, async (t) => {
    t.match(await viewOfFleet(api(given).client), { works: false, connectedNodes: [] })
  })

test('nothing is concluded about the nodes of a controller that does not answer', async (t) => {
  const fail = async () => {
    throw new Error('ECONNREFUSED')
  }
  const view = await viewOfFleet({ get: fail, post: fail, delete: fail })
  t.same(view, { works: false, connectedNodes: undefined })
})
