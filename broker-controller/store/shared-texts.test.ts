import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { frozenCopy } from './frozen-copy.ts'
import { sharedTexts } from './shared-texts.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const other = 'z'.repeat(490)

/** Equal texts are indistinguishable in JavaScript, so their memory is measured: of `count` texts of about 500 characters. */
function heapOf(count: number, keep: (text: string) => string, textOf = (_: number) => 'x'.repeat(490)): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: count }, (_, i) => keep(JSON.parse(JSON.stringify(textOf(i))) as string))
  collectGarbage()
  const bytes = process.memoryUsage().heapUsed - before
  if (kept.some((text) => text.length < 490)) throw new Error('A text was lost')
  return bytes
}

test('equal texts are held once', async (t) => {
  heapOf(10, sharedTexts())
  const each = heapOf(5_000, (text) => text)
  const shared = heapOf(5_000, sharedTexts())
  t.ok(each > 2_000_000, `${each} bytes when each is held`)
  t.ok(shared < each / 10, `${shared} bytes when they are shared`)
})

test('texts of stored objects are shared, those of secrets are not', async (t) => {
  const kept = (kind: string) => (text: string) => frozenCopy({ kind, data: { text } }).data.text
  const ofMaps = heapOf(5_000, kept('ConfigMap'))
  const ofSecrets = heapOf(5_000, kept('Secret'))
  t.ok(ofSecrets > 2_000_000, `${ofSecrets} bytes of secrets`)
  t.ok(ofMaps < ofSecrets / 5, `${ofMaps} bytes of config maps`)
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
