import { getEventListeners } from 'node:events'
import { test } from 'tap'
import { aborted, unlessAborted, withDeadline } from './aborted.ts'

test('what is waited for comes, or the end does, and no listener is left behind', async (t) => {
  const { signal } = new AbortController()
  t.equal(await unlessAborted(Promise.resolve('here'), signal), 'here')
  await t.rejects(unlessAborted(Promise.reject(new Error('broken')), signal), { message: 'broken' })
  t.same(getEventListeners(signal, 'abort'), [])

  const stop = new AbortController()
  const waiting = unlessAborted(new Promise(() => undefined), stop.signal)
  stop.abort()
  t.equal(await waiting, undefined)
  t.equal(await unlessAborted(new Promise(() => undefined), stop.signal), undefined, 'also when it came before')
  await aborted(stop.signal)
})

test('work has a deadline, and ends with whoever asked for it; no listener is left behind', async (t) => {
  const asker = new AbortController()
  const endless = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  t.equal(await withDeadline(60_000, asker.signal, async ({ aborted }) => aborted), false)
  await t.rejects(withDeadline(5, asker.signal, endless), { message: 'Not done within 0.005 s' })
  t.same(getEventListeners(asker.signal, 'abort'), [])
  const waiting = withDeadline(60_000, asker.signal, endless)
  asker.abort(new Error('called off'))
  await t.rejects(waiting, { message: 'called off' })
  await t.rejects(withDeadline(60_000, asker.signal, endless), { message: 'called off' }, 'also when it came before')
})
