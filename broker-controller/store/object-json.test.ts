import { test } from 'tap'
import { frozenCopy } from './frozen/frozen-copy.ts'
import { eventLine, jsonOf, jsonPieces, recentlyUsed } from './object-json.ts'

const aMap = (name: string) =>
  frozenCopy({ kind: 'ConfigMap', metadata: { name }, data: { text: 'ü "quoted" \u2028' } })

test('the pieces together are the JSON of the value', async (t) => {
  const values = [
    aMap('a'),
    { kind: 'List', metadata: { resourceVersion: '1' }, items: [] },
    { kind: 'List', metadata: { missing: undefined }, items: [aMap('a'), { not: 'frozen' }, aMap('b')] },
    { kind: 'Table', rows: [{ cells: ['a', 1] }, { cells: [] }], items: undefined },
    { items: [1, 'two', null, true] },
    { rows: [], items: [] },
    frozenCopy({ kind: 'List', items: [aMap('a')] }),
    [aMap('a')],
    'text',
    null,
    5,
  ]
  for (const value of values) {
    for (const pieceLength of [1, 20, 64 * 1024]) {
      const text = [...jsonPieces(value, pieceLength)].join('')
      t.same(JSON.parse(text), JSON.parse(JSON.stringify(value)))
      t.equal(text.length, JSON.stringify(value).length)
    }
  }
})

test('a long list comes in pieces of about the length that is asked for', async (t) => {
  const items = Array.from({ length: 1000 }, (_, i) => aMap(`map-${i}`))
  const lengths = [...jsonPieces({ kind: 'List', items }, 10_000)].map(({ length }) => length)
  t.ok(lengths.length > 5)
  t.ok(lengths.slice(0, -1).every((length) => length >= 10_000 && length < 10_200))
})

test('watches that show one version share the bytes of its event', async (t) => {
  const [map, same] = [aMap('a'), aMap('a')]
  t.equal(jsonOf(map), JSON.stringify(map))
  const line = eventLine('ADDED', map)
  t.equal(line.toString(), `{"type":"ADDED","object":${JSON.stringify(map)}}\n`)
  t.equal(eventLine('ADDED', map), line)
  t.match(eventLine('MODIFIED', map).toString(), /^\{"type":"MODIFIED"/)
  t.not(eventLine('ADDED', same), line)
  const changing = { kind: 'Table', rows: [1] }
  t.match(eventLine('ADDED', changing).toString(), /"rows":\[1\]/)
  changing.rows.push(2)
  t.match(eventLine('ADDED', changing).toString(), /"rows":\[1,2\]/, 'what is not frozen is not kept')
})

test('what is kept is bounded', async (t) => {
  const values = recentlyUsed<string>(100, 30_000)
  const keys = Array.from({ length: 20 }, (_, i) => ({ i }))
  for (const key of keys) values.set(key, `${key.i}`, 10)
  const kept = keys.filter((key) => values.get(key) !== undefined)
  t.ok(kept.length >= 5 && kept.length <= 10, `${kept.length} of 20 are kept`)
  t.equal(values.get(keys.at(-1) ?? {}), '19')
})

test('what is kept is dropped some time after its last burst', async (t) => {
  const planned: { readonly ms: number; readonly act: () => void }[] = []
  const values = recentlyUsed<string>(100, 30_000, (ms, act) => void planned.push({ ms, act }))
  const [first, second] = [{}, {}]
  values.set(first, 'first', 10)
  values.set(second, 'second', 10)
  t.same(
    planned.map(({ ms }) => ms),
    [30_000],
    'one turn for all of them',
  )
  planned.shift()?.act()
  t.equal(values.get(first), 'first', 'until the second turn')
  planned.shift()?.act()
  t.equal(values.get(first), undefined)
  t.equal(planned.length, 0, 'nothing is planned where nothing is kept')
  values.set(first, 'again', 10)
  t.equal(planned.length, 1)
})
