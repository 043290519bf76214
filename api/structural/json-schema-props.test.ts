import { test } from 'tap'
import type { ReadNotes } from '../decode.ts'
import { problemText } from '../problem.ts'
import { readJSONSchema } from './json-schema-props.ts'

function read(value: unknown) {
  const notes: ReadNotes = { problems: [], unknownFields: [] }
  const schema = readJSONSchema(value, 's', notes)
  return { schema, problems: notes.problems.map(problemText), unknown: notes.unknownFields }
}

test('a schema is read as its author wrote it; nulls are absent, but in an enumeration', async (t) => {
  const schema = {
    type: 'object',
    properties: {
      a: { type: 'integer', minimum: 1.5, exclusiveMinimum: true, default: 2, enum: [1, null, 'x'] },
      b: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      c: { additionalProperties: true, 'x-kubernetes-validations': [{ rule: 'self > 1', optionalOldSelf: true }] },
      constructor: { type: 'string' },
    },
    required: ['a'],
    not: { required: ['b'] },
    externalDocs: { url: 'https://example.com' },
  }
  t.same(read({ ...schema, description: null }), { schema, problems: [], unknown: [] })
})

test('an invalid schema has its place named', async (t) => {
  t.match(read({ properties: { a: { type: 1 } } }).problems, [
    /^s\.properties\[a\]\.type: Invalid value: .*must be text/,
  ])
  t.match(read({ anyOf: [{}, 3] }).problems, [/^s\.anyOf\[1\]: Invalid value: .*must be an object/])
  t.match(read({ required: ['a', null] }).problems, ['s.required[1]: Required value'])
  t.match(read({ 'x-kubernetes-validations': [{}] }).problems, ['s.x-kubernetes-validations[0].rule: Required value'])
  t.match(read(JSON.parse('{"properties": {"__proto__": {}}}')).problems, [/^s\.properties: .*this key is not allowed/])
  t.same(read({ types: 'object', properties: { a: { nulable: true } } }).unknown, [
    's.types',
    's.properties[a].nulable',
  ])
})

test('neither deep nor wide schemas cost more than their limits', async (t) => {
  let deep: object = {}
  for (let level = 0; level < 5_000; level++) deep = { not: deep }
  t.match(read(deep).problems, [/nested deeper than 100 levels/])
  t.ok(read({ anyOf: Array.from({ length: 10_000 }, () => 1) }).problems.length <= 100)
})
