import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { usageIndex } from './usage-index.ts'

const kind = { id: 'configmaps', name: 'configmaps', group: '', namespaced: true } as const
const place = { kind, namespace: 'default', scopes: [] }
const map = (name: string) =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }) as const

async function aStoreWith(count: number) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  for (let at = 0; at < count; at++) await store.create('configmaps', map(`m${at}`))
  return { store, index: usageIndex({ store, clock }) }
}

const countOf = (index: ReturnType<typeof usageIndex>) => Number(index.used(place, [])?.get('configmaps')?.nano) / 1e9

/** Turns of the event loop until `work` is done. */
async function turnsOf(work: Promise<void>): Promise<number> {
  let turns = 0
  let isDone = false
  const end = work.then(() => {
    isDone = true
  })
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve))
    turns++
  }
  await end
  return turns
}

test('a namespace is counted in pieces', async (t) => {
  const { index } = await aStoreWith(2000)
  const turns = await turnsOf(index.refresh([place]))
  t.ok(turns >= 14, `${turns} turns for 2,000 objects, twice 250 at a time`)
  t.equal(countOf(index), 2000)
  t.ok((await turnsOf(index.refresh([place]))) <= 2, 'counted once')
})

test('what is written while a namespace is counted counts once', async (t) => {
  const { store, index } = await aStoreWith(2000)
  const counting = index.refresh([place])
  let isDone = false
  const end = counting.then(() => {
    isDone = true
  })
  for (let at = 0; !isDone; at++) {
    await new Promise((resolve) => setImmediate(resolve))
    await store.create('configmaps', map(`new${at}`))
    await store.delete('configmaps', { namespace: 'default', name: `m${at}` })
    if (at % 2 === 0) await store.create('configmaps', map(`more${at}`))
    if (at % 3 === 0) index.changedNamespaces()
  }
  await end
  await index.refresh([place])
  t.equal(countOf(index), (await store.list('configmaps', 'default')).items.length)
})

test('two that ask at the same time have the same count', async (t) => {
  const { index } = await aStoreWith(600)
  await Promise.all([index.refresh([place]), index.refresh([place])])
  t.equal(countOf(index), 600)
})
