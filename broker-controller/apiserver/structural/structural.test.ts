import { test } from 'tap'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { compareValues } from '../managed-fields/typed-fields.ts'
import { applySchema } from './apply-schema.ts'
import { defaultedObject } from './defaulting.ts'
import { hasFormat } from './formats.ts'
import { embeddedProblems, repeatedItemProblems } from './object-problems.ts'
import { prunedObject } from './pruning.ts'
import { schemaProblems } from './schema-problems.ts'
import { parseObjectPath } from './simple-path.ts'
import { valueProblems } from './value-problems.ts'

const text: JSONSchemaProps = { type: 'string' }
const ofSpec = (spec: JSONSchemaProps): JSONSchemaProps => ({ type: 'object', properties: { spec } })
const problemsOf = (schema: JSONSchemaProps, value: unknown, old?: unknown) =>
  valueProblems(ofSpec(schema), { spec: value }, '', old === undefined ? undefined : { old: { spec: old } }).map(
    ({ field, message }) => `${field}: ${message}`,
  )

test('pruning leaves out what is not specified, and keeps the very object where there is nothing to leave out', async (t) => {
  const schema = ofSpec({
    type: 'object',
    properties: {
      known: text,
      any: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { inner: { type: 'object', properties: { a: text } } },
      },
      list: { type: 'array', items: { type: 'object', properties: { a: text } } },
      map: { type: 'object', additionalProperties: { type: 'object', properties: { a: text } } },
      object: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
    },
  })
  const spec = {
    known: 'x',
    extra: 1,
    any: { free: { deep: [1] }, inner: { a: 'x', b: 1 } },
    list: [{ a: 'x' }, { b: 1 }],
    map: { k: { a: 'x', b: 1 } },
    object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { c: 1 }, more: 1 },
  }
  const unknown: string[] = []
  const object = { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'x' }, spec, other: 1 }
  const pruned = prunedObject(schema, object, { unknownField: (path) => unknown.push(path) })
  t.strictSame(pruned, {
    apiVersion: 'a/v1',
    kind: 'A',
    metadata: { name: 'x' },
    spec: {
      known: 'x',
      any: { free: { deep: [1] }, inner: { a: 'x' } },
      list: [{ a: 'x' }, {}],
      map: { k: { a: 'x' } },
      object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: {} },
    },
  })
  t.same(unknown.sort(), [
    'other',
    'spec.any.inner.b',
    'spec.extra',
    'spec.list[1].b',
    'spec.map.k.b',
    'spec.object.more',
    'spec.object.spec.c',
  ])
  t.equal(prunedObject(schema, pruned), pruned)
})

test('defaults are set where a value is missing, and null counts as missing where it is not allowed', async (t) => {
  const schema = ofSpec({
    type: 'object',
    properties: {
      a: { type: 'integer', default: 1 },
      b: { type: 'string', nullable: true, default: 'b' },
      c: text,
      inner: { type: 'object', default: {}, properties: { d: { type: 'boolean', default: false } } },
      list: { type: 'array', items: { type: 'object', properties: { e: { type: 'integer', default: 5 } } } },
    },
  })
  const complete = defaultedObject(schema, { spec: { a: null, b: null, c: null, list: [{}, { e: 1 }] } }) ?? {}
  t.strictSame(complete, { spec: { a: 1, b: null, inner: { d: false }, list: [{ e: 5 }, { e: 1 }] } })
  t.equal(defaultedObject(schema, complete), complete)
  t.strictSame(defaultedObject(schema, {}), {}, 'what has no default stays away, with all in it')
})

test('defaults that multiply are not set beyond what an object may have', async (t) => {
  const ofItems = (items: JSONSchemaProps): JSONSchemaProps => ({
    type: 'object',
    properties: { list: { type: 'array', items, default: Array.from({ length: 100 }, () => ({})) } },
  })
  let schema: JSONSchemaProps = { type: 'object', properties: { a: { type: 'string' } } }
  for (let level = 0; level < 20; level++) schema = ofItems(schema)
  t.equal(defaultedObject(schema, {}), undefined)
  t.match(defaultedObject(schema, { list: [] }), { list: [] })
  const long = { type: 'object', properties: { a: { type: 'string', default: 'x'.repeat(100_000) } } }
  const items = { type: 'object', properties: { list: { type: 'array', items: long } } }
  t.match(defaultedObject(items, { list: [{}, {}] }), { list: [{ a: /^x+$/ }, { a: /^x+$/ }] })
  t.equal(defaultedObject(items, { list: Array.from({ length: 100 }, () => ({})) }), undefined)
})

