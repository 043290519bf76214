import { test } from 'tap'
import type { Labels } from '../../api/selectors.ts'
import { aPod, type PodOverrides } from '../../api/testing/builders.ts'
import { prefers, requires } from '../testing/scheduling.ts'
import { groupOf, type PodClass, podClasses } from './pod-classes.ts'

const zone = 'topology.kubernetes.io/zone'
const zoneOf: Readonly<Record<string, string>> = { a: 'attic', b: 'attic', c: 'cellar' }
const opened = () =>
  podClasses((node): Labels => {
    const place = zoneOf[node]
    return place === undefined ? {} : { [zone]: place }
  })
const web: PodOverrides = { labels: { app: 'web', tier: 'front' } }
const owner = (uid: string, controller = true) => ({
  ...{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid, controller },
})
const owned = (...references: readonly ReturnType<typeof owner>[]) => ({ metadata: { ownerReferences: references } })
const sorted = (counts: ReadonlyMap<string, number>) => Object.fromEntries([...counts].sort())

test('pods that nothing distinguishes are one class', async (t) => {
  const cases: readonly (readonly [title: string, PodOverrides, isSame: boolean])[] = [
    ['another name and image', { ...web, name: 'other', image: 'busybox:1.37', requests: { cpu: '1' } }, true],
    ['labels in another order', { labels: { tier: 'front', app: 'web' } }, true],
    ['annotations', { ...web, annotations: { a: 'b' } }, true],
    ['node affinity', { ...web, spec: { affinity: { nodeAffinity: {} } } }, true],
    ['another label', { labels: { ...web.labels, version: '2' } }, false],
    ['another namespace', { ...web, namespace: 'batch' }, false],
    ['another owner', { ...web, ...owned(owner('rs-1')) }, false],
    ['a deletion', { ...web, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, false],
    ['affinity', { ...web, spec: requires('podAffinity', 'db') }, false],
    ['anti-affinity', { ...web, spec: requires('podAntiAffinity', 'db') }, false],
  ]
  for (const [title, over, isSame] of cases) {
    const classes = opened()
    classes.enter(aPod(web), 'a')
    classes.enter(aPod(over), 'a')
    t.equal([...classes.all()].length, isSame ? 1 : 2, title)
  }
})

test('a class is found by its namespace and its group, until its last pod has gone', async (t) => {
  const classes = opened()
  const [one, other] = [aPod({ ...web, ...owned(owner('rs-1')) }), aPod({ namespace: 'batch' })]
  classes.enter(one, 'a')
  classes.enter(one, 'b')
  classes.enter(other, 'c')
  const found = () => [
    ...[classes.in('default'), classes.in('batch'), classes.ofGroup('rs-1'), classes.all()].map(
      (some) => [...some].length,
    ),
  ]
  t.same(found(), [1, 1, 1, 2])
  classes.leave(one, 'a')
  t.same(found(), [1, 1, 1, 2])
  classes.leave(one, 'b')
  classes.leave(one, 'b')
  t.same(found(), [0, 1, 0, 1])
  classes.leave(aPod({ labels: { app: 'unknown' } }), 'a')
  t.same(found(), [0, 1, 0, 1])
})

test('classes with terms about other pods are known', async (t) => {
  const classes = opened()
  const pods = [requires('podAffinity', 'db'), requires('podAntiAffinity', 'db'), prefers('podAffinity', 'db')].map(
    (spec) => aPod({ spec }),
  )
  for (const pod of [...pods, aPod()]) classes.enter(pod, 'a')
  t.equal(classes.withTerms.size, 3)
  for (const pod of pods) classes.leave(pod, 'a')
  t.equal(classes.withTerms.size, 0)
})

test('the pods of a class are counted by node and by domain, before and after these are asked for', async (t) => {
  const classes = opened()
  const pod = aPod(web)
  for (const node of ['a', 'a', 'b']) classes.enter(pod, node)
  const [one] = classes.all()
  if (one === undefined) return t.fail('no class')
  t.same([sorted(one.byNode), sorted(one.domains(zone))], [{ a: 2, b: 1 }, { attic: 3 }])
  classes.enter(pod, 'c')
  classes.enter(pod, 'without a zone')
  classes.leave(pod, 'a')
  t.same(sorted(one.byNode), { a: 1, b: 1, c: 1, 'without a zone': 1 })
  t.same([sorted(one.domains(zone)), sorted(one.domains('disk'))], [{ attic: 2, cellar: 1 }, {}])
  for (const node of ['a', 'b']) classes.leave(pod, node)
  t.same(sorted(one.domains(zone)), { cellar: 1 })
})

const sums = (one: PodClass, weight?: number) => {
  const found = new Map([['cellar', 5]])
  one.addDomains(zone, found, weight)
  return sorted(found)
}

test('domains are added to sums with their weight, for few nodes and for many alike', async (t) => {
  const classes = podClasses((node) => ({ [zone]: node < 'n5' ? 'attic' : 'cellar' }))
  const pod = aPod(web)
  classes.enter(pod, 'n1')
  const [one] = classes.all()
  if (one === undefined) return t.fail('no class')
  t.same(
    [sums(one), sums(one, 10)],
    [
      { attic: 1, cellar: 5 },
      { attic: 10, cellar: 5 },
    ],
  )
  for (let node = 10; node < 30; node++) classes.enter(pod, `n${node}`)
  classes.enter(pod, 'n9')
  t.same(sums(one, 2), { attic: 42, cellar: 7 })
  t.same(sums(one, -5), { attic: -105 }, 'what is nought is left out')
})

test('more labels than are kept are counted right, too', async (t) => {
  const classes = podClasses((node) => Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`l${at}`, node])))
  const pod = aPod(web)
  classes.enter(pod, 'a')
  const [one] = classes.all()
  const counts = () => Array.from({ length: 40 }, (_, at) => one?.domains(`l${at}`).get('a'))
  t.same(new Set(counts()), new Set([1]))
  classes.enter(pod, 'a')
  t.same(new Set(counts()), new Set([2]))
})

test('the group of a pod is its controller, else its labels', async (t) => {
  t.equal(groupOf(aPod(owned(owner('node', false), owner('rs-1')))), 'rs-1')
  t.equal(groupOf(aPod()), undefined)
  t.equal(groupOf(aPod(owned(owner('node', false)))), undefined)
  const group = groupOf(aPod(web))
  t.type(group, 'string')
  t.equal(groupOf(aPod({ labels: { tier: 'front', app: 'web' } })), group)
  t.not(groupOf(aPod({ ...web, namespace: 'batch' })), group)
  t.not(groupOf(aPod({ labels: { app: 'web' } })), group)
})
