import { test } from 'tap'
import type { RuntimeClass } from '../../../../api/node/runtime-class.ts'
import type { Toleration } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { growth, linearAtMost } from '../../../../daemon/testing/growth.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { mergedTolerations, overheadViolation, withRuntimeClass } from './runtime-admission.ts'

const runtimeClass = (more: Partial<RuntimeClass> = {}): RuntimeClass => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'safe' },
  handler: 'runsc',
  ...more,
})
const asking = (spec: object = {}) => aPod({ spec: { runtimeClassName: 'safe', ...spec } })
const specOf = (pod: ReturnType<typeof aPod>, found: RuntimeClass) => {
  const admitted = withRuntimeClass(pod, found)
  return admitted.ok ? admitted.object.spec : admitted.because
}

test('a pod gets the overhead of its class, and may only repeat it', async (t) => {
  const charged = runtimeClass({ overhead: { podFixed: { cpu: '250m' } } })
  const other = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
  t.match(specOf(asking(), charged), { overhead: { cpu: '250m' } })
  t.match(specOf(asking({ overhead: { cpu: '0.25' } }), charged), { overhead: { cpu: '250m' } })
  t.equal(specOf(asking({ overhead: { cpu: '1' } }), charged), other)
  t.equal(specOf(asking({ overhead: { memory: '1' } }), charged), other)
  t.equal(overheadViolation(asking({ overhead: { cpu: '250m' } }), charged), undefined)
  t.equal(overheadViolation(asking(), charged), other)
  t.equal(overheadViolation(asking(), runtimeClass()), undefined)
  t.equal(overheadViolation(asking({ overhead: {} }), runtimeClass({ overhead: {} })), undefined)
  t.match(overheadViolation(asking({ overhead: {} }), runtimeClass()), /set without corresponding/)
  const plain = aPod()
  t.same(withRuntimeClass(plain, charged), { ok: true, object: plain }, 'a pod without a class')
})

test('a pod goes to the nodes of its class', async (t) => {
  const scheduling = { nodeSelector: { runtime: 'runsc' }, tolerations: [{ key: 'runsc', operator: 'Exists' }] }
  const placed = runtimeClass({ scheduling })
  t.match(specOf(asking({ nodeSelector: { disk: 'ssd', runtime: 'runsc' }, tolerations: [{ key: 'a' }] }), placed), {
    nodeSelector: { disk: 'ssd', runtime: 'runsc' },
    tolerations: [{ key: 'a' }, { key: 'runsc', operator: 'Exists' }],
  })
  t.equal(
    specOf(asking({ nodeSelector: { runtime: 'runc' } }), placed),
    'conflict: runtimeClass.scheduling.nodeSelector[runtime] = runsc; pod.spec.nodeSelector[runtime] = runc',
  )
  t.same(specOf(asking(), runtimeClass({ scheduling: {} })), asking().spec)
})

