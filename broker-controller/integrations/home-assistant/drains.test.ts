import { type Test, test } from 'tap'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import { drains } from './drains.ts'

function owned(name: string, kind = 'ReplicaSet'): Pod {
  const pod = aPod({ name, nodeName: 'pi-1' })
  const owner = { apiVersion: 'apps/v1', kind, name: 'owner', uid: 'o', controller: true }
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } }
}

/** An API in which an eviction takes the pod away, unless `codeOf` gives another code. */
function aFleet(t: Test, pods: readonly Pod[], codeOf: (path: string) => number | undefined = () => undefined) {
  const clock = fakeClock()
  const log = quietLog(t)
  const requests: string[] = []
  let present = pods
  const { press, loop } = drains({
    clock,
    limited: limitLog(log, clock),
    podsOf: () => present,
    async request({ method, path, body }: LocalRequest) {
      requests.push(`${method} ${path} ${method === 'PATCH' ? JSON.stringify(body) : ''}`.trim())
      const code = codeOf(path)
      if (code !== undefined) return { code, body: {} }
      if (method === 'POST') present = present.filter(({ metadata }) => !path.includes(`/${metadata.name}/`))
      return { code: method === 'POST' ? 201 : 200, body: {} }
    },
  })
  const ending = new AbortController()
  const running = loop.run(ending.signal)
  t.teardown(async () => {
    ending.abort()
    await running
  })
  return { clock, log, requests, press }
}

const cordoned = 'PATCH /api/v1/nodes/pi-1 {"spec":{"unschedulable":true}}'
const uncordoned = 'PATCH /api/v1/nodes/pi-1 {"spec":{"unschedulable":false}}'
const evicted = (name: string) => `POST /api/v1/namespaces/default/pods/${name}/eviction`

test('a drain cordons, and evicts the pods that come back elsewhere', async (t) => {
  const { clock, log, requests, press } = aFleet(t, [
    owned('a'),
    owned('b'),
    owned('c', 'DaemonSet'),
    aPod({ name: 'd' }),
  ])
  press('pi-1', 'drain')
  await clock.advance(7_000)
  t.same(requests, [cordoned, evicted('a'), evicted('b')])
  t.same(log.messages('info'), ['Node drained'])
  await clock.advance(60_000)
  t.equal(requests.length, 3, 'it is over')
})

test('an eviction that a budget refuses is repeated until it is allowed', async (t) => {
  let allowed = false
  const { clock, requests, press } = aFleet(t, [owned('a')], (path) =>
    path.includes('/a/') && !allowed ? 429 : undefined,
  )
  press('pi-1', 'drain')
  await clock.advance(11_000)
  t.same(requests, [cordoned, evicted('a'), evicted('a'), evicted('a')])
  allowed = true
  await clock.advance(60_000)
  t.equal(requests.length, 5)
})

test('many pods that a budget holds hinder no others', async (t) => {
  const pods = Array.from({ length: 60 }, (_, i) => owned(i < 50 ? `held-${i}` : `free-${i}`))
  const { clock, requests, press } = aFleet(t, pods, (path) => (path.includes('/held-') ? 429 : undefined))
  press('pi-1', 'drain')
  await clock.advance(7_000)
  t.equal(requests.filter((one) => one.includes('/free-')).length, 10)
})

test('a pod whose eviction was accepted is not evicted again while it stops', async (t) => {
  const slow = { ...owned('a'), metadata: { ...owned('a').metadata, uid: 'u' } }
  const { clock, requests, press } = aFleet(t, [slow, owned('b')], (path) => (path.includes('/a/') ? 201 : undefined))
  press('pi-1', 'drain')
  await clock.advance(60_000)
  t.same(requests, [cordoned, evicted('a'), evicted('b')])
})

test('a drain ends after an hour, at a refusal, and where the node cannot be cordoned', async (t) => {
  const held = aFleet(t, [owned('a')], (path) => (path.includes('/a/') ? 429 : undefined))
  held.press('pi-1', 'drain')
  await held.clock.advance(2 * 3600_000)
  t.same(held.log.messages('warn'), ['Drain ended: pods stay'])
  const forbidden = aFleet(t, [owned('a'), owned('b')], (path) => (path.includes('/a/') ? 403 : undefined))
  forbidden.press('pi-1', 'drain')
  await forbidden.clock.advance(60_000)
  t.same(forbidden.requests, [cordoned, evicted('a')])
  t.same(forbidden.log.messages('warn'), ['Drain ended: a pod cannot be evicted'])
  const gone = aFleet(t, [owned('a')], () => 404)
  gone.press('pi-1', 'drain')
  await gone.clock.advance(60_000)
  t.same(gone.requests, [cordoned])
})

test('buttons that are pressed without end cause a bounded number of requests', async (t) => {
  const { clock, requests, press } = aFleet(t, [])
  for (let second = 0; second < 10; second++) {
    for (let i = 0; i < 500; i++) press(`pi-${i % 50}`, i % 3 === 0 ? 'drain' : 'uncordon')
    await clock.advance(1_000)
  }
  t.ok(requests.length >= 200 && requests.length <= 440, `${requests.length} requests in 10 s`)
})

test('the last button counts', async (t) => {
  const { clock, requests, press } = aFleet(t, [owned('a')], (path) => (path.includes('/a/') ? 429 : undefined))
  press('pi-1', 'drain')
  await clock.advance(1_000)
  press('pi-1', 'uncordon')
  await clock.advance(60_000)
  t.same(requests, [cordoned, evicted('a'), uncordoned])
})
