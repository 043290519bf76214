/** Seeded fuzzing of the patches of the API: each applies or is refused, and changes nothing but its result. */
import { test } from 'tap'
import { ApiError } from '../../../api/api-error.ts'
import { PodSchema } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fuzzSeed, mutatedValue, type RandomNumbers, randomNumbers } from '../../../daemon/testing/fuzz.ts'
import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './patch.ts'
import { statusOf } from './status-errors.ts'
import { strategicMergePatch } from './strategic-merge-patch.ts'

const rounds = 3_000
const containers = [
  { name: 'a', image: 'x', ports: [{ containerPort: 53, protocol: 'TCP' }], env: [{ name: 'A', value: '1' }] },
  { name: 'b', image: 'y', args: ['1', '2'] },
]
const pod = aPod({ name: 'web', labels: { app: 'web' } })
const target: unknown = JSON.parse(JSON.stringify({ ...pod, spec: { ...pod.spec, containers } }))

const pointers = [
  '',
  '/metadata',
  '/metadata/labels',
  '/metadata/labels/app',
  '/spec/containers',
  '/spec/containers/0',
  '/spec/containers/-',
  '/spec/containers/1/args/0',
  '/spec/containers/99999999999',
  '/__proto__/polluted',
  '/constructor/prototype/polluted',
  '/metadata/~2',
  'spec',
]
const kinds = ['add', 'remove', 'replace', 'move', 'copy', 'test', 'append', '']

for (const [name, patched] of [
  ['JSON', (random: RandomNumbers) => jsonPatch(target, operations(random))],
  ['merge', (random: RandomNumbers) => mergePatch(target, mutatedValue(target, random))],
  ['strategic merge', (random: RandomNumbers) => strategicMergePatch(PodSchema, target, directed(random))],
] as const) {
  test(`no ${name} patch crashes, changes its target, or reaches a prototype`, async (t) => {
    const random = randomNumbers()
    const before = JSON.stringify(target)
    let applied = 0
    for (let round = 0; round < rounds; round++) {
      try {
        JSON.stringify(patched(random))
        applied++
      } catch (error) {
        const { code } = statusOf(error)
        if (!(error instanceof ApiError) || code >= 500) t.fail(`seed ${fuzzSeed}, round ${round}: ${error}`)
      }
    }
    t.ok(applied > rounds / 50, `${applied} apply`)
    t.equal(JSON.stringify(target), before)
    t.notOk('polluted' in {})
    t.same(Object.keys(Object.prototype), [])
  })
}

function operations(random: RandomNumbers): unknown {
  const one = () => ({
    op: kinds[random() % (random() % 4 === 0 ? kinds.length : 3)],
    path: pointers[random() % pointers.length],
    from: pointers[random() % pointers.length],
    value: mutatedValue(containers, random),
  })
  const list = Array.from({ length: 1 + (random() % 4) }, one)
  return random() % 8 === 0 ? mutatedValue(list, random) : list
}

/** With the directives of a strategic merge patch. */
function directed(random: RandomNumbers): unknown {
  const directives: readonly object[] = [
    {},
    { $patch: 'delete' },
    { $patch: 'replace' },
    { $patch: 'merge' },
    { $retainKeys: ['name'] },
    { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }] },
    { '$deleteFromPrimitiveList/args': ['1'] },
    { '$setElementOrder/containers': 1 },
    { $patch: 'nonsense' },
  ]
  const some = () => directives[random() % directives.length] ?? {}
  const list = containers.map((one) => ({ ...one, ...some() }))
  return mutatedValue({ metadata: { labels: { app: 'x' }, ...some() }, spec: { containers: list, ...some() } }, random)
}
