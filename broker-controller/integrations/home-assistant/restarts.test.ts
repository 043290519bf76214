import { type Test, test } from 'tap'
import { rfc3339 } from '../../../daemon/clock.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import { restarts } from './restarts.ts'

function someButtons(t: Test, code = 200) {
  const clock = fakeClock()
  const log = quietLog(t)
  const api = { code, tookMs: 0 }
  const requests: LocalRequest[] = []
  const { press, loop } = restarts({
    clock,
    log,
    async request(request) {
      requests.push(request)
      if (api.tookMs > 0) await clock.sleep(api.tookMs)
      return { code: api.code, body: {} }
    },
  })
  const ending = new AbortController()
  const running = loop.run(ending.signal)
  t.teardown(async () => {
    ending.abort()
    await running
  })
  return { clock, log, api, requests, press }
}

test('a button sets the annotation of the node to the present time', async (t) => {
  const { clock, requests, press } = someButtons(t)
  const now = rfc3339(clock.wallMs())
  press('pi-1')
  await clock.advance(1_000)
  t.same(requests, [
    {
      method: 'PATCH',
      path: '/api/v1/nodes/pi-1',
      body: { metadata: { annotations: { 'bramble.dev/reboot-requested-at': now } } },
      contentType: 'application/merge-patch+json',
    },
  ])
})

test('a button that is pressed without end requests one restart in five minutes', async (t) => {
  const { clock, requests, press } = someButtons(t)
  for (let second = 0; second < 900; second++) {
    press('pi-1')
    await clock.advance(1_000)
  }
  t.equal(requests.length, 3)
})

test('buttons of a whole fleet cause a bounded number of requests in a second', async (t) => {
  const { clock, requests, press } = someButtons(t)
  for (let i = 0; i < 100; i++) press(`pi-${i}`)
  await clock.settle()
  t.equal(requests.length, 20)
  await clock.advance(5_000)
  t.equal(requests.length, 100)
})

test('a refusal of the API is logged', async (t) => {
  const { clock, log, press } = someButtons(t, 403)
  press('pi-1')
  await clock.advance(1_000)
  t.same(log.messages('warn'), ['Restart of a machine not requested'])
})

test('a button whose request was not accepted can be pressed again after ten seconds', async (t) => {
  const { clock, log, api, requests, press } = someButtons(t, 503)
  for (let second = 0; second < 30; second++) {
    press('pi-1')
    await clock.advance(1_000)
  }
  t.equal(requests.length, 3)
  t.equal(log.messages('warn').length, 3)
  api.code = 200
  await clock.advance(10_000)
  for (let second = 0; second < 30; second++) {
    press('pi-1')
    await clock.advance(1_000)
  }
  t.equal(requests.length, 4)
})

test('a request that waits for others keeps the time of its press', async (t) => {
  const { clock, api, requests, press } = someButtons(t)
  api.tookMs = 200_000
  press('pi-1')
  await clock.settle()
  const pressedAt = rfc3339(clock.wallMs())
  press('pi-2')
  await clock.advance(500_000)
  t.match(requests[1], {
    path: '/api/v1/nodes/pi-2',
    body: { metadata: { annotations: { 'bramble.dev/reboot-requested-at': pressedAt } } },
  })
})
