import { test } from 'tap'
import type { PodAffinityTerm } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { finished } from '../../daemon/watchdog/steps.ts'
import { aCluster, hostKey, inZone, prefers, refusalsOf, requires, zoneKey } from '../testing/scheduling.ts'
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
  const scores = (spec: object) => finished(neighbourScores(aPod({ labels: { app: 'web' }, spec }), usages, known))
  t.equal(scores({}), undefined)
  t.same(scores(prefers('podAffinity', 'db')), [100, 0, 0])
  t.same(scores(prefers('podAffinity', 'db', { topologyKey: zoneKey })), [100, 100, 0])
  t.same(scores(prefers('podAntiAffinity', 'noisy')), [100, 100, 0])
  const host = aCluster(nodes, [
    { nodeName: 'b', spec: prefers('podAffinity', 'web', {}, 50) },
    { nodeName: 'c', spec: requires('podAffinity', 'web') },
  ])
  t.same(finished(neighbourScores(aPod({ labels: { app: 'web' } }), [...host.from(0)], host)), [0, 100, 2])
})

const terms = (...podAffinityTerms: readonly PodAffinityTerm[]) => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: podAffinityTerms } },
})
const ofApp = (topologyKey: string): PodAffinityTerm => ({ topologyKey, labelSelector: { matchLabels: { app: 'db' } } })
const fast = (topologyKey: string): PodAffinityTerm => ({
  topologyKey,
  labelSelector: { matchLabels: { tier: 'fast' } },
})
const both = { labels: { app: 'db', tier: 'fast' } }

test('of several required terms one pod must meet all, and the node must be near it by each', async (t) => {
  const asks = aPod({ spec: terms(ofApp(hostKey), fast(zoneKey)) })
  t.same(refusalsOf(asks, aCluster(nodes, [{ nodeName: 'a', ...db }])), { a: near, b: near, c: near })
  const known = aCluster(nodes, [
    { nodeName: 'a', ...both },
    { nodeName: 'c', ...db },
  ])
  t.same(refusalsOf(asks, known), { b: near, c: near })
})

test('a pod is the first of its group where it meets all of its terms, and none of the group runs anywhere', async (t) => {
  const spec = terms(ofApp(hostKey), fast(zoneKey))
  t.same(refusalsOf(aPod({ ...both, spec }), aCluster(nodes)), {})
  t.same(refusalsOf(aPod({ ...db, spec }), aCluster(nodes)), { a: near, b: near, c: near })
  const apart = aCluster([...nodes, { name: 'd' }], [{ nodeName: 'd', ...both }])
  t.same(
    refusalsOf(aPod({ ...both, spec }), apart),
    { a: near, b: near, c: near, d: near },
    'one runs outside all zones',
  )
})

test('what a pod wants, what it does not want and what others do not want are asked together', async (t) => {
  const { podAffinity } = requires('podAffinity', 'none').affinity ?? {}
  const { podAntiAffinity } = requires('podAntiAffinity', 'web').affinity ?? {}
  const known = aCluster(nodes, [{ nodeName: 'a', spec: requires('podAntiAffinity', 'db') }])
  const spec = { affinity: { ...(podAffinity && { podAffinity }), ...(podAntiAffinity && { podAntiAffinity }) } }
  t.same(refusalsOf(aPod({ spec }), known), { a: near, b: near, c: near })
  t.same(refusalsOf(aPod({ ...db, spec: requires('podAffinity', 'none') }), known), { a: near, b: near, c: near })
})

test('all pods count that a term chooses, whatever else they are labelled with and in each of its namespaces', async (t) => {
  const known = aCluster(nodes, [
    { nodeName: 'a', labels: { app: 'db', version: '1' } },
    { nodeName: 'c', labels: { app: 'db', version: '2' } },
    { nodeName: 'b', namespace: 'data', ...db },
  ])
  t.same(refusalsOf(aPod({ spec: requires('podAffinity', 'db') }), known), { b: near })
  const asks = (...namespaces: readonly string[]) =>
    Object.keys(refusalsOf(aPod({ spec: requires('podAntiAffinity', 'db', { namespaces }) }), known))
  t.same(asks('data', 'other'), ['b'])
  t.same(asks('data', 'default'), ['a', 'b', 'c'])
})

test('preferences that make no difference score 0, and those of pods that mean others score nothing', async (t) => {
  const known = aCluster(nodes.slice(0, 2), [{ nodeName: 'a', ...db }])
  const usages = [...known.from(0)]
  t.same(
    finished(neighbourScores(aPod({ spec: prefers('podAffinity', 'db', { topologyKey: zoneKey }) }), usages, known)),
    [0, 0],
  )
  const host = aCluster(nodes, [{ nodeName: 'b', spec: prefers('podAffinity', 'web') }])
  t.equal(finished(neighbourScores(aPod(db), [...host.from(0)], host)), undefined)
})
