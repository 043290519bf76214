import { test } from 'tap'
import { Check } from 'typebox/schema'
import { Integer, String as Text } from 'typebox/type'
import { decode } from './decode.ts'
import { LeaseSchema } from './lease.ts'
import { NodeSchema } from './node.ts'
import { PodSchema } from './pod.ts'
import {
  anything,
  bool,
  bytes,
  decodedLater,
  integer,
  intOrString,
  list,
  mapOf,
  microTime,
  object,
  oneOf,
  optional,
  quantity,
  type TSchema,
  text,
  time,
} from './schema.ts'
import { aPod } from './testing/builders.ts'

test('a whole pod passes unchanged', async (t) => {
  const pod = aPod({ name: 'web', requests: { cpu: '100m', memory: '64Mi' }, phase: 'Running' })
  t.same(decode(PodSchema, JSON.parse(JSON.stringify(pod))), { ok: true, value: pod, unknownFields: [] })
})

test('what is accepted without the checker is what the checker accepts', async (t) => {
  const two = (value: number) => String(value).padStart(2, '0')
  const days = ['2023', '2024', '1900', '0000'].flatMap((year) =>
    Array.from({ length: 14 }, (_, month) => month).flatMap((month) =>
      Array.from({ length: 33 }, (_, day) => `${year}-${two(month)}-${two(day)}`),
    ),
  )
  const clocks = ['00:00:00', '23:59:59', '24:00:00', '23:60:00', '23:59:60', '1:00:00', '01:02:03x']
  const times = [...days.map((day) => `${day}T12:00:00Z`), ...clocks.map((at) => `2024-05-06T${at}Z`), '', 'Z', 7, {}]
  const numbers = [-1, 0, -0, 1, 2, 3, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, '1', true, []]
  const limited = Integer({ minimum: 1, maximum: 2 })
  const multiple = Integer({ multipleOf: 2 })
  const choice = oneOf('True', 'False')
  const cases = [
    { schema: time, values: times },
    { schema: microTime, values: times.map((at) => (typeof at === 'string' ? at.replace('Z', '.000001Z') : at)) },
    ...[integer, limited, multiple, intOrString].map((schema) => ({ schema, values: numbers })),
    { schema: choice, values: ['True', 'False', 'true', '', 'constructor', '__proto__', 1, true, ['True']] },
  ]
  for (const { schema, values } of cases) {
    const accepted = values.filter((value) => decode(object({ field: schema }), { field: value }).ok)
    t.same(
      accepted,
      values.filter((value) => Check(schema, value)),
    )
  }
})

test('all problems are reported together, each with its path', async (t) => {
  const decoded = decode(PodSchema, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 7, labels: { app: true } },
    spec: { containers: [{ image: 'nginx', ports: [{ containerPort: 'http' }] }, null, 'x'], hostNetwork: 'yes' },
    status: { phase: 'Sleeping' },
  })
  t.same(!decoded.ok && decoded.problems.map(({ field, reason, message }) => [field, reason, message]), [
    ['metadata.name', 'FieldValueTypeInvalid', 'Invalid value: 7: must be text'],
    ['metadata.labels[app]', 'FieldValueTypeInvalid', 'Invalid value: true: must be text'],
    ['spec.containers[0].ports[0].containerPort', 'FieldValueTypeInvalid', 'Invalid value: "http": must be an integer'],
    ['spec.containers[0].name', 'FieldValueRequired', 'Required value'],
    ['spec.containers[1].name', 'FieldValueRequired', 'Required value'],
    ['spec.containers[2]', 'FieldValueTypeInvalid', 'Invalid value: "x": must be an object'],
    ['spec.hostNetwork', 'FieldValueTypeInvalid', 'Invalid value: "yes": must be true or false'],
    [
      'status.phase',
      'FieldValueNotSupported',
      'Unsupported value: "Sleeping": supported values: "Pending", "Running", "Succeeded", "Failed", "Unknown"',
    ],
  ])
})

test('nulls are absent, unknown fields are left out and named', async (t) => {
  const decoded = decode(PodSchema, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', creationTimestamp: null, colour: 'red' },
    spec: { containers: [{ name: 'web', image: 'nginx', imag: 'x' }], volumes: null },
    status: {},
  })
  t.same(decoded, {
    ok: true,
    value: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'web', image: 'nginx' }] },
      status: {},
    },
    unknownFields: ['metadata.colour', 'spec.containers[0].imag'],
  })
  t.same(decode(PodSchema, null), {
    ok: false,
    problems: [{ field: '', reason: 'FieldValueRequired', message: 'Required value' }],
    unknownFields: [],
  })
  t.notOk(decode(PodSchema, []).ok)
})

