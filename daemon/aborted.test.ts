import { getEventListeners } from 'node:events'
import { test } from 'tap'
import { aborted, unlessAborted } from './aborted.ts'

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
