import { test } from 'tap'
import { problemText } from '../problem.ts'
import type { JSONSchemaProps } from './json-schema-props.ts'
import { keywordProblems } from './keyword-problems.ts'

const text: JSONSchemaProps = { type: 'string' }
const found = (schema: JSONSchemaProps) => keywordProblems('s', schema).map(problemText)
const at = 's.properties[x]'
const listOf = (items: JSONSchemaProps, more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'array',
  items,
  ...more,
})
const mapList = (items: JSONSchemaProps, ...keys: readonly string[]) =>
  listOf(items, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys })
const item = (more: JSONSchemaProps = {}): JSONSchemaProps => ({
  type: 'object',
  required: ['k'],
  properties: { k: text, v: { type: 'object' } },
  ...more,
})

type Row = readonly [what: string, schema: JSONSchemaProps, problems: readonly string[]]
const rows: readonly Row[] = [
  [
    'an unknown type',
    { type: 'text' },
    [
      `${at}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
    ],
  ],
  ['a reference', { $ref: '#/definitions/a' }, [`${at}.$ref: Forbidden: $ref is not supported`]],
  [
    'definitions, in which problems are found too',
    { type: 'object', definitions: { a: { uniqueItems: true } } },
    [
      `${at}.definitions: Forbidden: definitions is not supported`,
      `${at}.definitions[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
    ],
  ],
  [
    'a list of schemas',
    { type: 'array', items: [text] },
    [`${at}.items: Forbidden: items must be a schema object and not an array`],
  ],
  [
    'fields of both forms',
    { type: 'object', properties: { a: text }, additionalProperties: text },
    [`${at}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`],
  ],
  ['fields beside any others', { type: 'object', properties: { a: text }, additionalProperties: true }, []],
  [
    'unknown fields that are not kept',
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': false },
    [`${at}.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`],
  ],
  [
    'a map type of a text',
    { type: 'string', 'x-kubernetes-map-type': 'whole' },
    [
      `${at}.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified`,
      `${at}.x-kubernetes-map-type: Unsupported value: "whole": supported values: "atomic", "granular"`,
    ],
  ],
  [
    'a list type without a type',
    { 'x-kubernetes-list-type': 'set' },
    [`${at}.type: Required value: must be array if x-kubernetes-list-type is specified`],
  ],
  ['a set of texts', listOf(text, { 'x-kubernetes-list-type': 'set' }), []],
  ['a set of atomic lists', listOf(listOf(text), { 'x-kubernetes-list-type': 'set' }), []],
  [
    'a set of granular objects',
    listOf({ type: 'object' }, { 'x-kubernetes-list-type': 'set' }),
    [
      `${at}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
    ],
  ],
  [
    'a set with nulls',
    listOf({ ...text, nullable: true }, { 'x-kubernetes-list-type': 'set' }),
    [`${at}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set`],
  ],
  [
    'keys of another list',
    listOf(text, { 'x-kubernetes-list-map-keys': ['a'] }),
    [`${at}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`],
  ],
  ['a map list', mapList(item(), 'k'), []],
  [
    'a map list with a default of its key',
    mapList(item({ required: [], properties: { k: { ...text, default: 'a' } } }), 'k'),
    [],
  ],
  [
    'a map list without keys',
    mapList(item()),
    [`${at}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`],
  ],
  [
    'a map list of texts',
    mapList(text, 'k'),
    [`${at}.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`],
  ],
  [
    'a map list with wrong keys',
    mapList(item(), 'k', 'v', 'constructor', 'k'),
    [
      `${at}.items.properties[v].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`,
      `${at}.items.properties[v].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
      `${at}.x-kubernetes-list-map-keys: Invalid value: ["k","v","constructor","k"]: entries must all be names of item properties`,
      `${at}.x-kubernetes-list-map-keys: Invalid value: ["k","v","constructor","k"]: must not contain duplicate entries`,
    ],
  ],
  [
    'rules that are not whole',
    {
      type: 'object',
      'x-kubernetes-validations': [
        { rule: ' ' },
        { rule: 'a\nb' },
        { rule: 'a', message: 'b\nc' },
        { rule: 'a', reason: 'None' },
      ],
    },
    [
      `${at}.x-kubernetes-validations[0].rule: Required value: rule is not specified`,
      `${at}.x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks`,
      `${at}.x-kubernetes-validations[2].message: Invalid value: "b\\nc": message must not contain line breaks`,
      `${at}.x-kubernetes-validations[3].reason: Unsupported value: "None": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
    ],
  ],
]

test('each rule of a keyword names the place that breaks it', async (t) => {
  for (const [what, x, problems] of rows) t.same(found({ type: 'object', properties: { x } }), problems, what)
})

test('the metadata of an object has no defaults at its root, and no objects in it', async (t) => {
  const metadata = (more: JSONSchemaProps): JSONSchemaProps => ({
    properties: { metadata: { type: 'object', ...more } },
  })
  t.same(found(metadata({ properties: { name: { default: 'a' } } })), [
    's.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata',
  ])
  const embedded = { ...metadata({ additionalProperties: { default: 'a' } }), 'x-kubernetes-embedded-resource': true }
  t.same(found({ properties: { x: embedded } }), [
    `${at}.properties[metadata].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata`,
  ])
  t.same(found(metadata({ 'x-kubernetes-embedded-resource': true })), [
    's.properties[metadata].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta',
  ])
  t.same(found({ properties: { x: { default: 'a' } } }), [])
})