test('quantities become canonical text, bare numbers too', async (t) => {
  const node = decode(NodeSchema, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {},
    status: { capacity: { cpu: 0.5, memory: '1024Mi' } },
  })
  t.same(node.ok && node.value.status?.capacity, { cpu: '500m', memory: '1Gi' })
})

test('times get the precision Kubernetes writes', async (t) => {
  const lease = decode(LeaseSchema, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { creationTimestamp: '2026-01-02T04:04:05.678+01:00' },
    spec: { renewTime: '2026-01-02T03:04:05Z', acquireTime: '2026-01-02T03:04:05.123456Z' },
  })
  t.ok(lease.ok)
  t.equal(lease.ok && lease.value.metadata.creationTimestamp, '2026-01-02T03:04:05Z')
  t.equal(lease.ok && lease.value.spec?.renewTime, '2026-01-02T03:04:05.000000Z')
  t.equal(lease.ok && lease.value.spec?.acquireTime, '2026-01-02T03:04:05.123456Z', 'nothing is lost')
  const wrong = decode(LeaseSchema, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { creationTimestamp: 'yesterday' },
  })
  t.match(!wrong.ok && wrong.problems, [{ field: 'metadata.creationTimestamp' }])
})

test('keys that reach into JavaScript itself are refused, and nesting has an end', async (t) => {
  const schema = object({ labels: optional(mapOf(text)), any: optional(anything) })
  t.notOk(decode(schema, JSON.parse('{"labels":{"__proto__":"x"}}')).ok)
  t.notOk(decode(schema, JSON.parse('{"any":{"a":{"__proto__":{"x":1}}}}')).ok)
  t.same(decode(schema, JSON.parse('{"__proto__":{"labels":{}}}')), {
    ok: true,
    value: {},
    unknownFields: ['__proto__'],
  })
  const inherited = decode(schema, { labels: { constructor: 'fine' } })
  t.same(inherited.ok && inherited.value, { labels: { constructor: 'fine' } })
  t.notOk(decode(schema, { any: JSON.parse(`${'['.repeat(100)}1${']'.repeat(100)}`) }).ok)
})

test('limits, bytes, unions and words speak plainly', async (t) => {
  const schema = object({
    port: Integer({ minimum: 1, maximum: 65535 }),
    body: bytes,
    at: intOrString,
    kind: oneOf('Only'),
    n: integer,
  })
  const decoded = decode(schema, { port: 0, body: 5, at: true, kind: 'Other', n: 1.5 })
  t.same(!decoded.ok && decoded.problems.map(({ field, message }) => `${field}: ${message}`), [
    'port: Invalid value: 0: must be between 1 and 65535',
    'body: Invalid value: 5: must be text',
    'at: Invalid value: true: must be an integer or text',
    'kind: Unsupported value: "Other": supported values: "Only"',
    'n: Invalid value: 1.5: must be an integer',
  ])
  t.match(decode(object({ body: bytes }), { body: 'not base64' }), { problems: [{ field: 'body' }] })
  t.match(decode(object({ body: bytes }), { body: 'YWJj\nZGVm\n' }), { value: { body: 'YWJjZGVm' } })
  t.ok(decode(schema, { port: 80, body: 'YQ==', at: 'http', kind: 'Only', n: 1 }).ok)
})

test('a null amount of a resource is zero, as in Kubernetes', async (t) => {
  const pod = {
    metadata: {},
    spec: { containers: [{ name: 'a', resources: { requests: { memory: null, cpu: ' 1 ' } } }] },
  }
  const decoded = decode(PodSchema, { apiVersion: 'v1', kind: 'Pod', ...pod })
  t.same(decoded.ok && decoded.value.spec.containers[0]?.resources?.requests, { memory: '0', cpu: '1' })
})

test('a null in a list or a map is the zero of its type, as for Go', async (t) => {
  const zeros = (schema: TSchema) => {
    const [inList, inMap] = [decode(list(schema), [null]), decode(mapOf(schema), { a: null })]
    return [inList.ok && inList.value, inMap.ok && inMap.value]
  }
  t.same(zeros(text), [[''], { a: '' }])
  t.same(zeros(bytes), [[''], { a: '' }])
  t.same(zeros(integer), [[0], { a: 0 }])
  t.same(zeros(bool), [[false], { a: false }])
  t.same(zeros(quantity), [['0'], { a: '0' }])
  t.same(zeros(intOrString), [[0], { a: 0 }])
  t.same(zeros(object({ name: optional(text) })), [[{}], { a: {} }])
  t.same(zeros(mapOf(text)), [[{}], { a: {} }])
  const refused = decode(list(object({ name: text })), [null])
  t.same(!refused.ok && refused.problems.map(({ field }) => field), ['[0].name'], 'its fields are missing')
  const choice = decode(list(oneOf('TCP', 'UDP')), [null])
  t.match(!choice.ok && choice.problems[0]?.message, /^Unsupported value: ""/)
})

