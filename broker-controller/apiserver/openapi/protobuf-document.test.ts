import { test } from 'tap'
import { resourceRegistry } from '../../../api/resources.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import {
  boolValue,
  type Codec,
  type FieldKind,
  int64,
  messageCodec,
  messageList,
  oneMessage,
  textValue,
} from '../../../daemon/protobuf/protobuf-codec.ts'
import { turnsAboveBudget } from '../../../daemon/testing/turn-budget.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { inPieces } from '../handlers/turns.ts'
import type { DocumentParts } from './document-parts.ts'
import { openApiDocuments } from './documents.ts'
import { protobufDocument } from './protobuf-document.ts'

const textList: FieldKind<readonly string[]> = {
  wire: 2,
  empty: [],
  write: () => {},
  read: (from, before) => [...before, textValue.read(from, '')],
}
const named = <Out, In>(value: Codec<Out, In>) => messageCodec({ name: [1, textValue], value: [2, oneMessage(value)] })
const any = messageCodec({ yaml: [2, textValue] })
const innerSchema = messageCodec({
  ref: [1, textValue],
  type: [22, oneMessage(messageCodec({ value: [1, textList] }))],
})
const schema = messageCodec({
  description: [4, textValue],
  uniqueItems: [16, boolValue],
  minItems: [15, int64],
  required: [19, textList],
  enum: [20, messageList(any)],
  additional: [21, oneMessage(messageCodec({ schema: [1, oneMessage(innerSchema)], boolean: [2, boolValue] }))],
  type: [22, oneMessage(messageCodec({ value: [1, textList] }))],
  items: [23, oneMessage(messageCodec({ schema: [1, messageList(innerSchema)] }))],
  properties: [25, oneMessage(messageCodec({ all: [1, messageList(named(innerSchema))] }))],
  extensions: [31, messageList(named(any))],
})
const queryParameter = messageCodec({
  in: [2, textValue],
  name: [4, textValue],
  type: [6, textValue],
  uniqueItems: [20, boolValue],
})
const pathParameter = messageCodec({ required: [1, boolValue], name: [4, textValue], type: [5, textValue] })
const bodyParameter = messageCodec({
  name: [2, textValue],
  in: [3, textValue],
  required: [4, boolValue],
  schema: [5, oneMessage(innerSchema)],
})
const plainParameter = messageCodec({
  body: [1, oneMessage(bodyParameter)],
  other: [
    2,
    oneMessage(messageCodec({ query: [3, oneMessage(queryParameter)], path: [4, oneMessage(pathParameter)] })),
  ],
})
const parameter = messageCodec({
  parameter: [1, oneMessage(plainParameter)],
  reference: [2, oneMessage(messageCodec({ ref: [1, textValue] }))],
})
const response = messageCodec({
  description: [1, textValue],
  schema: [2, oneMessage(messageCodec({ schema: [1, oneMessage(innerSchema)] }))],
})
const operation = messageCodec({
  id: [5, textValue],
  consumes: [7, textList],
  parameters: [8, messageList(parameter)],
  responses: [
    9,
    oneMessage(messageCodec({ codes: [1, messageList(named(messageCodec({ response: [1, oneMessage(response)] })))] })),
  ],
  extensions: [13, messageList(named(any))],
})
const pathItem = messageCodec({
  get: [2, oneMessage(operation)],
  post: [4, oneMessage(operation)],
  parameters: [9, messageList(parameter)],
})
const document = messageCodec({
  swagger: [1, textValue],
  info: [2, oneMessage(messageCodec({ title: [1, textValue], version: [2, textValue] }))],
  paths: [8, oneMessage(messageCodec({ all: [2, messageList(named(pathItem))] }))],
  definitions: [9, oneMessage(messageCodec({ all: [1, messageList(named(schema))] }))],
  parameters: [10, oneMessage(messageCodec({ all: [1, messageList(named(plainParameter))] }))],
})

type Content = { readonly [name: string]: unknown }

function partsIn({ paths, definitions, parameters }: Content): DocumentParts {
  const named = (all: unknown) => Object.entries((all ?? {}) as { readonly [name: string]: Content })
  const types = named(definitions).map(([name, type]) => [name, () => type] as const)
  return { paths: new Map(named(paths)), types: new Map(types), parameters: new Map(named(parameters)) }
}

function written(content: Content) {
  const work = protobufDocument(content, partsIn(content))
  for (;;) {
    const step = work.next()
    if (step.done) return document.decode(step.value)
  }
}

