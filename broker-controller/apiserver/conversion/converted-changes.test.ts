import { test } from 'tap'
import { ApiError, expired } from '../../../api/api-error.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import type { AnyStored, WatchEvent } from '../../store/store.ts'
import { convertedChanges } from './converted-changes.ts'
import { convertedObjects } from './converted-objects.ts'

type Event = WatchEvent<'pods'>

test('changes come in their order, and a reader is behind until they are converted', async (t) => {
  const { cursor, store, calls, settle } = aCursor()
  store.add('a', 'b')
  t.equal(cursor.isBehind, false)
  t.equal(cursor.next(), undefined, 'the webhook is asked')
  t.equal(cursor.isBehind, true, 'no bookmark may pass them')
  let ready = 0
  cursor.onReady(() => ready++)
  store.add('c')
  t.equal(cursor.next(), undefined)
  calls.answer()
  await settle()
  t.equal(ready, 1)
  t.same([cursor.next(), cursor.next()].map(nameOf), ['v2 a', 'v2 b'], 'together')
  t.equal(cursor.next(), undefined)
  calls.answer()
  await settle()
  t.equal(nameOf(cursor.next()), 'v2 c')
  t.equal(cursor.next(), undefined)
  t.equal(cursor.isBehind, false)
  t.equal(calls.made, 2)
})

test('a change that cannot be converted ends the changes, after others that can, and after it was tried again', async (t) => {
  const { cursor, store, calls, settle, clock } = aCursor()
  store.add('a', 'bad')
  t.equal(cursor.next(), undefined)
  calls.answer((names) => {
    if (names.includes('bad')) throw new ApiError('InternalError', `cannot convert ${names.join()}`)
  })
  await settle()
  t.equal(cursor.next()?.object.metadata.name, 'a')
  t.equal(cursor.next(), undefined)
  await settle()
  await clock.advance(1_000)
  await clock.advance(4_000)
  await settle()
  t.match(thrownBy(cursor), { reason: 'InternalError', message: 'cannot convert bad' })
  t.match(thrownBy(cursor), { reason: 'InternalError' })
})

test('changes that the store no longer has end a reader after those that it took', async (t) => {
  const { cursor, store, calls, settle } = aCursor()
  store.add('a')
  store.expire()
  t.equal(cursor.next(), undefined)
  calls.answer()
  await settle()
  t.equal(nameOf(cursor.next()), 'v2 a')
  t.match(thrownBy(cursor), { reason: 'Expired' })
})

test('readers of the same objects share a call, and a failure of one object is not that of another', async (t) => {
  const { objects, calls } = someObjects()
  const [a, b] = [anObject('a'), anObject('b')]
  const both = objects.all([a, b])
  const alone = objects.one(b)
  await calls.begun(1)
  calls.answer((names) => {
    if (names.includes('a')) throw new ApiError('InternalError', 'a')
  })
  await t.rejects(both, { message: 'a' })
  t.match(await alone, { apiVersion: 'example.com/v2', metadata: { name: 'b' } })
  t.equal(calls.made, 2)
  t.equal(objects.known(b)?.metadata.name, 'b')
  t.ok(objects.bytes > 0)
  objects.forget()
  t.equal(objects.known(b), undefined)
  t.equal(objects.bytes, 0)
})

test('a long list is converted in parts', async (t) => {
  const { objects, calls } = someObjects()
  calls.answer()
  const list = Array.from({ length: 250 }, (_, index) => anObject(`shop-${index}`))
  const converted = await objects.all([...list, anObject('large', 'x'.repeat(500_000))])
  t.equal(converted.length, 251)
  t.same(converted.map(({ metadata }) => metadata.name).slice(0, 2), ['shop-0', 'shop-1'])
  t.ok(calls.made >= 4, `${calls.made} calls`)
})

function thrownBy(cursor: { next(): unknown }): unknown {
  try {
    return cursor.next()
  } catch (error) {
    return error
  }
}

function nameOf(event: { readonly object: AnyStored } | undefined): string | undefined {
  return event && `${String(event.object['apiVersion']).replace('example.com/', '')} ${event.object.metadata.name}`
}

function anObject(name: string, text = ''): AnyStored {
  const metadata = { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '' }
  return { apiVersion: 'example.com/v1', kind: 'Shop', metadata, text } as AnyStored
}

/** Calls wait for `answer`; from then on all are answered by the same rule. */
function someObjects() {
  const clock = fakeClock()
  let rule: ((names: readonly string[]) => void) | undefined
  let made = 0
  const waiting: (() => void)[] = []
  const objects = convertedObjects({
    apiVersion: 'example.com/v2',
    clock,
    onKept: () => undefined,
    async together(given) {
      made += 1
      if (rule === undefined) await new Promise<void>((resolve) => waiting.push(resolve))
      rule?.(given.map(({ metadata }) => metadata.name))
      return given.map((one) => ({ ...one, apiVersion: 'example.com/v2' }))
    },
  })
  const calls = {
    get made() {
      return made
    },
    async begun(count: number) {
      while (made < count) await new Promise((resolve) => setImmediate(resolve))
    },
    answer(given: (names: readonly string[]) => void = () => undefined) {
      rule = given
      for (const resume of waiting.splice(0)) resume()
    },
  }
  return { objects, calls, clock }
}

function aCursor() {
  const { objects, calls, clock } = someObjects()
  const events: Event[] = []
  let isExpired = false
  let version = 0
  const changes = {
    ended: false,
    next() {
      const event = events.shift()
      if (event === undefined && isExpired) throw expired(1, 2)
      return event
    },
    onReady: () => () => undefined,
  }
  const store = {
    add(...names: readonly string[]) {
      for (const name of names) {
        version += 1
        events.push({ type: 'ADDED', object: anObject(name), previous: undefined, version } as unknown as Event)
      }
    },
    expire() {
      isExpired = true
    },
  }
  return { cursor: convertedChanges(changes, objects, clock), store, calls, clock, settle: clock.settle }
}