test('the walk ends with the hundredth problem, and a hundred unknown fields are named', async (t) => {
  const items = Array.from({ length: 100_000 }, () => 1)
  const wrong = [
    { spec: { containers: items } },
    { metadata: { labels: Object.fromEntries(items.map((one, index) => [`k${index}`, one])) } },
    { spec: { containers: items.map((_, index) => ({ name: index })) } },
  ]
  for (const input of wrong) {
    const decoded = decode(PodSchema, { apiVersion: 'v1', kind: 'Pod', ...input })
    t.ok(!decoded.ok && decoded.problems.length <= 101, 'no more than the required fields beside the hundred')
  }
  const unknown = decode(object({}), Object.fromEntries(items.map((one, index) => [`k${index}`, one])))
  t.equal(unknown.unknownFields.length, 100)
})

test('each kind of value is refused in its own words', async (t) => {
  const refusals = (schema: Parameters<typeof decode>[0], value: unknown) => {
    const decoded = decode(object({ f: schema }), { f: value })
    return decoded.ok ? [] : decoded.problems.map(({ field, reason, message }) => `${field} ${reason}: ${message}`)
  }
  const ofType = (shown: string, wanted: string) => [
    `f FieldValueTypeInvalid: Invalid value: ${shown}: must be ${wanted}`,
  ]
  const invalid = (shown: string, because: string) => [`f FieldValueInvalid: Invalid value: ${shown}: ${because}`]
  const aTime = 'a time (like 2026-01-02T03:04:05Z)'
  t.same(refusals(list(text), 'x'), ofType('"x"', 'a list'))
  t.same(refusals(mapOf(text), 7), ofType('7', 'an object'))
  t.same(refusals(mapOf(text), JSON.parse('{"__proto__":"x"}')), invalid('"__proto__"', 'this key is not allowed'))
  t.same(refusals(quantity, true), ofType('true', 'a quantity (like 100m or 64Mi)'))
  t.same(refusals(time, 7), ofType('7', aTime))
  t.same(refusals(time, '2026-02-30T00:00:00Z'), ofType('"2026-02-30T00:00:00Z"', aTime))
  t.same(refusals(bytes, 'YQ='), ['f FieldValueInvalid: Invalid value: must be base64'])
  t.same(refusals(bytes, 'YQ=!'), ['f FieldValueInvalid: Invalid value: must be base64'])
  t.same(refusals(oneOf('A', 'B'), 1), ofType('1', 'text'))
  t.same(refusals(Integer({ minimum: 1 }), 0), invalid('0', 'must be at least 1'))
  t.same(refusals(Integer({ maximum: 1 }), 2), invalid('2', 'must be at most 1'))
  t.same(refusals(Integer({ multipleOf: 2 }), 3), invalid('3', 'is not allowed here'))
  t.same(refusals(Text({ pattern: '^a' }), 'b'), invalid('"b"', 'must match ^a'))
  t.same(refusals(Text({ minLength: 1 }), ''), invalid('""', 'must not be empty'))
  t.same(refusals(list(integer), [1, '2']), ['f[1] FieldValueTypeInvalid: Invalid value: "2": must be an integer'])
  t.same(refusals(list(time), [null]), ['f[0] FieldValueRequired: Required value'])
})

test('what is nested deeper than the stack allows is refused, and what is decoded later is not looked at', async (t) => {
  const deep = JSON.parse(`${'['.repeat(400_000)}${']'.repeat(400_000)}`)
  for (const schema of [text, integer, list(text), object({ a: text })]) {
    t.notOk(decode(object({ any: schema }), { any: deep }).ok)
  }
  const later = decode(object({ any: decodedLater }), { any: deep })
  t.equal(later.ok && later.value.any, deep)
})

test('a field of any shape is copied as it is, 32 levels deep', async (t) => {
  const schema = object({ any: anything })
  const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`)
  const any = { a: [1, null, { b: false }], c: null }
  t.same(decode(schema, { any }), { ok: true, value: { any }, unknownFields: [] })
  t.ok(decode(schema, { any: nested(33) }).ok)
  const refused = decode(schema, { any: { a: nested(33) } })
  t.match(!refused.ok && refused.problems, [
    { field: /^any\.a(\[0\]){32}$/, message: 'Invalid value: "...": is nested deeper than 32 levels' },
  ])
  const inside = decode(schema, JSON.parse('{"any":[{"a":{"__proto__":1}}]}'))
  t.match(!inside.ok && inside.problems, [{ field: 'any[0].a', message: /this key is not allowed/ }])
})
