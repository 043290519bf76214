import { test } from 'tap'
import { turnsAboveBudget } from '../../../daemon/testing/turn-budget.ts'
import { extensionDescription, mostDescriptionBytes } from './extension-description.ts'

const version = { group: 'wardle.example.com', version: 'v1' }
const base = '/apis/wardle.example.com/v1'
const kindsField = 'x-kubernetes-group-version-kind'

async function read(document: object) {
  const body = Buffer.from(JSON.stringify({ swagger: '2.0', ...document }))
  const { paths, definitions, parameters } = await (await extensionDescription(body, version)).parts()
  return {
    paths: Object.fromEntries(paths),
    definitions: Object.fromEntries(definitions),
    parameters: Object.fromEntries(parameters),
  }
}

const getting = (type: string) => ({ get: { responses: { 200: { schema: { $ref: `#/definitions/${type}` } } } } })

test('of a description the paths of its version are kept, and the types and parameters that they need', async (t) => {
  const { paths, definitions, parameters } = await read({
    paths: {
      [`${base}/flunders`]: { ...getting('Flunder'), parameters: [{ $ref: '#/parameters/pretty' }] },
      '/apis/wardle.example.com/v2/flunders': getting('Other'),
      '/apis/wardle.example.com/v1beta1/flunders': getting('Other'),
      '/api/v1/pods': { ...getting('Pod'), parameters: [{ $ref: '#/parameters/watch' }] },
    },
    definitions: {
      Flunder: { properties: { spec: { $ref: '#/definitions/Spec' } } },
      Spec: { type: 'object' },
      Other: { type: 'object' },
      Pod: { properties: { spec: { $ref: '#/definitions/Spec' } } },
      Unused: { type: 'string' },
    },
    parameters: {
      pretty: { name: 'pretty', in: 'query', type: 'string' },
      watch: { name: 'watch', in: 'query', type: 'boolean' },
    },
  })
  t.same(Object.keys(paths), [`${base}/flunders`])
  t.same(Object.keys(definitions), ['Flunder', 'Spec', 'Unused'])
  t.same(Object.keys(parameters), ['pretty'])
})

test('a type stands for kinds of its own version only', async (t) => {
  const own = { group: 'wardle.example.com', version: 'v1', kind: 'Flunder' }
  const { definitions } = await read({
    paths: { [`${base}/a`]: { get: { responses: {} } } },
    definitions: {
      Flunder: { type: 'object', [kindsField]: [{ group: 'apps', version: 'v1', kind: 'Deployment' }, own, 7] },
      Deployment: { type: 'object', [kindsField]: [{ group: 'apps', version: 'v1', kind: 'Deployment' }] },
    },
  })
  t.same(definitions, { Flunder: { type: 'object', [kindsField]: [own] }, Deployment: { type: 'object' } })
})

// kube-openapi, pkg/util/proto/document.go: one such field makes clients refuse the whole document.
test('what clients cannot read is left out', async (t) => {
  const { paths, definitions } = await read({
    paths: {
      [`${base}/a`]: {
        get: { responses: { 200: 'OK', 201: { description: 'OK' } }, tags: [1, 'a'], patch: 1 },
        put: [],
      },
      [`${base}/b`]: 7,
    },
    definitions: {
      Odd: {
        type: 'vegetable',
        properties: { a: 1, b: { type: ['string', 'null'] }, c: { type: ['string'] }, d: { type: 'array' } },
        items: 'x',
        required: 'a',
        minItems: 1.5,
        unknown: true,
        description: {},
        'x-any': [{}],
      },
      List: { type: 'array', items: { type: 'string' }, additionalProperties: true },
      Text: 'x',
    },
  })
  t.same(paths, { [`${base}/a`]: { get: { responses: { 201: { description: 'OK' } }, tags: ['a'] } } })
  t.same(definitions, {
    Odd: { properties: { b: {}, c: { type: 'string' }, d: {} }, 'x-any': [{}] },
    List: { type: 'array', items: { type: 'string' }, additionalProperties: true },
  })
})

test('names of the prototype are names like others', async (t) => {
  const document = `{"swagger":"2.0","paths":{"${base}/a":{"get":{"__proto__":{},"constructor":1}}},"definitions":{"__proto__":{"type":"object"}}}`
  const { parts } = await extensionDescription(Buffer.from(document), version)
  const { definitions, paths } = await parts()
  t.same([...definitions], [['__proto__', { type: 'object' }]])
  t.same(paths.get(`${base}/a`), { get: {} })
})

test('what is not a description, or has too many values, is refused', async (t) => {
  for (const body of ['', '[]', '{}', '{"swagger":"3.0"}', 'null', '['.repeat(5_000)]) {
    await t.rejects(extensionDescription(Buffer.from(body), version), body.slice(0, 20))
  }
  const many = JSON.stringify({ swagger: '2.0', definitions: { A: { enum: Array.from({ length: 60_001 }, () => 1) } } })
  await t.rejects(extensionDescription(Buffer.from(many), version))
})

test('the largest description that is read holds up nothing', async (t) => {
  const types = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => {
        const properties = { next: { $ref: `#/definitions/T${(index + 1) % count}` }, text: { type: 'string' } }
        return [`T${index}`, { type: 'object', description: 'x'.repeat(150), properties, [kindsField]: [version] }]
      }),
    )
  const document = { swagger: '2.0', paths: { [`${base}/a`]: getting('T0') }, definitions: types(4_900) }
  const body = Buffer.from(JSON.stringify(document))
  t.ok(body.length > mostDescriptionBytes / 2 && body.length < mostDescriptionBytes, `${body.length} bytes`)
  const { above } = await turnsAboveBudget([
    { what: 'a description', bytes: body.length, act: () => extensionDescription(body, version) },
  ])
  t.same(above, [])
})
