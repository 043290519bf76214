import { test } from 'tap'
import { heapOfTexts } from '../../testing/heap-of-texts.ts'
import { commonTexts } from './common-texts.ts'

const other = 'z'.repeat(490)

test('equal texts are held once', async (t) => {
  heapOfTexts(10, commonTexts())
  const each = heapOfTexts(5_000, (text) => text)
  const shared = heapOfTexts(5_000, commonTexts())
  t.ok(each > 2_000_000, `${each} bytes when each is held`)
  t.ok(shared < each / 10, `${shared} bytes when they are shared`)
})

test('a text comes back as it was given, also when it is not kept', async (t) => {
  const share = commonTexts({ places: 1, length: 1000 })
  const texts = ['', 'a', 'True', 'ü'.repeat(600), 'y'.repeat(500), 'True', 'False', 'True', 'Unknown', 'y'.repeat(501)]
  for (const text of [...texts, ...texts]) t.equal(share(text), text)
})

test('texts that differ in one character are different texts', async (t) => {
  const share = commonTexts({ places: 2, length: 100_000 })
  const letters = 'x'.repeat(60)
  for (let at = 0; at < letters.length; at++) {
    const text = `${letters.slice(0, at)}y${letters.slice(at + 1)}`
    t.equal(share(text), text)
  }
  t.equal(share(letters), letters)
})

test('what is kept is bounded by number and by length', async (t) => {
  const forget = (keep: (text: string) => string) => (text: string) => {
    keep(text)
    return other
  }
  const distinct = (i: number) => `${i} ${'x'.repeat(490)} ${i}`
  const few = heapOfTexts(5_000, forget(commonTexts({ places: 64, length: 10_000_000 })), distinct)
  t.ok(few < 500_000, `${few} bytes of 5,000 texts where 128 are kept`)
  const short = heapOfTexts(5_000, forget(commonTexts({ places: 8192, length: 50_000 })), distinct)
  t.ok(short < 500_000, `${short} bytes of 2.5 MB where 50,000 characters are kept`)
})

test('a text that is used stays while others pass', async (t) => {
  const share = commonTexts({ places: 64, length: 100_000 })
  const bytes = heapOfTexts(5_000, (text) => {
    for (let i = 0; i < 4; i++) share(`${Math.random()}`)
    return share(text)
  })
  t.ok(bytes < 500_000, `${bytes} bytes`)
})
