import { type Test, test } from 'tap'
import { rfc3339 } from '../../daemon/clock.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { LocalRequest } from '../apiserver/local-requests.ts'
import { restarts } from './restarts.ts'

function someButtons(t: Test, code = 200) {
  const clock = fakeClock()
  const log = quietLog(t)
  const requests: LocalRequest[] = []
  const { press, loop } = restarts({
    clock,
    log,
    async request(request) {
      requests.push(request)
      return { code, body: {} }
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
