import { test } from 'tap'
import { heapOfTexts } from '../../testing/heap-of-texts.ts'
import { frozenCopy, frozenFromJSON } from './frozen-copy.ts'

const parsed = (value: unknown) => frozenFromJSON(JSON.stringify(value))

test('texts of stored objects are shared, those of Secrets are not', async (t) => {
  const copied = (kind: string) => (text: string) => frozenCopy({ kind, data: { text } }).data.text
  const read = (kind: string) => (text: string) => textIn(parsed({ kind, data: [text] }))
  for (const kept of [copied, read]) {
    const [ofMaps, ofSecrets] = [heapOfTexts(5_000, kept('ConfigMap')), heapOfTexts(5_000, kept('Secret'))]
    t.ok(ofSecrets > 2_000_000, `${ofSecrets} bytes of secrets`)
    t.ok(ofMaps < ofSecrets / 5, `${ofMaps} bytes of config maps`)
  }
})

test('the object of a text is the frozen copy of the parsed text', async (t) => {
  const objects = [
    { kind: 'Node', images: [{ names: ['web:1'], sizeBytes: 5 }, null, 'odd', 7], spec: {}, list: [[1, ['a']], null] },
    { kind: 'Pod', spec: { containers: [{ name: 'main', image: 'web:1' }], tolerations: 'odd' }, on: true, none: null },
    { kind: 'Secret', data: { password: 'aHVudGVyMg==' }, images: [{ names: ['web:1'] }] },
    { kind: 'ConfigMap', metadata: { managedFields: [{ fieldsV1: { 'f:data': {} } }, { fieldsV1: 7 }] } },
    'text',
    null,
    ['a', { b: 'c' }],
  ]
  for (const object of objects) {
    const read = parsed(object)
    t.same(read, frozenCopy(object))
    t.ok(isFrozenThroughout(read))
  }
  const own = frozenFromJSON('{"__proto__":{"polluted":"yes"},"a":{"__proto__":"text"}}')
  t.equal(JSON.stringify(own), '{"__proto__":{"polluted":"yes"},"a":{"__proto__":"text"}}')
  t.ok(isFrozenThroughout(own))
  t.equal(({} as { polluted?: string }).polluted, undefined)
  t.throws(() => frozenFromJSON('{"cut'), SyntaxError)
})

test('objects that are read share their parts with those that are copied', async (t) => {
  const node = { kind: 'Node', images: [{ names: ['shared-by-both:1'], sizeBytes: 5 }] }
  const copy = frozenCopy(structuredClone(node))
  t.equal(partIn(parsed(node)), copy.images[0])
  t.equal(partIn(parsed(node)), partIn(parsed({ ...node, more: 1 })))
  t.not(partIn(parsed({ ...node, kind: 'Secret' })), copy.images[0])
})

function textIn(value: unknown): string {
  const data = typeof value === 'object' && value !== null && 'data' in value ? value.data : undefined
  return Array.isArray(data) ? String(data[0]) : ''
}

function partIn(value: unknown): unknown {
  const images = typeof value === 'object' && value !== null && 'images' in value ? value.images : undefined
  return Array.isArray(images) ? images[0] : undefined
}

function isFrozenThroughout(value: unknown): boolean {
  return (
    typeof value !== 'object' ||
    value === null ||
    (Object.isFrozen(value) && Object.values(value).every(isFrozenThroughout))
  )
}
