import { test } from 'tap'
import { readName, writeName } from './dns-name.ts'

test('a name is read in lower case, and written as it was', async (t) => {
  const bytes = Buffer.from([3, 0x57, 0x65, 0x42, 2, 0x2e, 0x5c, 1, 0x00, 0])
  t.same(readName(bytes, 0, false), { name: 'web.\\046\\092.\\000', end: 10 })
  t.same(writeName('web.\\046\\092.\\000'), Uint8Array.from([3, 0x77, 0x65, 0x62, 2, 0x2e, 0x5c, 1, 0x00, 0]))
  t.same([...(writeName('') ?? [])], [0])
  for (const name of ['a..b', '.a', 'a.', 'x'.repeat(64), `${'x'.repeat(60)}.`.repeat(5)]) {
    t.equal(writeName(name), undefined, name)
  }
})

test('a name of 255 bytes is the longest, and a label of 63', async (t) => {
  const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 'x')])
  const longest = Buffer.concat([label, label, label, Buffer.from([61]), Buffer.alloc(61, 'x'), Buffer.from([0])])
  t.equal(longest.length, 255)
  t.equal(readName(longest, 0, false)?.end, 255)
  const longer = Buffer.concat([label, label, label, Buffer.from([62]), Buffer.alloc(62, 'x'), Buffer.from([0])])
  t.equal(readName(longer, 0, false), undefined)
  t.equal(readName(Buffer.from([64, ...Buffer.alloc(64), 0]), 0, false), undefined)
  t.equal(readName(longest.subarray(0, 254), 0, false), undefined, 'its end is missing')
})

test('pointers lead backwards only, and not without end', async (t) => {
  const bytes = Buffer.from([1, 0x61, 0, 1, 0x62, 0xc0, 0, 0xc0, 7, 0xc0, 3])
  t.same(readName(bytes, 3, true), { name: 'b.a', end: 7 })
  t.same(readName(bytes, 9, true), { name: 'b.a', end: 11 })
  t.equal(readName(bytes, 3, false), undefined, 'a question has none')
  t.equal(readName(bytes, 7, true), undefined, 'to itself')
  t.equal(readName(Buffer.from([0xc0]), 0, true), undefined)
  const chain = Buffer.alloc(100)
  for (let at = 2; at < 100; at += 2) chain.writeUInt16BE(0xc000 + at - 2, at)
  t.equal(readName(chain, 98, true), undefined, 'a chain that costs time')
  t.same(readName(chain, 20, true), { name: '', end: 22 })
})

test('bytes that are not those of a name are refused', async (t) => {
  const bad: readonly (readonly number[])[] = [[], [1], [1, 0x61], [2, 0x61, 0], [0x40], [0x80, 0], [0xc0, 0]]
  for (const bytes of bad) t.equal(readName(Uint8Array.from(bytes), 0, true), undefined, JSON.stringify(bytes))
  t.same(readName(Uint8Array.from([0]), 0, false), { name: '', end: 1 })
  t.equal(readName(Uint8Array.from([0]), 1, false), undefined, 'it would begin after the end')
})

test('the bytes of a label that are not printable are numbers, and the others are as they are', async (t) => {
  const bytes = [0x00, 0x20, 0x21, 0x2d, 0x5f, 0x7e, 0x7f, 0xff]
  const name = String.raw`\000\032!-_~\127\255`
  t.equal(readName(Uint8Array.from([bytes.length, ...bytes, 0]), 0, false)?.name, name)
  t.same(writeName(name), Uint8Array.from([bytes.length, ...bytes, 0]))
  t.equal(writeName(`${'x'.repeat(62)}${String.raw`\046`}`)?.length, 65, 'a number is one byte')
})

test('a name of pointers may have 16 of them, and as many bytes as one without', async (t) => {
  const chain = Buffer.alloc(60)
  for (let at = 2; at < 60; at += 2) chain.writeUInt16BE(0xc000 + at - 2, at)
  t.same(readName(chain, 32, true), { name: '', end: 34 })
  t.equal(readName(chain, 34, true), undefined)
  const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 'x')])
  const half = Buffer.concat([label, label, Buffer.from([0])])
  const whole = Buffer.concat([half, label, Buffer.from([62]), Buffer.alloc(62, 'x'), Buffer.from([0xc0, 0])])
  t.equal(readName(whole, half.length, true), undefined)
  const shorter = Buffer.concat([half, label, Buffer.from([61]), Buffer.alloc(61, 'x'), Buffer.from([0xc0, 0])])
  t.equal(readName(shorter, half.length, true)?.name.length, 253)
})
