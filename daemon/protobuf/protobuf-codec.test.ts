import { test } from 'tap'
import {
  boolValue,
  bytesValue,
  id64,
  int64,
  messageCodec,
  messageList,
  oneMessage,
  textList,
  textMap,
  textValue,
} from './protobuf-codec.ts'

const inner = messageCodec({ name: [1, textValue] })
const codec = messageCodec({
  count: [1, int64],
  id: [2, id64],
  on: [3, boolValue],
  raw: [4, bytesValue],
  inner: [5, oneMessage(inner)],
  many: [16, messageList(inner)],
})

test('a message is read as it was written', async (t) => {
  const value = {
    count: Number.MAX_SAFE_INTEGER,
    id: '7587876543210987654',
    on: true,
    raw: Buffer.from([0, 255]),
    inner: { name: 'größe' },
    many: [{ name: 'a' }, { name: '' }, { name: 'c' }],
  }
  t.same(codec.decode(codec.encode(value)), value)
  t.same(codec.decode(codec.encode({ count: -1, id: '-1' })), {
    count: -1,
    id: '-1',
    on: false,
    raw: Buffer.alloc(0),
    inner: undefined,
    many: [],
  })
})

test('the bytes are those of the protobuf encoding', async (t) => {
  // protobuf.dev, "Encoding": field 1 with 150 is 08 96 01, a text "testing" in field 2 is 12 07 and its bytes.
  t.same(messageCodec({ a: [1, int64] }).encode({ a: 150 }), Buffer.from('089601', 'hex'))
  t.same(messageCodec({ b: [2, textValue] }).encode({ b: 'testing' }), Buffer.from('120774657374696e67', 'hex'))
  t.same(codec.encode({ count: 0, id: '', on: false, raw: Buffer.alloc(0), many: [] }), Buffer.alloc(0))
  t.same(codec.encode({ inner: {} }), Buffer.from('2a00', 'hex'), 'a message that is there and empty is written')
})

test('fields that are unknown are skipped, of every wire type', async (t) => {
  const unknown = Buffer.from('f80101' + 'f9010102030405060708' + 'fa0102ffff' + 'fd0101020304' + '0805', 'hex')
  t.equal(codec.decode(unknown).count, 5)
})

test('bytes that are not a message are refused', async (t) => {
  for (const hex of ['08', '08ffffffffffffffffffffff01', '2205aa', '0b', '0a00', '2001']) {
    t.throws(() => codec.decode(Buffer.from(hex, 'hex')), RangeError, hex)
  }
})

test('lists and maps of texts are read as they were written, empty ones as well', async (t) => {
  const codec = messageCodec({ keys: [1, textList], map: [2, textMap] })
  const value = { keys: ['a', '', 'größe'], map: { b: '1', a: '', __proto__x: '2' } }
  t.same(codec.decode(codec.encode(value)), value)
  t.same(codec.decode(codec.encode({})), { keys: [], map: {} })
  // The bytes as protoc writes them: two pairs of one key, of which the second counts.
  const twice = Buffer.from('12060a01611201311206' + '0a0161120132', 'hex')
  t.same(codec.decode(twice), { keys: [], map: { a: '2' } })
  const own = codec.decode(Buffer.from('120e0a095f5f70726f746f5f5f120131', 'hex'))
  t.ok(Object.hasOwn(own.map, '__proto__'), 'a key is never more than a key')
})