test('every keyword of a definition is in the field that gnostic has for it, in order', async (t) => {
  const { swagger, info, definitions } = written({
    swagger: '2.0',
    info: { title: 'Bramble', version: '1' },
    definitions: {
      'a.Pod': {
        type: 'object',
        description: 'ä',
        required: ['b', 'a'],
        properties: { b: { $ref: '#/definitions/c' }, a: { type: 'string' } },
        'x-kubernetes-group-version-kind': [{ group: '', kind: 'Pod', version: 'v1' }],
        'x-none': undefined,
        unknown: 1,
      },
      'a.List': { type: 'array', items: { type: 'integer' }, enum: ['x', 1], uniqueItems: true, minItems: 300 },
      'a.Map': { additionalProperties: { type: 'string' } },
      'a.Any': { additionalProperties: true },
    },
  })
  t.equal(swagger, '2.0')
  t.same(info, { title: 'Bramble', version: '1' })
  const [pod, list, map, anyOne] = definitions?.all ?? []
  t.equal(pod?.name, 'a.Pod')
  t.match(pod?.value, {
    description: 'ä',
    required: ['b', 'a'],
    type: { value: ['object'] },
    properties: {
      all: [
        { name: 'b', value: { ref: '#/definitions/c' } },
        { name: 'a', value: { type: { value: ['string'] } } },
      ],
    },
    extensions: [
      { name: 'x-kubernetes-group-version-kind', value: { yaml: '[{"group":"","kind":"Pod","version":"v1"}]' } },
    ],
  })
  t.equal(pod?.value?.extensions.length, 1)
  t.match(list?.value, {
    items: { schema: [{ type: { value: ['integer'] } }] },
    enum: [{ yaml: '"x"' }, { yaml: '1' }],
    uniqueItems: true,
    minItems: 300,
  })
  t.match(map?.value, { additional: { schema: { type: { value: ['string'] } } } })
  t.equal(anyOne?.value?.additional?.boolean, true)
})

test('operations have their parameters by place, and their answers by code', async (t) => {
  const reference = { $ref: '#/definitions/a.Pod' }
  const { paths } = written({
    paths: {
      '/api/v1/pods': {
        parameters: [{ name: 'name', in: 'path', required: true, type: 'string' }],
        post: {
          operationId: 'createPod',
          consumes: ['*/*'],
          parameters: [
            { name: 'body', in: 'body', required: true, schema: reference },
            { name: 'dryRun', in: 'query', type: 'string', uniqueItems: true },
          ],
          responses: { 201: { description: 'OK', schema: reference }, 401: { description: 'Unauthorized' } },
          'x-kubernetes-action': 'post',
        },
      },
    },
  })
  const [path] = paths?.all ?? []
  t.match(path, {
    name: '/api/v1/pods',
    value: {
      parameters: [{ parameter: { other: { path: { name: 'name', required: true, type: 'string' } } } }],
      post: {
        id: 'createPod',
        consumes: ['*/*'],
        parameters: [
          { parameter: { body: { name: 'body', in: 'body', required: true, schema: { ref: reference.$ref } } } },
          { parameter: { other: { query: { name: 'dryRun', in: 'query', type: 'string', uniqueItems: true } } } },
        ],
        responses: {
          codes: [
            { name: '201', value: { response: { description: 'OK', schema: { schema: { ref: reference.$ref } } } } },
            { name: '401', value: { response: { description: 'Unauthorized' } } },
          ],
        },
        extensions: [{ name: 'x-kubernetes-action', value: { yaml: '"post"' } }],
      },
    },
  })
})

test('operations refer to parameters of the document', async (t) => {
  const { paths, parameters } = written({
    paths: { '/apis/a/v1/b': { parameters: [{ $ref: '#/parameters/pretty', 'x-more': 1 }] } },
    parameters: { pretty: { name: 'pretty', in: 'query', type: 'string' } },
  })
  t.match(paths?.all, [{ value: { parameters: [{ reference: { ref: '#/parameters/pretty' } }] } }])
  t.match(parameters?.all, [{ name: 'pretty', value: { other: { query: { name: 'pretty', type: 'string' } } } }])
})

test('the document of the fleet has all its paths and definitions, and is made in short turns', async (t) => {
  const documents = openApiDocuments(resourceRegistry(builtInKinds.all), '0.1.0')
  const json = JSON.parse((await (await documents.v2()).bytes()).toString())
  const made = await documents.v2Protobuf()
  const { hash } = made
  const bytes = await made.bytes()
  const read = document.decode(bytes)
  t.same(
    read.definitions?.all.map(({ name }) => name),
    Object.keys(json.definitions),
  )
  t.same(
    read.paths?.all.map(({ name }) => name),
    Object.keys(json.paths),
  )
  t.match(hash, /^[0-9A-F]{32}$/)
  t.equal(await documents.v2Protobuf(), await documents.v2Protobuf(), 'made once')
  const { above } = await turnsAboveBudget([
    { what: 'the document', bytes: bytes.length, act: () => inPieces(protobufDocument(json, partsIn(json)), clock) },
  ])
  t.same(above, [])
})
