import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { RuntimeListener } from '../runtime/runtime.ts'
import { fakeRuntime } from '../testing/fake-runtime.ts'
import { containerList } from './container-list.ts'

test('the engine lists its containers once, and again after it reported a change', async (t) => {
  const clock = fakeClock()
  let lists = 0
  const containers = containerList({ clock, list: async () => [] })
  const counting = containerList({
    clock,
    list: async () => {
      lists++
      return []
    },
  })
  await counting.containers()
  await counting.containers()
  t.equal(lists, 1)
  const received: string[] = []
  const listener: RuntimeListener = { opened: () => received.push('opened'), changed: (uid) => received.push(uid) }
  const engine = {
    ...fakeRuntime(clock),
    watch: async ({ opened, changed }: RuntimeListener) => {
      opened()
      changed('u1')
    },
  }
  await counting.observing(engine).watch(listener, new AbortController().signal)
  t.same(received, ['opened', 'u1'], 'the watcher receives the events as before')
  await counting.containers()
  t.equal(lists, 2)
  await clock.advance(5 * 60_000 + 1)
  await counting.containers()
  t.equal(lists, 3, 'and when the list is five minutes old')
  t.same(await containers.containers(), [])
})

test('with an engine that hangs, the last list is returned after 2 s', async (t) => {
  const clock = fakeClock()
  let answer: () => Promise<[]> = async () => []
  const containers = containerList({ clock, list: () => answer() })
  await containers.containers()
  answer = () => new Promise(() => undefined)
  containers.invalidate()
  const last = containers.containers()
  await clock.advance(2_000)
  t.same(await last, [])
})

test('without a first answer of the engine the call rejects', async (t) => {
  const containers = containerList({ clock: fakeClock(), list: () => Promise.reject(new Error('no engine')) })
  await t.rejects(containers.containers(), { message: 'no engine' })
  await t.rejects(containers.containers(), { message: 'no engine' }, 'a failed list is repeated')
})
