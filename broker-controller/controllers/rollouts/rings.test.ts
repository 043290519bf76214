import { test } from 'tap'
import { ringsOf } from './rings.ts'
import type { FleetRelease, RolloutNode } from './rollout-facts.ts'
import type { Ring } from './rollout-rules.ts'

const target: FleetRelease = { version: '2.0.0', sequence: 20, digest: 'two', floor: 1 }
const plain = {
  ...{ labels: {}, link: '', zone: '', sequence: 10, isConnected: true, lostSinceMs: undefined },
  ...{ isController: false, penaltyUntilMs: 0, admitted: undefined, report: undefined },
}
const many: readonly RolloutNode[] = Array.from({ length: 200 }, (_, at) => ({ ...plain, name: `node-${at}` }))

const namesOf = (rings: readonly Ring[], nodes = many, release = target) =>
  ringsOf(rings, nodes, release, 100).map(({ nodes: own }) => own.map(({ name }) => name))
const canary: Ring = { name: 'canary', count: 1, soakSeconds: 0 }

test('rings are a number of nodes, a share of the fleet, and those with labels; the rest is one of its own', async (t) => {
  const nodes = many.map((one, at) => (at % 20 === 0 ? { ...one, labels: { stage: 'test', at: `${at}` } } : one))
  const [first = [], share = [], labelled = [], rest = []] = namesOf(
    [
      { name: 'few', count: 3, soakSeconds: 0 },
      { name: 'share', percent: 10, soakSeconds: 0 },
      { name: 'test', labels: { stage: 'test' }, soakSeconds: 0 },
    ],
    nodes,
  )
  t.same([first.length, share.length], [3, 20])
  t.ok(labelled.length > 0 && labelled.every((name) => Number(name.slice(5)) % 20 === 0))
  t.equal(new Set([...first, ...share, ...labelled, ...rest]).size, 200, 'each node is in one ring')
})

test('two releases begin with other nodes, and the same one always with the same', async (t) => {
  const firstOf = (digest: string) => namesOf([canary], many, { ...target, digest })[0]?.[0]
  t.equal(firstOf('two'), firstOf('two'))
  t.ok(new Set(['two', 'three', 'four', 'five', 'six'].map(firstOf)).size > 2)
  t.equal(namesOf([canary], [...many].reverse())[0]?.[0], firstOf('two'), 'in whichever order they are listed')
})

const last: Readonly<Record<string, Partial<RolloutNode>>> = {
  'is away': { isConnected: false },
  'is in the penalty box': { penaltyUntilMs: 101 },
  'has the release already': { sequence: 20 },
  'cannot update itself': { sequence: undefined },
  'runs a controller': { isController: true },
}
for (const [what, over] of Object.entries(last)) {
  test(`a node that ${what} is not the first of its ring`, async (t) => {
    const [usual = ''] = namesOf([canary])[0] ?? []
    const nodes = many.map((one) => (one.name === usual ? { ...one, ...over } : one))
    t.not(namesOf([canary], nodes)[0]?.[0], usual)
  })
}

test('a node that was admitted stays in its ring when others come back and are admitted', async (t) => {
  const order = namesOf([])[0] ?? []
  const [early = '', canaryName = ''] = order
  const nodes = many.map((one) => {
    if (one.name === canaryName) return { ...one, admitted: { digest: 'two', sequence: 20, atMs: 1 } }
    return one.name === early ? { ...one, admitted: { digest: 'two', sequence: 20, atMs: 2 } } : one
  })
  t.same(namesOf([canary], nodes)[0], [canaryName])
})
