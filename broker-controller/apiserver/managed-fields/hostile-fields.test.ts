import { test } from 'tap'
import type { ManagedFieldsEntry } from '../../../api/meta.ts'
import { PodSchema } from '../../../api/pod.ts'
import { isObject } from '../../../api/text/json.ts'
import { leastCpuMs } from '../../../daemon/testing/growth.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { anApi, type Document, type Got, patchTypes } from '../../testing/api-in-memory.ts'
import { configMapsPath, podsPath, sentMap } from '../../testing/sent-objects.ts'
import { mergedValue } from './applied.ts'
import { equalSets, formatFieldsV1, parseFieldsV1 } from './field-set.ts'
import { managersOf } from './managed-entries.ts'
import { compareValues, fieldsOfValue } from './typed-fields.ts'
import { typedProblems } from './typed-problems.ts'

/** Bodies of applies and managedFields that no honest client sends. Each run has the same ones, by its seed. */

type Random = ReturnType<typeof seededRandom>
const oneOf = <T>(random: Random, choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T

const strange: readonly unknown[] = [
  null,
  '',
  'x',
  0,
  -1,
  1e308,
  true,
  [],
  {},
  [null],
  [[]],
  { a: null },
  '2026-01-02T03:04:05Z',
]
const names = ['name', 'spec', 'metadata', '__proto__', 'constructor', 'toString', 'f:x', '$patch', '', 'managedFields']

/** The value with some of its parts replaced, removed, repeated or renamed. */
function mutated(random: Random, value: unknown): unknown {
  if (random() < 0.06) return oneOf(random, strange)
  if (Array.isArray(value)) {
    const items = value.map((item) => mutated(random, item))
    return random() < 0.1 ? [...items, ...items] : items
  }
  if (!isObject(value)) return value
  const fields = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    if (random() < 0.04) return []
    return [[random() < 0.03 ? oneOf(random, names) : name, mutated(random, inner)]]
  })
  return Object.fromEntries(fields)
}

const manifest = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    labels: { app: 'web' },
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': '{"apiVersion":"v1","spec":{"containers":[{}]}}',
    },
    finalizers: ['example.org/a', 'example.org/b'],
    ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
  },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'busybox',
        ports: [{ containerPort: 53 }, { containerPort: 53, protocol: 'UDP' }],
        env: [{ name: 'A', value: '1' }],
        resources: { requests: { cpu: '10m' } },
      },
      { name: 'side', image: 'busybox', args: ['1'] },
    ],
    tolerations: [{ operator: 'Exists' }],
    volumes: [{ name: 'v', emptyDir: {} }],
    nodeSelector: { a: 'b' },
  },
}

const elements = [
  'f:data',
  'f:a',
  'f:__proto__',
  '.',
  'k:{"name":"a"}',
  'k:{',
  'k:[]',
  'k:{"a":{}}',
  'v:"x"',
  'v:',
  'i:1',
  'i:',
  'x:y',
  '',
  'f:',
]

function someFields(random: Random, levels: number): unknown {
  if (levels === 0 || random() < 0.05) return random() < 0.8 ? {} : oneOf(random, strange)
  const count = Math.floor(random() * 4)
  return Object.fromEntries(
    Array.from({ length: count }, () => [oneOf(random, elements), someFields(random, levels - 1)]),
  )
}

test('FieldsV1 is read in full or not at all, and what is read is written the same', async (t) => {
  const random = seededRandom(1)
  let read = 0
  for (let round = 0; round < 5000; round++) {
    const fieldsV1 = someFields(random, 5)
    const set = parseFieldsV1(fieldsV1)
    if (set === undefined) continue
    read++
    const again = parseFieldsV1(formatFieldsV1(set))
    if (again === undefined || !equalSets(again, set)) t.fail(JSON.stringify(fieldsV1))
    const [manager] =
      managersOf([
        { manager: 'x', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 } as ManagedFieldsEntry,
      ]) ?? []
    if (manager === undefined) t.fail(JSON.stringify(fieldsV1))
  }
  t.ok(read > 500, `${read} could be read`)
})

test('every value can be walked along a schema', async (t) => {
  const random = seededRandom(2)
  for (let round = 0; round < 2000; round++) {
    const [one, other] = [mutated(random, manifest), mutated(random, manifest)]
    typedProblems(PodSchema, one)
    const { changed, removed } = compareValues(PodSchema, one, one)
    t.ok(changed.children.size + removed.children.size === 0)
    compareValues(PodSchema, one, other)
    const set = fieldsOfValue(PodSchema, one)
    if (!equalSets(set, parseFieldsV1(formatFieldsV1(set)) ?? fieldsOfValue(undefined, 0))) t.fail(JSON.stringify(one))
    try {
      mergedValue(PodSchema, one, other)
    } catch (error) {
      t.match(error, { code: 400, message: /__proto__/ })
    }
  }
})

const good = new Set([200, 201, 400, 409, 413, 422])
const versionOf = ({ body }: Got) => (body['metadata'] as Document | undefined)?.['resourceVersion']

