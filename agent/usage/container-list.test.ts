import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import type { RuntimeListener } from '../pods/runtime/runtime.ts'
import { fakeRuntime } from '../testing/fake-runtime.ts'
import { containerRoster } from './container-list.ts'

test('the engine is asked once, and again when it told of a change', async (t) => {
  const clock = fakeClock()
  let asked = 0
  const roster = containerRoster({ clock, list: async () => [] })
  const counting = containerRoster({
    clock,
    list: async () => {
      asked++
      return []
    },
  })
  await counting.containers()
  await counting.containers()
  t.equal(asked, 1)
  const heard: string[] = []
  const listener: RuntimeListener = { opened: () => heard.push('opened'), changed: (uid) => heard.push(uid) }
  const engine = {
    ...fakeRuntime(clock),
    watch: async ({ opened, changed }: RuntimeListener) => {
      opened()
      changed('u1')
    },
  }
  await counting.overhearing(engine).watch(listener, new AbortController().signal)
  t.same(heard, ['opened', 'u1'], 'who watches is told as before')
  await counting.containers()
  t.equal(asked, 2)
  await clock.advance(5 * 60_000 + 1)
  await counting.containers()
  t.equal(asked, 3, 'and now and then regardless')
  t.same(await roster.containers(), [])
})

test('an engine that hangs holds nobody up who knows what ran before', async (t) => {
  const clock = fakeClock()
  let answer: () => Promise<[]> = async () => []
  const roster = containerRoster({ clock, list: () => answer() })
  await roster.containers()
  answer = () => new Promise(() => undefined)
  roster.doubt()
  const known = roster.containers()
  await clock.advance(2_000)
  t.same(await known, [])
})

test('an engine that never answered is an error', async (t) => {
  const roster = containerRoster({ clock: fakeClock(), list: () => Promise.reject(new Error('no engine')) })
  await t.rejects(roster.containers(), { message: 'no engine' })
  await t.rejects(roster.containers(), { message: 'no engine' }, 'asked again')
})