test('of tolerations that cover each other one is kept', async (t) => {
  const merged = (first: Toleration, second: Toleration) => mergedTolerations([first], [second])
  const [exact, any] = [
    { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute' },
    { key: 'a', operator: 'Exists' },
  ]
  t.same(merged(exact, exact), [exact])
  t.same(merged(exact, any), [any])
  t.same(merged(any, exact), [any])
  t.same(merged(exact, { operator: 'Exists' }), [{ operator: 'Exists' }])
  t.same(merged({ key: 'a', value: 'b' }, { key: 'a', operator: 'Equal', value: 'b' }), [{ key: 'a', value: 'b' }])
  for (const other of [
    { ...exact, value: 'c' },
    { ...exact, key: 'c' },
    { ...exact, effect: 'NoSchedule' },
    { key: 'c', operator: 'Exists' },
  ]) {
    t.same(merged(exact, other), [exact, other])
  }
  const [short, long] = [
    { ...exact, tolerationSeconds: 1 },
    { ...exact, tolerationSeconds: 2 },
  ]
  t.same(merged(short, long), [long])
  t.same(merged(short, exact), [exact])
  t.same(merged(exact, short), [exact])
})

test('merging tolerations gives what comparing each with all others gives', (t) => {
  const random = seededRandom(7)
  const pick = <T>(of: readonly T[]): T | undefined => of[Math.floor(random() * of.length)]
  for (let round = 0; round < 300; round++) {
    const some = Array.from({ length: 1 + Math.floor(random() * 6) }, (): Toleration => {
      const [key, operator, value] = [
        pick(['', 'a', 'b', undefined]),
        pick(['Exists', 'Equal', undefined]),
        pick(['x', 'y', undefined]),
      ]
      const [effect, tolerationSeconds] = [pick(['NoExecute', 'NoSchedule', undefined]), pick([1, 2, undefined])]
      return {
        ...(key !== undefined && { key }),
        ...(operator !== undefined && { operator }),
        ...(value !== undefined && operator !== 'Exists' && { value }),
        ...(effect !== undefined && { effect }),
        ...(tolerationSeconds !== undefined && { tolerationSeconds }),
      }
    })
    // Two of them in turn is what the function decides for pairs; more of them must agree with every pair.
    const kept = mergedTolerations(some, [])
    for (const [index, one] of kept.entries()) {
      const others = kept.filter((_, place) => place !== index)
      for (const other of others)
        t.same(mergedTolerations([one], [other]), [one, other], 'none of those kept covers another one')
    }
    for (const gone of some.filter((one) => !kept.includes(one))) {
      const isCovered = kept.some((other) => mergedTolerations([other], [gone]).length === 1)
      if (!isCovered) t.fail(`nothing covers ${JSON.stringify(gone)} of ${JSON.stringify(some)}`)
    }
  }
  t.end()
})

test('thousands of tolerations cost as much as their number, whatever they have in common', (t) => {
  const alike: readonly ((index: number) => Toleration)[] = [
    (index) => ({ key: 'a', operator: 'Equal', value: `${index}`, effect: 'NoSchedule' }),
    (index) => ({ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: index }),
    (index) => ({ key: `a-${index}`, operator: 'Exists' }),
  ]
  for (const make of alike) {
    const risen = growth(600, (size) => {
      const many = Array.from({ length: size }, (_, index) => make(index))
      return () => mergedTolerations(many, [{ key: 'other', operator: 'Exists' }])
    })
    t.ok(risen < linearAtMost, `eight times as many: ${risen.toFixed(1)} times the CPU time`)
  }
  t.end()
})

test('a pod without a class, or of one that does not exist', async (t) => {
  const plain = aPod({ spec: { overhead: { cpu: '1' } } })
  t.same(withRuntimeClass(plain, undefined), { ok: true, object: plain })
  t.same(withRuntimeClass(asking(), undefined), {
    ok: false,
    because: 'pod rejected: RuntimeClass "safe" not found',
  })
  t.match(overheadViolation(plain, undefined), /set without corresponding RuntimeClass defined Overhead$/)
  t.equal(overheadViolation(aPod(), undefined), undefined)
})

test('a class without an overhead leaves that of the pod, and an empty one is given', async (t) => {
  t.same(specOf(asking({ overhead: { cpu: '1' } }), runtimeClass()), asking({ overhead: { cpu: '1' } }).spec)
  t.match(specOf(asking(), runtimeClass({ overhead: {} })), { overhead: {} })
  t.match(specOf(asking({ overhead: { cpu: '1' } }), runtimeClass({ overhead: {} })), /^pod rejected: Pod's Overhead/)
  const both = runtimeClass({ overhead: { podFixed: { cpu: '1', memory: '1Gi' } } })
  t.match(specOf(asking({ overhead: { memory: '1024Mi', cpu: '1000m' } }), both), {
    overhead: { cpu: '1', memory: '1Gi' },
  })
  t.match(specOf(asking({ overhead: { cpu: '1' } }), both), /^pod rejected: Pod's Overhead/)
})

test('a toleration covers another one by its key, effect, operator and time', async (t) => {
  const all: Toleration = { operator: 'Exists' }
  const pairs: readonly (readonly [wide: Toleration, one: Toleration])[] = [
    [all, { key: 'a', operator: 'Equal', value: 'b', effect: 'NoSchedule' }],
    [all, { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 }],
    [
      { operator: 'Exists', effect: 'NoSchedule' },
      { key: 'a', operator: 'Exists', effect: 'NoSchedule' },
    ],
    [
      { key: 'a', operator: 'Exists' },
      { key: 'a', operator: 'Equal', value: 'b', effect: 'NoSchedule' },
    ],
    [
      { key: 'a', operator: 'Equal', value: 'b' },
      { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute' },
    ],
  ]
  for (const [wide, one] of pairs) {
    t.same(mergedTolerations([wide], [one]), [wide])
    t.same(mergedTolerations([one], [wide]), [wide])
  }
  const apart: readonly (readonly [Toleration, Toleration])[] = [
    [
      { operator: 'Exists', effect: 'NoSchedule' },
      { key: 'a', operator: 'Exists', effect: 'NoExecute' },
    ],
    [
      { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 },
      { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 2 },
    ],
    [
      { key: 'ab', operator: 'Equal', value: 'c' },
      { key: 'a', operator: 'Equal', value: 'bc' },
    ],
  ]
  for (const [one, other] of apart) t.same(mergedTolerations([one], [other]), [one, other])
})