test('each keyword has its sentence', async (t) => {
  const cases: readonly (readonly [schema: JSONSchemaProps, value: unknown, problems: readonly string[]])[] = [
    [text, 1, ['spec: Invalid value: "integer": spec in body must be of type string: "integer"']],
    [text, null, ['spec: Invalid value: "null": spec in body must be of type string: "null"']],
    [{ ...text, nullable: true }, null, []],
    [{ type: 'number' }, 1, []],
    [{ type: 'integer' }, 1.5, ['spec: Invalid value: "number": spec in body must be of type integer: "number"']],
    [{ 'x-kubernetes-int-or-string': true }, '1', []],
    [{ ...text, maxLength: 2 }, 'äöü', ['spec: Too long: may not be more than 2 bytes']],
    [{ ...text, maxLength: 3 }, '😀😀😀', []],
    [{ ...text, minLength: 2 }, 'a', ['spec: Invalid value: "a": spec in body should be at least 2 chars long']],
    [{ ...text, pattern: '^a+$' }, 'b', [`spec: Invalid value: "b": spec in body should match '^a+$'`]],
    [{ ...text, format: 'date-time' }, 'x', ['spec: Invalid value: "x": spec in body must be of type date-time: "x"']],
    [{ ...text, enum: ['a', 'b'] }, 'c', ['spec: Unsupported value: "c": supported values: "a", "b"']],
    [{ type: 'integer', minimum: 2 }, 1, ['spec: Invalid value: 1: spec in body should be greater than or equal to 2']],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true },
      1,
      ['spec: Invalid value: 1: spec in body should be greater than 1'],
    ],
    [{ type: 'integer', maximum: 2 }, 3, ['spec: Invalid value: 3: spec in body should be less than or equal to 2']],
    [
      { type: 'integer', maximum: 3, exclusiveMaximum: true },
      3,
      ['spec: Invalid value: 3: spec in body should be less than 3'],
    ],
    [{ type: 'integer', multipleOf: 5 }, 7, ['spec: Invalid value: 7: spec in body should be a multiple of 5']],
    [{ type: 'array', items: text, maxItems: 1 }, ['a', 'b'], ['spec: Too many: 2: must have at most 1 items']],
    [
      { type: 'array', items: text, minItems: 2 },
      ['a'],
      ['spec: Invalid value: 1: spec in body should have at least 2 items'],
    ],
    [
      { type: 'object', additionalProperties: text, maxProperties: 1 },
      { a: 'x', b: 1 },
      [
        'spec: Too many: 2: must have at most 1 items',
        'spec.b: Invalid value: "integer": spec.b in body must be of type string: "integer"',
      ],
    ],
    [{ type: 'object', required: ['a'], properties: { a: text } }, {}, ['spec.a: Required value']],
    [
      { type: 'object', properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
        'spec.a: Required value',
      ],
    ],
    [
      { type: 'object', properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 'x', b: 'x' },
      ['<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [
      { type: 'object', properties: { a: text }, anyOf: [{ required: ['a'] }] },
      {},
      ['<nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)', 'spec.a: Required value'],
    ],
    [
      { type: 'object', properties: { a: text }, not: { required: ['a'] } },
      { a: 'x' },
      ['<nil>: Invalid value: "": "spec" must not validate the schema (not)'],
    ],
    [{ ...text, allOf: [{ minLength: 2 }, { pattern: '^b' }] }, 'bc', []],
    [
      { ...text, allOf: [{ minLength: 2 }] },
      'b',
      [
        'spec: Invalid value: "b": spec in body should be at least 2 chars long',
        '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated',
      ],
    ],
  ]
  for (const [schema, value, problems] of cases)
    t.same(problemsOf(schema, value), problems, JSON.stringify([schema, value]))
})

