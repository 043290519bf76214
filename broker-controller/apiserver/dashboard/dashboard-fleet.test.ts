import { test } from 'tap'
import type { FleetUpdate } from '../../../api/dashboard/dashboard-messages.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { usageBoard } from '../../usage/usage-board.ts'
import { dashboardFleet } from './dashboard-fleet.ts'

test('a page that reads slowly receives no more cards than it may see when it reads them', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (let i = 0; i < 600; i++) await store.create('pods', aPod({ name: `web-${i}` }))
  let mayList = true
  const fleet = dashboardFleet({
    store,
    clock,
    log: quietLog(t),
    usage: usageBoard({ clock }),
    commonNameOf: () => undefined,
    alwaysSample: false,
    access: {
      decide: async () => ({ allowed: mayList, reason: '' }),
      rulesOf: () => [],
      rulesOfRole: () => undefined,
    },
  })
  const stopping = new AbortController()
  const running = fleet.run(stopping.signal)
  const leaving = new AbortController()
  const stream = fleet.stream(async () => ({ user: 'jane', groups: [] }), leaving.signal)[Symbol.asyncIterator]()
  const next = async (): Promise<FleetUpdate> => {
    for (;;) {
      const text = Buffer.from((await stream.next()).value ?? []).toString()
      if (text.startsWith('data: ')) return JSON.parse(text.slice(6)) as FleetUpdate
    }
  }
  t.match(await next(), { reset: { pods: true } })
  t.equal((await next()).pods?.put?.length, 250)
  mayList = false
  await clock.advance(10_000)
  t.match(await next(), { reset: { pods: false } })
  t.match(await next(), { complete: true })
  stopping.abort()
  await running
  t.equal((await stream.next()).done, true)
})
