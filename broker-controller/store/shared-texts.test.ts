import { test } from 'tap'
import { heapOfTexts as heapOf } from '../testing/heap-of-texts.ts'
import { sharedTexts } from './shared-texts.ts'

const other = 'z'.repeat(490)

test('equal texts are held once', async (t) => {
  const limits = { texts: 32_768, length: 2 * 1024 * 1024 }
  heapOf(10, sharedTexts(limits))
  const each = heapOf(5_000, (text) => text)
  const shared = heapOf(5_000, sharedTexts(limits))
  t.ok(each > 2_000_000, `${each} bytes when each is held`)
  t.ok(shared < each / 10, `${shared} bytes when they are shared`)
})

test('a text comes back as it was given, also when it is not remembered', async (t) => {
  const share = sharedTexts({ texts: 4, length: 1000 })
  for (const text of ['', 'a', 'True', 'ü'.repeat(600), 'y'.repeat(500), 'True']) t.equal(share(text), text)
})

test('what is remembered is bounded by number and by length', async (t) => {
  const forget = (keep: (text: string) => string) => (text: string) => {
    keep(text)
    return other
  }
  const distinct = (i: number) => `${i} ${'x'.repeat(490)}`
  const few = heapOf(5_000, forget(sharedTexts({ texts: 100, length: 10_000_000 })), distinct)
  t.ok(few < 500_000, `${few} bytes of 5,000 texts where 100 are remembered`)
  const short = heapOf(5_000, forget(sharedTexts({ texts: 10_000, length: 50_000 })), distinct)
  t.ok(short < 500_000, `${short} bytes of 2.5 MB where 50,000 characters are remembered`)
})

test('a text that is used stays while others pass', async (t) => {
  const share = sharedTexts({ texts: 10, length: 100_000 })
  const bytes = heapOf(5_000, (text) => {
    for (let i = 0; i < 4; i++) share(`${Math.random()}`)
    return share(text)
  })
  t.ok(bytes < 500_000, `${bytes} bytes`)
})
