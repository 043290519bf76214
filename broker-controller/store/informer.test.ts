import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { informer } from './informer.ts'
import { memoryStore } from './memory-store.ts'

test('an informer passes on all objects, then each change, until it is stopped', async (t) => {
  const [clock, stop] = [fakeClock(), new AbortController()]
  const store = memoryStore({ clock })
  const aMap = (name: string, value: string) =>
    ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { value } }) as const
  await store.create('configmaps', aMap('old', '1'))
  const changes: string[] = []
  const maps = informer({ store, clock, log: quietLog(t) }, 'configmaps', (present, previous) => {
    changes.push(`${(present ?? previous)?.metadata.name} ${previous?.data?.['value']} ${present?.data?.['value']}`)
  })
  const ended = maps.run(stop.signal)
  await maps.listed
  t.same(changes, ['old undefined 1'])
  await store.create('configmaps', aMap('new', '2'))
  await store.update('configmaps', aMap('old', '3'))
  await store.delete('configmaps', { namespace: 'default', name: 'new' })
  await clock.settle()
  t.same(changes.slice(1), ['new undefined 2', 'old 1 3', 'new 2 undefined'])
  t.same([...maps.all()].length, 1)
  stop.abort()
  await ended
})

test('an object that its listener cannot handle keeps no other one from it', async (t) => {
  const [clock, stop, log] = [fakeClock(), new AbortController(), quietLog(t, 'Change of an object not handled')]
  const store = memoryStore({ clock })
  const aMap = (name: string) =>
    ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }) as const
  await store.create('configmaps', aMap('bad'))
  await store.create('configmaps', aMap('good'))
  const handled: (string | undefined)[] = []
  const maps = informer({ store, clock, log }, 'configmaps', (present) => {
    if (present?.metadata.name === 'bad') throw new RangeError('not a quantity')
    handled.push(present?.metadata.name)
  })
  const ended = maps.run(stop.signal)
  await maps.listed
  await store.create('configmaps', aMap('next'))
  await clock.settle()
  t.same(handled, ['good', 'next'])
  t.match(log.lines, [{ level: 'error', facts: { resource: 'configmaps', object: 'default/bad' } }])
  stop.abort()
  await ended
})

test('a store that is closed under a follower ends it, with the reason', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const maps = informer({ store, clock, log: quietLog(t) }, 'configmaps', () => undefined)
  const ended = maps.run(new AbortController().signal)
  await maps.listed
  await store.close()
  await t.rejects(ended, { message: 'The watch of configmaps ended: the store was closed' })
})

test('who waits for the list waits no longer than the following goes on', async (t) => {
  const clock = fakeClock()
  const maps = informer({ store: memoryStore({ clock }), clock, log: quietLog(t) }, 'configmaps', () => undefined)
  await maps.run(AbortSignal.abort())
  await maps.listed
  t.same([...maps.all()], [])
})

test('a list of very many objects leaves turns of the event loop to others', async (t) => {
  const [clock, stop] = [fakeClock(), new AbortController()]
  const store = memoryStore({ clock })
  for (let at = 0; at < 40; at++) {
    const metadata = { name: `m-${at}`, namespace: 'default' }
    await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata })
  }
  let [turns, handled] = [0, 0]
  const maps = informer({ store, clock, log: quietLog(t) }, 'configmaps', () => {
    handled += 1
    for (const until = performance.now() + 5; performance.now() < until; );
  })
  const ended = maps.run(stop.signal)
  const count = () => {
    turns += 1
    if (handled < 40) setImmediate(count)
  }
  setImmediate(count)
  await maps.listed
  t.equal(handled, 40)
  t.ok(turns >= 4, `${turns} turns`)
  stop.abort()
  await ended
})
