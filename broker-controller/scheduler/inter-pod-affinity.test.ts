import { test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { aCluster, inZone, prefers, refusalsOf, requires, zoneKey } from '../testing/scheduling.ts'
import { neighbourScores } from './inter-pod-affinity.ts'

const nodes = [inZone('a', '1'), inZone('b', '1'), inZone('c', '2')]
const near = ["node(s) didn't match pod affinity rules"]
const far = ["node(s) didn't match pod anti-affinity rules"]
const unwanted = ["node(s) didn't satisfy existing pods anti-affinity rules"]
const db = { labels: { app: 'db' } }

test('a pod runs where a pod it wants near it runs, within whatever it calls near', async (t) => {
  const known = aCluster(nodes, [{ nodeName: 'a', ...db }])
  t.same(refusalsOf(aPod({ spec: requires('podAffinity', 'db') }), known), { b: near, c: near })
  t.same(refusalsOf(aPod({ spec: requires('podAffinity', 'db', { topologyKey: zoneKey }) }), known), { c: near })
  t.same(refusalsOf(aPod({ spec: requires('podAffinity', 'none') }), known), { a: near, b: near, c: near })
})

test('the first of a group that wants to be together begins anywhere that has the label', async (t) => {
  const known = aCluster([...nodes, { name: 'd' }])
  const first = aPod({ ...db, spec: requires('podAffinity', 'db', { topologyKey: zoneKey }) })
  t.same(refusalsOf(first, known), { d: near })
  known.place('default/x', first, 'c')
  t.same(refusalsOf(aPod({ ...first, name: 'second', ...db, spec: first.spec }), known), { a: near, b: near, d: near })
})

test('a pod keeps away from those it names, and from those that named it', async (t) => {
  const shy = { spec: requires('podAntiAffinity', 'db', { topologyKey: zoneKey }) }
  t.same(refusalsOf(aPod(shy), aCluster(nodes, [{ nodeName: 'a', ...db }])), { a: far, b: far })
  const kept = aCluster(nodes, [{ nodeName: 'a', ...shy }])
  t.same(refusalsOf(aPod(db), kept), { a: unwanted, b: unwanted })
  t.same(refusalsOf(aPod({ labels: { app: 'web' } }), kept), {})
  kept.remove('default/p0')
  t.same(refusalsOf(aPod(db), kept), {}, 'it is gone, and with it its wish')
})

test('other namespaces count when they are named, or chosen by their labels', async (t) => {
  const known = aCluster(nodes, [{ nodeName: 'a', namespace: 'data', ...db }])
  const asks = (more: object) => Object.keys(refusalsOf(aPod({ spec: requires('podAntiAffinity', 'db', more) }), known))
  t.same(asks({}), [])
  t.same(asks({ namespaces: ['data'] }), ['a'])
  t.same(asks({ namespaceSelector: {} }), ['a'], 'an empty selector means all')
  const team = { namespaceSelector: { matchLabels: { team: 'red' } } }
  t.same(asks(team), [])
  known.putNamespace('data', { team: 'red' })
  t.same(asks(team), ['a'])
})

test('preferences draw and push, of the pod and of those who are there', async (t) => {
  const known = aCluster(nodes, [
    { nodeName: 'a', ...db },
    { nodeName: 'c', labels: { app: 'noisy' } },
  ])
  const usages = [...known.from(0)]
  const scores = (spec: object) => neighbourScores(aPod({ labels: { app: 'web' }, spec }), usages, known)
  t.equal(scores({}), undefined)
  t.same(scores(prefers('podAffinity', 'db')), [100, 0, 0])
  t.same(scores(prefers('podAffinity', 'db', { topologyKey: zoneKey })), [100, 100, 0])
  t.same(scores(prefers('podAntiAffinity', 'noisy')), [100, 100, 0])
  const host = aCluster(nodes, [
    { nodeName: 'b', spec: prefers('podAffinity', 'web', {}, 50) },
    { nodeName: 'c', spec: requires('podAffinity', 'web') },
  ])
  t.same(neighbourScores(aPod({ labels: { app: 'web' } }), [...host.from(0)], host), [0, 100, 2])
})
