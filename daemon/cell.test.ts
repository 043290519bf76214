import { test } from 'tap'
import { cell, firstValue } from './cell.ts'

test('readers get the last value, and listeners are called in order after each change', async (t) => {
  const pressure = cell<string>('none')
  const calls: string[] = []
  pressure.onChange((value) => calls.push(`first ${value}`))
  pressure.subscribe((value) => calls.push(`second ${value}`))
  pressure.set('memory')
  pressure.set('memory')
  t.equal(pressure.get(), 'memory')
  t.same(calls, ['second none', 'first memory', 'second memory'])
})

test('a value that counts as the same is stored, and listeners are not called', async (t) => {
  const state = cell({ shown: 1, detail: 1 }, (before, after) => before.shown === after.shown)
  let calls = 0
  state.onChange(() => calls++)
  state.set({ shown: 1, detail: 2 })
  t.equal(calls, 0)
  t.equal(state.get().detail, 2)
  state.set({ shown: 2, detail: 2 })
  t.equal(calls, 1)
})

test('a removed listener is not called, and a listener registered twice is called until both are removed', async (t) => {
  const count = cell(0)
  let calls = 0
  const listener = () => void calls++
  const [removeFirst, removeSecond] = [count.onChange(listener), count.onChange(listener)]
  count.set(1)
  t.equal(calls, 2)
  removeFirst()
  removeFirst()
  count.set(2)
  t.equal(calls, 3)
  removeSecond()
  count.set(3)
  t.equal(calls, 3)
})

test('a listener that writes the value again leaves every listener with the newest one', async (t) => {
  const count = cell(0)
  const last: number[] = []
  count.onChange((value) => value === 1 && count.set(2))
  count.onChange((value) => void last.push(value))
  count.set(1)
  t.equal(count.get(), 2)
  t.same(last, [2, 2])
})

test('the first value is awaited, or is there already', async (t) => {
  const status = cell<string | undefined>(undefined)
  const first = firstValue(status)
  status.set('ready')
  status.set('not ready')
  t.equal(await first, 'ready')
  t.equal(await firstValue(status), 'not ready')
})
