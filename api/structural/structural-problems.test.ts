import { test } from 'tap'
import { problemText } from '../problem.ts'
import type { JSONSchemaProps } from './json-schema-props.ts'
import { structuralProblems } from './structural-problems.ts'

const text: JSONSchemaProps = { type: 'string' }
const found = (schema: JSONSchemaProps) => structuralProblems('s', schema).map(problemText)
const withSpec = (spec: JSONSchemaProps) => found({ type: 'object', properties: { spec } })
const at = 's.properties[spec]'
const intOrString: readonly JSONSchemaProps[] = [{ type: 'integer' }, { type: 'string' }]

type Row = readonly [what: string, spec: JSONSchemaProps, problems: readonly string[]]
const rows: readonly Row[] = [
  ['a field without a type', {}, [`${at}.type: Required value: must not be empty for specified object fields`]],
  [
    'items without a type',
    { type: 'array', items: {} },
    [`${at}.items.type: Required value: must not be empty for specified array items`],
  ],
  ['a list without items', { type: 'array' }, [`${at}.items: Required value: must be specified`]],
  ['values of any shape', { 'x-kubernetes-preserve-unknown-fields': true }, []],
  ['an integer or text', { 'x-kubernetes-int-or-string': true, anyOf: intOrString }, []],
  [
    'an integer or text within allOf',
    { 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: intOrString }, { pattern: 'a' }] },
    [],
  ],
  [
    'a type in a branch',
    { type: 'string', anyOf: [{ type: 'string' }] },
    [`${at}.anyOf[0].type: Forbidden: must be empty to be structural`],
  ],
  [
    'descriptions in a branch',
    { type: 'object', not: { description: 'a', nullable: true, additionalProperties: text, default: {} } },
    [
      `${at}.not.additionalProperties: Forbidden: must be undefined to be structural`,
      `${at}.not.default: Forbidden: must be undefined to be structural`,
      `${at}.not.description: Forbidden: must be empty to be structural`,
      `${at}.not.nullable: Forbidden: must be false to be structural`,
    ],
  ],
  [
    'metadata in a branch',
    { type: 'object', properties: { metadata: { type: 'object' } }, oneOf: [{ properties: { metadata: {} } }] },
    [`${at}.oneOf[0].properties[metadata]: Forbidden: must not be specified in a nested context`],
  ],
  [
    'an embedded object of another type',
    { type: 'string', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    [`${at}.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true`],
  ],
  [
    'an embedded object without fields',
    { type: 'object', 'x-kubernetes-embedded-resource': true },
    [
      `${at}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields`,
    ],
  ],
  [
    'an integer or text that keeps unknown fields',
    { 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true },
    [
      `${at}.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true`,
    ],
  ],
]

test('each rule of structural schemas names the place that breaks it', async (t) => {
  for (const [what, spec, problems] of rows) t.same(withSpec(spec), problems, what)
})

test('the root is an object whose metadata is restricted by name only', async (t) => {
  t.same(found({}), ['s.type: Required value: must not be empty at the root'])
  t.same(found({ type: 'string' }), ['s.type: Invalid value: "string": must be object at the root'])
  t.same(found({ type: 'object', additionalProperties: text }), [
    's.additionalProperties: Forbidden: must not be used at the root',
  ])
  const metadata = (properties: { readonly [name: string]: JSONSchemaProps }) =>
    found({ type: 'object', properties: { metadata: { type: 'object', properties } } })
  t.same(metadata({ name: { type: 'string', maxLength: 5 }, generateName: text }), [])
  t.same(metadata({ labels: { type: 'object' } }), [
    's.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
  ])
  t.same(found({ type: 'object', properties: { kind: { type: 'integer' } } }), [
    's.properties[kind].type: Invalid value: "integer": must be string',
  ])
})

test('what a branch at the root names is specified outside of it', async (t) => {
  const properties = { a: text, b: { type: 'array', items: text } }
  t.same(found({ type: 'object', properties, anyOf: [{ properties: { a: { pattern: 'x' } } }] }), [])
  t.same(found({ type: 'object', properties, anyOf: [{ properties: { c: {} } }] }), [
    's.properties[c]: Required value: because it is defined in s.anyOf[0].properties[c]',
  ])
  t.same(found({ type: 'object', properties, not: { allOf: [{ properties: { a: { items: {} } } }] } }), [
    's.properties[a].items: Required value: because it is defined in s.not.allOf[0].properties[a].items',
  ])
  t.same(found({ type: 'object', properties, oneOf: [{ properties: { constructor: {} } }] }), [
    's.properties[constructor]: Required value: because it is defined in s.oneOf[0].properties[constructor]',
  ])
})

test('no more than a hundred problems are named', async (t) => {
  const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`f${at}`, {}]))
  t.equal(found({ type: 'object', properties }).length, 100)
})
