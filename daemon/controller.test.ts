import { test } from 'tap'
import { type Controller, runController } from './controller.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { quietLog } from './testing/quiet-log.ts'
import { workQueue } from './work-queue.ts'

test('a failed call is logged once and repeated; a call may request the next', async (t) => {
  const clock = fakeClock()
  const log = quietLog(t)
  const queue = workQueue(clock, () => 1)
  const stop = new AbortController()
  const visits: number[] = []
  const controller: Controller = {
    name: 'test',
    async reconcile() {
      visits.push(clock.monotonicMs())
      if (visits.length === 1) throw new Error('Store is away')
      return visits.length === 2 ? { requeueAfterMs: 1000 } : undefined
    },
  }
  const running = runController(controller, queue, log, stop.signal)
  queue.add('pi-01')
  await clock.advance(60_000)
  t.same(visits, [0, 200, 1200])
  t.match(log.lines, [
    {
      level: 'warn',
      message: 'Reconcile failed',
      facts: { controller: 'test', key: 'pi-01', retryInMs: 200, error: { message: 'Store is away' } },
    },
  ])
  stop.abort()
  await running
})
