import { test } from 'tap'
import { fuzzSeed, mutatedBytes, randomNumbers, randomPieces } from '../../../daemon/testing/fuzz.ts'
import {
  type JsonShape,
  jsonReader,
  mostElements,
  mostKeptBytes,
  mostProseBytes,
  mostTextBytes,
} from './json-reader.ts'

const rowsShape = {
  list: {
    fields: {
      Id: 'text',
      Names: { list: 'text', most: 2 },
      Labels: { fields: { 'bramble.dev/node': 'text' } },
      Networks: { map: { fields: { NetworkID: 'text' } } },
      Error: 'prose',
      Size: 'number',
      Up: 'flag',
    },
  },
} as const satisfies JsonShape

function read<S extends JsonShape>(shape: S, text: string, pieceBytes = 10_000) {
  const [reader, bytes] = [jsonReader(shape), Buffer.from(text)]
  const values = []
  for (let at = 0; at < bytes.length; at += pieceBytes) values.push(...reader.read(bytes.subarray(at, at + pieceBytes)))
  return values
}

const row = {
  Command: ['sh', { deep: [[{}, [], 'a "quoted" \\ text']] }],
  Id: 'é"\\/\u0001😀',
  Names: ['one', 'two', 'three'],
  Labels: { other: 'x', 'bramble.dev/node': 'pi-1', more: null },
  Networks: { a: { NetworkID: '1', Gateway: 'g' }, ['__proto__']: { NetworkID: '2' } },
  Error: 'why',
  Size: -1.5e3,
  Up: false,
}
const kept = {
  Id: row.Id,
  Names: ['one', 'two'],
  Labels: { 'bramble.dev/node': 'pi-1' },
  Networks: { a: { NetworkID: '1' } },
  Error: 'why',
  Size: -1500,
  Up: false,
}

test('what the shape names is kept, wherever the bytes are cut', async (t) => {
  const text = `${JSON.stringify([row, {}, row], null, 1)}\n`
  for (const size of [1, 2, 3, 7, 64, 10_000]) {
    const [value] = read(rowsShape, text, size)
    t.equal(value?.length, 3, `${size} bytes at a time`)
    t.same(
      Object.entries(value?.[0]?.Networks ?? {}).map(([name]) => name),
      ['a', '__proto__'],
    )
    t.match(value, [kept, {}, kept])
    t.notOk('Command' in (value?.[0] ?? {}) || 'other' in (value?.[0]?.Labels ?? {}))
  }
})

test('a value of another type is left out, and so is null', async (t) => {
  const other = { Id: 1, Names: 'x', Labels: [], Networks: null, Error: {}, Size: '5', Up: 0 }
  t.same(read(rowsShape, JSON.stringify([other])), [[{}]])
  t.same(read({ list: 'text' }, '["a", 1, null, {"x": "y"}, ["z"], "b"]'), [['a', 'b']])
})

test('the values of a stream are read one after the other', async (t) => {
  const shape = { fields: { id: 'text' } } as const
  t.same(read(shape, '{"id":"a"}\r\n{"id":"b","x":[1]}{"id":"c"}\n', 3), [{ id: 'a' }, { id: 'b' }, { id: 'c' }])
})

test('a long text is left out, one for people is cut, and only the first elements are kept', async (t) => {
  const long = (bytes: number) => 'é'.repeat(bytes / 2)
  const text = JSON.stringify([
    { Id: long(mostTextBytes), Error: `${long(mostProseBytes)}x` },
    { Id: `${long(mostTextBytes)}x` },
  ])
  t.same(read(rowsShape, text, 1_000), [[{ Id: long(mostTextBytes), Error: long(mostProseBytes) }, {}]])
  const escaped = JSON.stringify([{ Error: `${'x'.repeat(mostProseBytes - 3)}\u0001${'y'.repeat(100)}` }])
  t.same(read(rowsShape, escaped), [[{ Error: 'x'.repeat(mostProseBytes - 3) }]], 'not within an escape')
  const many = Array.from({ length: mostElements + 5 }, (_, index) => index)
  t.equal(read({ fields: { many: { list: 'number' } } }, JSON.stringify({ many }))[0]?.many?.length, mostElements)
  t.equal(read({ list: 'number' }, JSON.stringify(many))[0]?.length, many.length, 'of the rows all')
  const named = JSON.stringify(Object.fromEntries(many.map((index) => [`n${index}`, index])))
  t.equal(Object.keys(read({ map: 'number' }, named)[0] ?? {}).length, mostElements)
})

test('an entry with a name that is too long is left out', async (t) => {
  const long = 'x'.repeat(mostTextBytes + 1)
  t.same(read({ map: 'number' }, `{"${long}": 1, "a": 2, "${long}y": 3}`), [{ a: 2 }])
})

test('an answer of which too much would be kept is refused', async (t) => {
  const rows = (id: string, count: number) => `[${`{"Id":"${id}"},`.repeat(count)}{}]`
  t.throws(() => read(rowsShape, rows('x'.repeat(4_000), mostKeptBytes / 4_000)), /Docker's answer is too large/)
  t.throws(() => read(rowsShape, `[${'{},'.repeat(mostKeptBytes / 64)}{}]`), /Docker's answer is too large/)
  t.equal(read(rowsShape, rows('x'.repeat(64), 10_000))[0]?.length, 10_001)
  const named = `{${Array.from({ length: 900 }, (_, index) => `"${'x'.repeat(4_000)}${index}":0`).join()}}`
  t.throws(
    () => read({ list: { map: 'number' } }, `[${`${named},`.repeat(5)}{}]`),
    /Docker's answer is too large/,
    'names',
  )
})

test('what is not JSON of the API is refused', async (t) => {
  for (const text of ['null ', '"text"', '5 ', '{}', '[}', ']', 'hello ', '[{"Size":1x}]', '[{"Id":"\\x"}]']) {
    t.throws(() => read(rowsShape, text), /Docker sent invalid JSON/, text)
  }
  t.throws(() => read({ fields: {} }, '[]'), /Docker sent invalid JSON/)
  t.same(read(rowsShape, '[{"Id":"cut'), [])
})

test('no bytes crash the reader, and honest ones are read as JSON.parse reads them', async (t) => {
  const random = randomNumbers()
  const texts = ['', 'a', '"', '\\', '\\\\"', '\u2028', '😀', 'x'.repeat(300)]
  for (let round = 0; round < 1_000; round++) {
    const text = () => texts[random() % texts.length] ?? ''
    const rows = Array.from({ length: random() % 5 }, () => ({
      [text()]: { [text()]: text() },
      Id: text(),
      Size: random(),
    }))
    const bytes = Buffer.from(JSON.stringify(rows))
    const reader = jsonReader(rowsShape)
    const values = [...randomPieces(bytes, 50, random)].flatMap((piece) => reader.read(piece))
    if (JSON.stringify(values) !== JSON.stringify([rows.map(({ Id, Size }) => ({ Id, Size }))])) {
      t.fail(`seed ${fuzzSeed}, round ${round}: ${bytes} became ${JSON.stringify(values)}`)
    }
    const hostile = jsonReader(rowsShape)
    try {
      for (const piece of randomPieces(mutatedBytes(bytes, random), 50, random)) hostile.read(piece)
    } catch (error) {
      if (!/Docker sent invalid JSON/.test(String(error))) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
    }
  }
  t.pass()
})
