import { test } from 'tap'
import { runController } from './controller.ts'
import { metricsRegistry } from './metrics-registry.ts'
import { fakeClock } from './testing/fake-clock.ts'
import { quietLog } from './testing/quiet-log.ts'
import { workQueue } from './work-queue.ts'
import { meterWorkQueues } from './work-queue-metrics.ts'

test('the queue of a controller is counted while it runs, under the names of client-go', async (t) => {
  const registry = metricsRegistry()
  const stopMeter = meterWorkQueues(registry)
  t.teardown(stopMeter)
  const value = (name: string, suffix = '') =>
    registry.samplesOf(name).find((one) => one.labels?.['name'] === 'nodes' && (one.suffix ?? '') === suffix)?.value
  const clock = fakeClock()
  const queue = workQueue(clock, () => 0.5)
  let visits = 0
  const reconcile = async () => {
    if (visits++ === 0) throw new Error('not yet')
    return undefined
  }
  for (const key of ['a', 'a', 'b']) queue.add(key)
  await clock.advance(2_000)
  const stop = new AbortController()
  const running = runController({ name: 'nodes', reconcile }, queue, quietLog(t, 'Reconcile failed'), stop.signal)
  t.equal(value('workqueue_depth'), 1, 'b, while a is visited')
  await clock.advance(1_000)
  t.equal(value('workqueue_depth'), 0)
  t.equal(value('workqueue_adds_total'), 3, 'a, b, and a again after its back-off')
  t.equal(value('workqueue_retries_total'), 1)
  t.equal(value('workqueue_work_duration_seconds', '_count'), 3)
  t.equal(value('workqueue_queue_duration_seconds', '_count'), 3)
  t.equal(value('workqueue_queue_duration_seconds', '_sum'), 4, 'two keys had waited for 2 s')
  stop.abort()
  await running
  t.equal(value('workqueue_depth'), undefined)
})

test('without a meter, and after its end, a controller runs uncounted', async (t) => {
  const registry = metricsRegistry()
  meterWorkQueues(registry)()
  const queue = workQueue(fakeClock())
  const stop = new AbortController()
  const visited: string[] = []
  queue.add('a')
  const reconcile = async (key: string) => {
    visited.push(key)
    stop.abort()
    return undefined
  }
  await runController({ name: 'nodes', reconcile }, queue, quietLog(t), stop.signal)
  t.same(visited, ['a'])
  t.same(registry.samplesOf('workqueue_depth'), [])
})
