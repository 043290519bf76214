import { test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { type FakeClock, fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { AnyStored, Store } from '../../store/store.ts'
import { transition, type WatchOptions, watchLines } from './watch.ts'

type Line = { readonly type: string; readonly object: { readonly metadata: { readonly [field: string]: unknown } } }

const aMap = (name: string, labels: { [key: string]: string } = {}, namespace = 'default'): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels },
})

const everything: WatchOptions = {
  namespace: undefined,
  from: undefined,
  matches: () => true,
  bookmarks: false,
  markInitialEnd: false,
  timeoutMs: undefined,
  shown: (object) => object,
  bookmark: (metadata) => ({ metadata }),
  emptyList: () => '{}',
}

type Watched = {
  readonly store: Store
  readonly clock: FakeClock
  /** The next lines, as `TYPE name`. */
  readonly next: (count: number) => Promise<string[]>
  readonly line: () => Promise<Line | undefined>
  readonly end: () => void
}

function watching(options: Partial<WatchOptions> = {}, history?: number): Watched {
  const clock = fakeClock()
  const store = memoryStore({ clock, ...(history !== undefined && { historyLength: history }) })
  const ending = new AbortController()
  const lines = watchLines({ store, clock }, 'configmaps', { ...everything, ...options }, ending.signal)
  const line = async () => {
    const { done, value } = await lines.next()
    return done ? undefined : (JSON.parse(Buffer.from(value).toString()) as Line)
  }
  return {
    store,
    clock,
    line,
    end: () => ending.abort(),
    async next(count) {
      const seen: string[] = []
      for (let left = count; left > 0; left--) {
        const got = await line()
        seen.push(got === undefined ? 'end' : `${got.type} ${got.object.metadata['name']}`)
      }
      return seen
    },
  }
}

test('a watch without a resourceVersion sends all objects first, then the changes', async (t) => {
  const { store, next, end } = watching()
  await store.create('configmaps', aMap('a'))
  t.same(await next(1), ['ADDED a'])
  await store.create('configmaps', aMap('b'))
  await store.update('configmaps', aMap('a', { x: '1' }))
  await store.delete('configmaps', { namespace: 'default', name: 'a' })
  t.same(await next(3), ['ADDED b', 'MODIFIED a', 'DELETED a'])
  end()
  t.same(await next(1), ['end'])
})

test('a watch from a resourceVersion sends only later changes', async (t) => {
  const { store, next, end } = watching({ from: '1' })
  await store.create('configmaps', aMap('a'))
  await store.create('configmaps', aMap('b'))
  t.same(await next(1), ['ADDED b'])
  end()
})

test('a bookmark marks the end of the initial events on request', async (t) => {
  const { store, next, line, end } = watching({ markInitialEnd: true })
  await store.create('configmaps', aMap('a'))
  t.same(await next(1), ['ADDED a'])
  const annotations = {
    'k8s.io/initial-events-end': 'true',
    'kubernetes.io/initial-events-list-blueprint': Buffer.from('{}').toString('base64'),
  }
  t.match(await line(), {
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: '1', annotations } },
  })
  end()
})

test('an object that begins to match is added, one that ceases to is deleted', async (t) => {
  const { store, line, next, end } = watching({
    namespace: 'default',
    from: '0',
    matches: (object) => object.metadata.labels?.['app'] === 'web',
  })
  await store.create('configmaps', aMap('a'))
  await store.create('configmaps', aMap('elsewhere', { app: 'web' }, 'other'))
  await store.update('configmaps', aMap('a', { app: 'web' }))
  await store.update('configmaps', aMap('a', { app: 'web', x: '1' }))
  await store.update('configmaps', aMap('a', { app: 'db' }))
  t.same(await next(2), ['ADDED a', 'MODIFIED a'])
  t.match(
    await line(),
    { type: 'DELETED', object: { metadata: { name: 'a', labels: { app: 'web' }, resourceVersion: '5' } } },
    'as it last matched, with the version at which it ceased to',
  )
  await store.delete('configmaps', { namespace: 'default', name: 'a' })
  await store.create('configmaps', aMap('b', { app: 'web' }))
  t.same(await next(1), ['ADDED b'], 'its deletion is not sent, because it did not match before')
  end()
})

test('a watch whose selector hides many changes lets other work be done in between', async (t) => {
  const { store, next, end } = watching({ from: '1', matches: ({ metadata }) => metadata.name === 'last' }, 2_000)
  for (let index = 0; index < 1_000; index++) await store.create('configmaps', aMap(`hidden-${index}`))
  await store.create('configmaps', aMap('last'))
  let turns = 0
  const count = () => {
    turns++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  t.same(await next(1), ['ADDED last'])
  clearImmediate(counting)
  t.ok(turns >= 2, `${turns} turns`)
  end()
})

test('a compacted or unknown resourceVersion gives an ERROR event in the stream', async (t) => {
  const { store, line, next } = watching({ from: '1' }, 2)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await store.create('configmaps', aMap(name))
  t.match(await line(), {
    type: 'ERROR',
    object: { kind: 'Status', code: 410, reason: 'Expired', message: /too old resource version/ },
  })
  t.same(await next(1), ['end'])
  t.match(await watching({ from: '99' }).line(), { type: 'ERROR', object: { code: 410 } })
})

test('a quiet watch gets a bookmark each minute', async (t) => {
  const { store, clock, line, end } = watching({ from: '0', bookmarks: true })
  await store.create('configmaps', aMap('a'))
  t.match(await line(), { type: 'ADDED', object: { metadata: { resourceVersion: '1' } } })
  const first = line()
  await clock.advance(60_000)
  t.match(await first, { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1' } } })
  const second = line()
  await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' } })
  await clock.advance(60_000)
  t.match(await second, { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1' } } })
  const third = line()
  await clock.advance(60_000)
  t.match(
    await third,
    { type: 'BOOKMARK', object: { metadata: { resourceVersion: '2' } } },
    'changes of other kinds carry it on, one bookmark later',
  )
  end()
})

test('a watch ends after its timeout, and when the client disconnects', async (t) => {
  const { clock, line } = watching({ timeoutMs: 5000 })
  const last = line()
  await clock.advance(5000)
  t.equal(await last, undefined)
  const gone = watching()
  gone.end()
  t.equal(await gone.line(), undefined)
})

test('a watch sends the column definitions once', async (t) => {
  const { store, line, end } = watching({ shown: (_, first) => ({ first }) })
  await store.create('configmaps', aMap('a'))
  await store.create('configmaps', aMap('b'))
  t.match(await line(), { object: { first: true } })
  t.match(await line(), { object: { first: false } })
  end()
})

test('the type of a watch event depends on what matched before', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const object: AnyStored = await store.create('configmaps', aMap('a'))
  const seen = transition({ type: 'MODIFIED', object, previous: undefined, version: 1 }, () => true)
  t.match(seen, { type: 'ADDED' }, 'without a before it is new')
  t.equal(
    transition({ type: 'DELETED', object, previous: object, version: 1 }, () => false),
    undefined,
  )
})