test('problems of what stays as it was are left out, by keys in lists that are maps', async (t) => {
  const item: JSONSchemaProps = { type: 'object', properties: { name: text, size: { type: 'integer', minimum: 5 } } }
  const map: JSONSchemaProps = {
    type: 'array',
    items: item,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
  }
  const [a, b] = [
    { name: 'a', size: 1 },
    { name: 'b', size: 6 },
  ]
  t.same(problemsOf(map, [b, a], [a]), [])
  t.match(problemsOf(map, [{ ...a, size: 2 }], [a]), [/^spec\[0\]\.size/])
  t.match(problemsOf({ ...map, 'x-kubernetes-list-type': 'atomic' }, [b, a], [a]), [/^spec\[1\]\.size/])
  const object: JSONSchemaProps = { type: 'object', properties: { a: { ...text, minLength: 3 }, b: text } }
  t.same(problemsOf(object, { a: 'x', b: 'new' }, { a: 'x', b: 'old' }), [])
})

test('a validation ends when it would take too long', async (t) => {
  let branches: JSONSchemaProps = { properties: { a: { minLength: 1_000 } } }
  for (let level = 0; level < 8; level++) branches = { oneOf: Array.from({ length: 10 }, () => branches) }
  const schema: JSONSchemaProps = { type: 'object', properties: { a: text }, ...branches }
  t.match(problemsOf(schema, { a: 'x' }), [/takes too long to compare with its schema/])
  const slow: JSONSchemaProps = { ...text, pattern: '^(a|b|ab|ba|aab)*c$' }
  t.match(problemsOf(slow, 'ab'.repeat(500_000)), [/takes too long to compare with its schema/])
})

test('a schema has at most as many patterns as are kept compiled, each counted once', async (t) => {
  const withPatterns = (patterns: readonly string[]) => {
    const properties = Object.fromEntries(patterns.map((pattern, at) => [`p${at}`, { type: 'string', pattern }]))
    return schemaProblems('schema', ofSpec({ type: 'object', properties })).map(({ message }) => message)
  }
  const large = (name: number) => `${name}x{1000}y{1000}z{1000}`
  t.same(withPatterns(Array.from({ length: 100 }, () => large(0))), [])
  const distinct = Array.from({ length: 100 }, (_, name) => large(name))
  t.same(withPatterns(distinct), ['Forbidden: the patterns of the schema are too large'])
})

test('the defaults of a schema are checked within the bound of one validation', async (t) => {
  let branches: JSONSchemaProps = { properties: { a: { minLength: 1_000 } } }
  for (let level = 0; level < 4; level++) branches = { oneOf: Array.from({ length: 10 }, () => branches) }
  const one: JSONSchemaProps = { type: 'object', properties: { a: text }, ...branches, default: { a: 'x' } }
  const properties = Object.fromEntries(Array.from({ length: 4_000 }, (_, number) => [`p${number}`, one]))
  const problems = schemaProblems('schema', ofSpec({ type: 'object', properties }))
  t.ok(problems.some(({ message }) => /takes too long/.test(message)))
})

test('items are in a set and in a map once, and embedded objects are objects', async (t) => {
  const set: JSONSchemaProps = { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'set' }
  const repeated = repeatedItemProblems(ofSpec(set), {
    spec: [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
      { a: 1, b: 2 },
    ],
  })
  t.match(repeated, [{ field: 'spec[1]', reason: 'FieldValueDuplicate' }])
  t.equal(repeated.length, 1)
  const map: JSONSchemaProps = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['port', 'protocol'],
    items: { type: 'object', properties: { port: { type: 'integer' }, protocol: { ...text, default: 'TCP' } } },
  }
  const twice = repeatedItemProblems(ofSpec(map), { spec: [{ port: 1 }, { port: 1, protocol: 'TCP' }, { port: 2 }] })
  t.match(twice, [{ field: 'spec[1]' }])
  const embedded: JSONSchemaProps = { type: 'object', 'x-kubernetes-embedded-resource': true }
  const wrong = { spec: { kind: 'a b', metadata: { labels: { x: 1 } } } }
  t.same(
    embeddedProblems(ofSpec(embedded), wrong).map(({ field }) => field),
    ['spec.apiVersion', 'spec.kind', 'spec.metadata.labels[x]'],
  )
})

