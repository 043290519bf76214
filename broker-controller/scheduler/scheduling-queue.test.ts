import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { finished, type Steps } from '../../daemon/watchdog/steps.ts'
import type { Plugin } from './filter.ts'
import { schedulingQueue } from './scheduling-queue.ts'

const cpu: ReadonlySet<Plugin> = new Set(['NodeResourcesFit'])

const answering = (mayFit: boolean) =>
  function* (): Steps<boolean> {
    yield
    return mayFit
  }

test('the queue: back-off grows from 1 s to 10 s, a change shortens the wait to it, five minutes are the longest', async (t) => {
  const queue = schedulingQueue()
  queue.add('a', aPod())
  t.equal(queue.next(0)?.key, 'a')
  queue.failed('a', new Set(), 0)
  t.equal(queue.nextMs(), 300_000)
  finished(queue.wake(answering(false), 100))
  t.equal(queue.nextMs(), 300_000)
  finished(queue.wake(answering(true), 100))
  t.equal(queue.nextMs(), 1_000)
  t.equal(queue.next(999), undefined)
  const waits: number[] = []
  for (let now = 1_000, i = 0; i < 6; i++) {
    t.equal(queue.next(now)?.key, 'a')
    queue.retry('a', now)
    waits.push((queue.nextMs() ?? 0) - now)
    now = queue.nextMs() ?? 0
  }
  t.same(waits, [2_000, 4_000, 8_000, 10_000, 10_000, 10_000])
  queue.remove('a')
  t.same([queue.size, queue.nextMs()], [0, undefined])
})

test('the most important pod comes first, then the one that came first, also after an attempt', async (t) => {
  const queue = schedulingQueue()
  queue.add('old', aPod())
  queue.add('new', aPod())
  queue.add('urgent', aPod({ priority: 10 }))
  queue.add('last', aPod({ priority: -1 }))
  const order = () => ['old', 'new', 'urgent', 'last'].map(() => queue.next(0)?.key)
  const first = order()
  t.same([first, queue.next(0)], [['urgent', 'old', 'new', 'last'], undefined])
  for (const key of first) queue.add(key ?? '', aPod())
  t.same(order(), ['old', 'new', 'urgent', 'last'], 'all have one priority now')
})

test('pods are counted by what they wait for, and one of an attempt not', async (t) => {
  const queue = schedulingQueue()
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key, aPod())
  t.same(queue.counts(), { active: 4, backoff: 0, unschedulable: 0 })
  for (const key of ['a', 'b', 'c']) t.equal(queue.next(0)?.key, key)
  queue.failed('a', cpu, 0)
  queue.retry('b', 0)
  t.same([queue.counts(), queue.size], [{ active: 1, backoff: 1, unschedulable: 1 }, 4])
  t.same([queue.isWaiting, queue.has('a'), queue.has('e')], [true, true, false])
})

test('a change wakes the pods that it may help: at once after their back-off, else at its end', async (t) => {
  const queue = schedulingQueue()
  const seen: unknown[] = []
  queue.add('a', aPod({ name: 'a' }))
  queue.next(0)
  queue.failed('a', cpu, 0)
  const helps = function* ({
    pod,
    refusedBy,
  }: {
    pod: { metadata: { name: string } }
    refusedBy: ReadonlySet<Plugin>
  }) {
    yield
    seen.push(pod.metadata.name, refusedBy)
    return true
  }
  finished(queue.wake(helps, 500))
  t.same([seen, queue.next(999), queue.next(1_000)?.key], [['a', cpu], undefined, 'a'])
  queue.failed('a', cpu, 1_000)
  finished(queue.wake(helps, 3_000))
  t.same([queue.next(3_000)?.key, queue.isWaiting], ['a', false], 'two seconds were over')
  finished(queue.wake(helps, 3_000))
  t.equal(queue.next(3_000), undefined, 'the pod of an attempt is not woken')
})

test('a pod that no change moves is tried after five minutes', async (t) => {
  const queue = schedulingQueue()
  queue.add('a', aPod())
  queue.next(0)
  queue.failed('a', cpu, 0)
  t.same([queue.next(299_999), queue.next(300_000)?.key], [undefined, 'a'])
})

test('a pod that changed is tried at once as it is now, and its back-off goes on from where it was', async (t) => {
  const queue = schedulingQueue()
  queue.add('a', aPod())
  queue.next(0)
  queue.failed('a', cpu, 0)
  const changed = aPod({ labels: { app: 'web' } })
  queue.add('a', changed)
  t.equal(queue.next(0)?.pod, changed)
  queue.retry('a', 0)
  t.equal(queue.nextMs(), 2_000)
})

test('the pod of an attempt that changes is tried again after it', async (t) => {
  const queue = schedulingQueue()
  queue.add('a', aPod())
  queue.next(0)
  const changed = aPod({ labels: { app: 'web' } })
  queue.update('a', changed)
  t.equal(queue.next(0), undefined, 'the attempt has not ended')
  queue.retry('a', 0)
  t.equal(queue.next(1_000)?.pod, changed)
  queue.add('a', aPod())
  queue.failed('a', cpu, 1_000)
  t.equal(queue.next(1_000)?.key, 'a', 'what came during an attempt outweighs its failure')
})

test('a pod that was removed is not tried, wherever it waited', async (t) => {
  const queue = schedulingQueue()
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key, aPod())
  for (const key of ['a', 'b', 'c']) t.equal(queue.next(0)?.key, key)
  queue.failed('a', cpu, 0)
  queue.retry('b', 0)
  for (const key of ['a', 'b', 'c', 'd']) queue.remove(key)
  queue.failed('c', cpu, 0)
  queue.update('c', aPod())
  t.same([queue.size, queue.isWaiting, queue.nextMs(), queue.next(300_000)], [0, false, undefined, undefined])
  queue.add('b', aPod())
  queue.next(0)
  queue.retry('b', 0)
  t.equal(queue.nextMs(), 1_000, 'another one of its name begins with the first back-off')
})
