import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { type Loop, runLoops, startLoops } from './run.ts'
import { quietLog } from './testing/quiet-log.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const ended: string[] = []
const untilStopped = (name: string): Loop => ({
  name,
  run: async (signal) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    ended.push(name)
  },
})

test('loops run until they are stopped', async (t) => {
  const stop = new AbortController()
  const running = runLoops([untilStopped('a'), untilStopped('b')], stop.signal, quietLog(t))
  stop.abort()
  await running
  t.same(ended.splice(0), ['a', 'b'])
})

test('a loop listens on a signal of its own, and leaves nothing on that of the program', async (t) => {
  const stop = new AbortController()
  const seen: AbortSignal[] = []
  const loop = (name: string): Loop => ({
    name,
    run: (signal) => {
      seen.push(signal)
      return untilStopped(name).run(signal)
    },
  })
  const running = runLoops([loop('a'), loop('b')], stop.signal, quietLog(t))
  stop.abort(new Error('enough'))
  await running
  t.equal(new Set([...seen, stop.signal]).size, 3)
  t.match(
    seen.map(({ reason }) => reason),
    [{ message: 'enough' }, { message: 'enough' }],
  )
  ended.splice(0)
})

test('the first failure ends all, and is logged with its cause', async (t) => {
  const broken: Loop = { name: 'broken', run: async () => Promise.reject(new Error('No disk')) }
  const running = runLoops([untilStopped('a'), broken], new AbortController().signal, quietLog(t))
  await t.rejects(running, { message: 'Loop broken failed', cause: { message: 'No disk' } })
  t.same(ended.splice(0), ['a'], 'the other was ended first')
})

test('a loop that ends by itself has failed', async (t) => {
  const over: Loop = { name: 'over', run: async () => undefined }
  const running = runLoops([over, untilStopped('a')], new AbortController().signal, quietLog(t))
  await t.rejects(running, { message: 'Loop over failed', cause: { message: 'It ended by itself' } })
  ended.splice(0)
})

test('what loops refer to is released with the last reference to them', async (t) => {
  const begin = () => {
    const held = { name: 'held' }
    const loop: Loop = {
      name: 'a',
      run: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(void held.name))),
    }
    void runLoops([loop], new AbortController().signal, quietLog(t))
    return new WeakRef(held)
  }
  const held = begin()
  for (let i = 0; i < 3; i++) {
    await turn()
    collectGarbage()
  }
  t.equal(held.deref(), undefined)
})

test('loops that were started before the program end with its loop for them', async (t) => {
  const { running, run } = startLoops([untilStopped('a'), untilStopped('b')], quietLog(t))
  await turn()
  t.same(ended, [], 'they run')
  const stop = new AbortController()
  const own = run(stop.signal)
  stop.abort()
  await Promise.all([own, running])
  t.same(ended.splice(0), ['a', 'b'])
  const late = startLoops([untilStopped('c')], quietLog(t))
  await late.run(AbortSignal.abort())
  t.same(ended.splice(0), ['c'], 'it was stopped before')
})

test('the failure of a loop that was started before is that of its loop in the program', async (t) => {
  const failing: Loop = {
    name: 'a',
    run: async () => {
      throw new Error('no store')
    },
  }
  const { running, run } = startLoops([failing, untilStopped('b')], quietLog(t))
  await t.rejects(running, { message: 'Loop a failed' })
  await t.rejects(run(new AbortController().signal), { message: 'Loop a failed' })
  t.same(ended.splice(0), ['b'])
})