test('formats of text are those of Kubernetes, and others are not checked', async (t) => {
  const good: readonly (readonly [format: string, text: string])[] = [
    ...(['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.123+01:00'] as const).map((one) => ['date-time', one] as const),
    ['date', '2024-02-29'],
    ['duration', '1h30m'],
    ['duration', '22 ns'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000'],
    ['ipv4', '192.0.2.1'],
    ['ipv6', '2001:db8::1'],
    ['cidr', '10.0.0.0/8'],
    ['cidr', '2001:db8::/32'],
    ['mac', '00:1b:44:11:3a:b7'],
    ['hostname', 'a-1.example.com'],
    ['uri', 'https://example.com/a?b'],
    ['email', 'jane@example.com'],
    ['byte', 'YWJj'],
    ['isbn', '978-0321751041'],
    ['creditcard', '4111 1111 1111 1111'],
    ['hexcolor', '#FFaa00'],
    ['rgbcolor', 'rgb(1, 2, 255)'],
    ['ssn', '111-22-3333'],
    ['int32', 'anything'],
    ['other', 'anything'],
  ]
  for (const [format, one] of good) t.ok(hasFormat(format, one), `${format} ${one}`)
  const bad: readonly (readonly [format: string, text: string])[] = [
    ['date-time', '2026-13-02T03:04:05Z'],
    ['date', '2023-02-29'],
    ['duration', '1 hour 2'],
    ['uuid', '123'],
    ['ipv4', '192.0.2.256'],
    ['ipv6', '192.0.2.1'],
    ['cidr', '10.0.0.0'],
    ['mac', '00:1b'],
    ['hostname', '-a'],
    ['uri', 'no uri'],
    ['email', 'jane'],
    ['byte', 'a'],
    ['isbn10', '1234567890'],
    ['creditcard', '4111 1111 1111 1112'],
    ['hexcolor', 'red'],
  ]
  for (const [format, one] of bad) t.notOk(hasFormat(format, one), `${format} ${one}`)
})

test('paths of columns reach into objects and lists', async (t) => {
  const object = {
    a: {
      'b.c': 1,
      list: [
        { type: 'Ready', status: 'True' },
        { type: 'Other', status: 'False' },
      ],
    },
  }
  const first = (path: string) => parseObjectPath(path)?.first(object)
  t.equal(first(".a['b.c']"), 1)
  t.equal(first('.a.b\\.c'), 1)
  t.equal(first('.a.list[1].type'), 'Other')
  t.equal(first('.a.list[-1].type'), 'Other')
  t.equal(first('.a.list[*].status'), 'True')
  t.equal(first('.a.list[?(@.type=="Other")].status'), 'False')
  t.equal(first(".a.list[?( @.type == 'Ready' )].status"), 'True')
  t.equal(first('.a.none.deep'), undefined)
  t.equal(first('.constructor'), undefined)
  for (const path of ['a', '.a..b', '.a[0:2]', '.a[0,1]', '.a[?(@.b>1)]'])
    t.equal(parseObjectPath(path), undefined, path)
})

test('server-side apply sees preserved values by their fields, and specified ones by their schema', async (t) => {
  const schema = applySchema(
    ofSpec({
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { atomic: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text } },
    }),
  )
  const [before, after] = [
    { spec: { atomic: { a: 'x' }, free: { b: { c: 1 } }, list: [1] } },
    { spec: { atomic: { a: 'y' }, free: { b: { c: 2 } }, list: [1, 2] } },
  ]
  const { changed } = compareValues(schema, before, after)
  t.same([...(changed.children.get('f:spec')?.children.keys() ?? [])].sort(), ['f:atomic', 'f:free', 'f:list'])
})
