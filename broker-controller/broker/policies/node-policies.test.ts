import { test } from 'tap'
import { mostPolicies, type NamespaceTexts, namespaceTexts, nodePolicies } from './node-policies.ts'

const part = (namespace: string, policies: readonly string[], sets: { readonly [name: string]: string } = {}) =>
  ({ namespace, policies, sets: new Map(Object.entries(sets)), isCut: false }) satisfies NamespaceTexts
const pause = async () => undefined

test('a set that policies of two namespaces have is there once', (t) => {
  const found = nodePolicies([part('a', ['A'], { x: 'X' }), part('b', ['B1', 'B2'], { x: 'X', w: 'W' })], 1_000)
  t.same(found, { namespaces: ['a', 'b'], policies: ['A', 'B1', 'B2'], sets: ['W', 'X'], leftOut: [] })
  t.end()
})

test('namespaces with the longest texts are left out whole, and the others are not affected', (t) => {
  const all = [
    part('a', ['A']),
    part('huge', ['H'.repeat(400)]),
    part('large', ['L'], { x: 'X'.repeat(300) }),
    part('b', []),
  ]
  t.same(nodePolicies(all, 500).leftOut, ['huge'])
  t.same(nodePolicies(all, 200), { namespaces: ['a', 'b'], policies: ['A'], sets: [], leftOut: ['huge', 'large'] })
  t.end()
})

test('the texts of a namespace that cannot fit are not all made', async (t) => {
  let made = 0
  const textOf = () => {
    made += 1
    return 'x'.repeat(100)
  }
  const sets = new Set(Array.from({ length: 1_000 }, (_, index) => String(index)))
  const texts = await namespaceTexts({ namespace: 'a', policies: [], sets }, textOf, 1_000, pause)
  t.ok(texts.isCut)
  t.ok(made <= 11, String(made))
  t.same(nodePolicies([texts, part('b', ['B'])], 1_000_000), {
    namespaces: ['b'],
    policies: ['B'],
    sets: [],
    leftOut: ['a'],
  })
  const few = await namespaceTexts({ namespace: 'a', policies: [], sets: new Set(['0']) }, textOf, 1_000, pause)
  t.notOk(few.isCut)
})

test('a namespace with very many policies is left out', async (t) => {
  const texts = (count: number) =>
    namespaceTexts({ namespace: 'a', policies: Array(count).fill('P'), sets: new Set() }, () => 'x', 1_000_000, pause)
  t.same(nodePolicies([await texts(mostPolicies)], 1_000_000).leftOut, [])
  t.same(nodePolicies([await texts(mostPolicies + 1), part('b', ['B'])], 1_000_000).namespaces, ['b'])
})
