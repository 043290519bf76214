import { test } from 'tap'
import { frozenCopy, frozenFromJSON } from './frozen-copy.ts'
import { sharedSchemas } from './shared-schemas.ts'

const text = 'What this field of the object is for. '.repeat(20)
const pod = () => ({ type: 'object', description: `${text}x`, properties: { name: { type: 'string' } } })
type Part = { readonly [name: string]: Part }

test('equal parts of schemas are held once, and the schemas are as they were given', async (t) => {
  const shared = sharedSchemas()
  const first = { type: 'object', properties: { a: pod(), b: { type: 'array', items: pod() } }, required: ['a', 'b'] }
  const second = { properties: { c: pod() }, required: ['a', 'b'], nullable: true, maximum: 1, default: null }
  const [one, two] = [shared(first) as unknown as Part, shared(second) as unknown as Part]
  t.same(one, first)
  t.same(two, second)
  t.equal(one['properties']?.['a'], one['properties']?.['b']?.['items'])
  t.equal(one['properties']?.['a'], two['properties']?.['c'])
  t.equal(one['required'], two['required'])
  t.ok(Object.isFrozen(one['properties']?.['a']?.['properties']?.['name']))
  t.notOk(Object.isFrozen(first.properties.a), 'the given value is not touched')
})

test('what differs is kept apart', async (t) => {
  const shared = sharedSchemas()
  const values = [
    { a: '1' },
    { a: 1 },
    { a: [1] },
    { a: { b: 1 } },
    { a: true },
    { a: 'true' },
    { a: null },
    { a: [] },
    { a: {} },
    { a: ["'0"] },
    { a: ['#1'] },
    { a: '1', b: '1' },
    { b: '1', a: '1' },
    { 'a"': '1' },
    [1, 2],
    [[1], 2],
    [[1, 2]],
    ['1,2'],
  ]
  for (const value of values) t.same(JSON.stringify(shared(value)), JSON.stringify(value))
})

test('names of the prototype are fields, and undefined is as in JSON', async (t) => {
  const shared = sharedSchemas()
  const odd = JSON.parse('{"__proto__":{"type":"object"},"constructor":{}}')
  t.same(JSON.stringify(shared(odd)), JSON.stringify(odd))
  t.same(Object.keys(shared({ a: undefined, b: [undefined] })), ['b'])
  t.same(shared({ b: [undefined] }), { b: [null] })
})

test('a frozen schema is taken as it is', async (t) => {
  const shared = sharedSchemas()
  const schema = Object.freeze({ properties: Object.freeze({}) })
  t.equal(shared(schema), schema)
})

test('parts are looked for among the schemas of a while, and not without end', async (t) => {
  const dropped: (() => void)[] = []
  const shared = sharedSchemas({ parts: 10, later: (_, act) => void dropped.push(act) })
  const first = shared({ pod: pod() }) as unknown as Part
  t.equal((shared({ pod: pod(), a: 1 }) as unknown as Part)['pod'], first['pod'])
  for (const drop of dropped.splice(0)) drop()
  const later = shared({ pod: pod() }) as unknown as Part
  t.not(later['pod'], first['pod'])
  shared(Array.from({ length: 20 }, (_, index) => ({ index })))
  t.not((shared({ pod: pod() }) as unknown as Part)['pod'], later['pod'], 'too many parts')
  t.equal(dropped.length, 2)
  const short = sharedSchemas({ characters: 100 })
  t.not((short({ pod: pod() }) as unknown as Part)['pod'], (short({ pod: pod() }) as unknown as Part)['pod'])
})

test('stored definitions share their schemas, however they come into the store', async (t) => {
  const definition = (kind = 'CustomResourceDefinition') => ({
    kind,
    spec: { versions: [{ name: 'v1', schema: { openAPIV3Schema: { properties: { spec: pod() } } } }] },
  })
  const schemaOf = (object: unknown) =>
    (object as { spec: { versions: { schema: { openAPIV3Schema: Part } }[] } }).spec.versions[0]?.schema.openAPIV3Schema
  const written = schemaOf(frozenCopy(definition()))
  t.same(written, { properties: { spec: pod() } })
  t.equal(schemaOf(frozenFromJSON(JSON.stringify(definition()))), written)
  t.not(schemaOf(frozenCopy(definition('Secret'))), written, 'nothing of a Secret is kept')
})
