import { getEventListeners } from 'node:events'
import { test } from 'tap'
import { aborted, unlessAborted, withOwnSignal } from './aborted.ts'

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

test('a signal that aborted before is not waited for, one that has not is', async (t) => {
  const stop = new AbortController()
  let ended = false
  const waiting = aborted(stop.signal).then(() => {
    ended = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(ended, false)
  t.equal(getEventListeners(stop.signal, 'abort').length, 1)
  stop.abort()
  await waiting
  const late = unlessAborted(new Promise((resolve) => setImmediate(resolve, 'late')), stop.signal)
  t.equal(await late, undefined)
})

test('work with a signal of its own ends with the outer signal, for the same reason', async (t) => {
  const outer = new AbortController()
  const reason = new Error('stopped')
  const given = await withOwnSignal(outer.signal, async (own) => {
    t.equal(own.signal.aborted, false)
    outer.abort(reason)
    return [own.signal.aborted, own.signal.reason === reason]
  })
  t.same(given, [true, true])
  t.same(getEventListeners(outer.signal, 'abort'), [])
  t.equal(await withOwnSignal(outer.signal, async ({ signal }) => signal.reason), reason, 'also when it aborted before')
})

test('work that aborts its own signal leaves the outer one alone, and no listener on it', async (t) => {
  const outer = new AbortController()
  const aborting = withOwnSignal(outer.signal, async (own) => {
    own.abort()
    return own.signal.aborted
  })
  t.equal(await aborting, true)
  t.equal(outer.signal.aborted, false)
  await t.rejects(
    withOwnSignal(outer.signal, () => Promise.reject(new Error('broken'))),
    { message: 'broken' },
  )
  t.same(getEventListeners(outer.signal, 'abort'), [])
  t.equal(await withOwnSignal(undefined, async ({ signal }) => signal.aborted), false, 'without an outer signal')
})
