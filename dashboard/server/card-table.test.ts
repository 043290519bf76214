import { test } from 'tap'
import { cardTable } from './card-table.ts'

test('an object that is deleted and created again within a round is there', async (t) => {
  const states: readonly (object | undefined)[] = [{ at: 1 }, undefined, { at: 2 }]
  let reads = 0
  const table = cardTable(async (key) => {
    const card = states[reads++]
    if (reads === 2) table.mark(key)
    return card && { namespace: 'default', card }
  })
  table.mark('web-0')
  await table.take(10)
  table.mark('web-0')
  t.match(await table.take(10), [{ key: 'web-0', text: '{"at":2}' }])
})

function aTable(mostCards: number, isRanked = true) {
  const objects = new Map<string, number>()
  const card = (key: string) => {
    const at = objects.get(key)
    return at === undefined ? undefined : { namespace: 'default', card: { at }, ...(isRanked && { rank: at }) }
  }
  const table = cardTable(async (key) => card(key), mostCards)
  const put = (key: string, at: number | undefined) => {
    if (at === undefined) objects.delete(key)
    else objects.set(key, at)
    table.mark(key)
  }
  const keys = () => [...table.all()].map(({ key }) => key)
  return { table, put, keys }
}

test('with more objects than room the newest have cards, and pages learn which cards made room', async (t) => {
  const { table, put, keys } = aTable(2)
  for (const at of [3, 1, 2]) put(`e${at}`, at)
  await table.take(10)
  t.same(keys().toSorted(), ['e2', 'e3'])
  put('e9', 9)
  const changes = await table.take(10)
  t.match(changes, [
    { key: 'e2', text: undefined },
    { key: 'e9', text: '{"at":9}' },
  ])
  put('e0', 0)
  t.same(await table.take(10), [], 'an older one gets none')
  put('e1', 8)
  await table.take(10)
  t.same(keys().toSorted(), ['e1', 'e9'], 'one that happens again is among the newest')
})

for (const isRanked of [true, false]) {
  test(`an object without a card gets one when there is room, ${isRanked ? 'with' : 'without'} ranks`, async (t) => {
    const { table, put, keys } = aTable(2, isRanked)
    for (const at of [4, 3, 2, 1]) put(`e${at}`, at)
    await table.take(10)
    put('e4', undefined)
    t.match(await table.take(10), [{ key: 'e4', text: undefined }])
    await table.take(table.pending)
    t.same(keys(), ['e3', 'e2'])
    t.equal(table.pending, 0)
    put('e1', undefined)
    t.same(await table.take(10), [], 'one without a card goes without a change')
    for (const at of [3, 2]) put(`e${at}`, undefined)
    await table.take(10)
    t.same([keys(), table.pending], [[], 0])
  })
}
