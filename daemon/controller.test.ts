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

test('visits that wait for nothing leave turns of the event loop to others', async (t) => {
  const queue = workQueue(fakeClock())
  const stop = new AbortController()
  const keys = Array.from({ length: 8 }, (_, index) => `pi-${index}`)
  let visits = 0
  let turns = 0
  const controller: Controller = {
    name: 'test',
    async reconcile() {
      for (const until = performance.now() + 30; performance.now() < until; );
      if (++visits === keys.length) stop.abort()
      return undefined
    },
  }
  const count = () => {
    turns++
    if (!stop.signal.aborted) setImmediate(count)
  }
  for (const key of keys) queue.add(key)
  setImmediate(count)
  await runController(controller, queue, quietLog(t), stop.signal, 5)
  t.equal(visits, keys.length)
  t.ok(turns >= keys.length - 1, `${turns} turns`)
})