test('a hostile body of an apply has a proper answer, and an accepted one changes nothing again', async (t) => {
  const { ask } = await anApi(t)
  const random = seededRandom(3)
  const codes = new Map<number, number>()
  const path = `${podsPath}/web`
  for (let round = 0; round < 400; round++) {
    if (round % 20 === 0) await ask('DELETE', `${path}?gracePeriodSeconds=0`)
    const body = JSON.stringify(round % 4 === 0 ? manifest : mutated(random, manifest))
    const manager = oneOf(random, ['kubectl', 'ann', 'bob'])
    const target = `${oneOf(random, [path, path, `${path}/status`])}?force=${random() < 0.5}&fieldManager=${manager}`
    const answer = await ask('PATCH', target, { type: patchTypes.apply, body })
    codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1)
    if (!good.has(answer.code) && answer.code !== 404) t.fail(`${answer.code}: ${body}`)
    if (answer.code > 201) continue
    const again = await ask('PATCH', target, { type: patchTypes.apply, body })
    if (again.code !== 200 || versionOf(again) !== versionOf(answer)) t.fail(`again ${again.code}: ${body}`)
  }
  t.ok((codes.get(200) ?? 0) + (codes.get(201) ?? 0) > 40, `answers: ${JSON.stringify([...codes])}`)
})

test('hostile managedFields are refused, or change nothing that matters', async (t) => {
  const { ask } = await anApi(t)
  const random = seededRandom(4)
  const path = `${configMapsPath}/settings`
  await ask('POST', configMapsPath, { body: sentMap({ data: { a: '1' } }) })
  const entry = {
    manager: 'x',
    operation: 'Apply',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    time: '2026-01-02T03:04:05Z',
  }
  for (let round = 0; round < 400; round++) {
    const managedFields = mutated(random, [
      { ...entry, fieldsV1: someFields(random, 4) },
      { ...entry, manager: 'y' },
    ])
    const body = JSON.stringify(sentMap({ data: { a: String(round) } }, { managedFields }))
    const answer = await ask('PUT', path, { body })
    if (!good.has(answer.code)) t.fail(`${answer.code}: ${body}`)
    const later = await ask('PATCH', `${path}?fieldManager=ann&force=true`, {
      type: patchTypes.apply,
      body: sentMap({ data: { b: String(round) } }),
    })
    if (later.code !== 200) t.fail(`then ${later.code}: ${body}`)
  }
})

test('deep, long and many managedFields cost no more than other bodies', async (t) => {
  const { ask } = await anApi(t)
  const path = `${configMapsPath}/settings`
  const deep = (levels: number) => `${'{"f:a":'.repeat(levels)}{}${'}'.repeat(levels)}`
  const put = (fieldsV1: string, count = 1) => {
    const entry = `{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${fieldsV1}}`
    const entries = Array.from({ length: count }, (_, at) => entry.replace('"x"', `"x${at}"`)).join(',')
    return ask('PUT', path, {
      body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","managedFields":[${entries}]},"data":{"a":"1"}}`,
    })
  }
  await ask('POST', configMapsPath, { body: sentMap({ data: { a: '1' } }) })
  t.match(await put(deep(31)), { code: 200 })
  t.match(await put(deep(40)), { code: 422, body: { message: /nested deeper/ } })
  t.match(await put(deep(5000)), { code: 400 })
  t.match(await put('{"f:data":{"__proto__":{}}}'), { code: 422, body: { message: /__proto__/ } })
  const wide = Array.from({ length: 9000 }, (_, at) => `"f:${at}":{}`).join(',')
  const tookMs = await leastCpuMs(async () => {
    t.match(await put('{"f:data":{}}', 1500), { code: 200 }, 'many managers')
    t.match(await put(`{"k:${'['.repeat(500_000)}":{}}`), { code: 200 }, 'a long name of an element')
    t.match(await put(`{${wide}}`), { code: 413 }, 'many fields')
  })
  t.ok(tookMs < 300, `${tookMs} ms for three requests`)
  const some = Array.from({ length: 5000 }, (_, at) => `"f:${at}":{}`).join(',')
  const applier = `{"manager":"ann","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{${some}}}}`
  const others = Array.from({ length: 400 }, (_, at) => applier.replace('ann', `m${at}`).replace(some, `"f:m${at}":{}`))
  const managedFields = `[${[applier, ...others].join(',')}]`
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","managedFields":${managedFields}},"data":{"a":"1"}}`
  const droppedMs = await leastCpuMs(
    async () => {
      const answer = await ask('PATCH', `${path}?fieldManager=ann`, { type: patchTypes.apply, body: sentMap() })
      t.match(answer, { code: 200 })
    },
    async () => t.match(await ask('PUT', path, { body }), { code: 200 }),
  )
  t.ok(droppedMs < 200, `${droppedMs} ms to drop 5,000 fields among 400 managers`)
})

test('a kind, a name or a namespace without a text is refused as a bad request', async (t) => {
  const { ask } = await anApi(t)
  const noText = { toString: 1, valueOf: 1 }
  const applyAt = `${configMapsPath}/a?fieldManager=m`
  const typed = { apiVersion: 'v1', kind: 'ConfigMap' }
  const nameless = { ...typed, metadata: { name: noText, namespace: noText }, other: 1 }
  const answers = [
    await ask('POST', configMapsPath, { body: { ...typed, kind: noText, metadata: { name: 'a' } } }),
    await ask('PATCH', applyAt, { type: patchTypes.apply, body: { ...typed, kind: noText } }),
    await ask('PATCH', applyAt, { type: patchTypes.apply, body: nameless }),
  ]
  t.same(
    answers.map(({ code }) => code),
    [400, 400, 400],
  )
})
