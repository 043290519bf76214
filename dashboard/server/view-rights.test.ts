import { test } from 'tap'
import type { Attributes } from '../../broker-controller/apiserver/handlers/authorizer.ts'
import { isVisible, viewRights } from './view-rights.ts'

const jane = { user: 'jane', groups: [] }

/** Allows these lists: `pods`, or `shop/pods` in one namespace. */
function allowing(...lists: readonly string[]) {
  const asked: string[] = []
  const decide = async (_: unknown, attributes: Attributes) => {
    if (attributes.kind !== 'resource' || attributes.verb !== 'list') return { allowed: false, reason: '' }
    const { group, resource, namespace } = attributes
    const name = group === 'metrics.k8s.io' ? `metrics-${resource}` : resource
    const list = namespace === '' ? name : `${namespace}/${name}`
    asked.push(list)
    return { allowed: lists.includes(list), reason: '' }
  }
  return { decide, asked }
}

test('who may list a kind in all namespaces sees all its cards, and namespaces are not asked about', async (t) => {
  const access = allowing('nodes', 'pods', 'metrics-nodes')
  const rights = await viewRights(jane, access, ['default', 'shop'])
  t.match(rights, { nodes: true, usage: true, pods: true, events: false, workloads: false, requests: false })
  t.notOk(access.asked.includes('shop/pods'))
  t.equal(isVisible(rights, 'pods', 'anything'), true)
  t.equal(isVisible(rights, 'events', 'default'), false)
})

test('who may list a kind in some namespaces sees the cards of those', async (t) => {
  const rights = await viewRights(jane, allowing('shop/pods', 'shop/events'), ['default', 'shop'])
  t.same([rights.nodes, rights.pods, rights.events], [false, ['shop'], ['shop']])
  t.equal(isVisible(rights, 'pods', 'shop'), true)
  t.equal(isVisible(rights, 'pods', 'default'), false)
  t.equal(isVisible(rights, 'nodes', ''), false)
})

test('workloads are shown where all their kinds may be listed', async (t) => {
  const some = await viewRights(jane, allowing('deployments', 'statefulsets'), ['default'])
  t.equal(some.workloads, false)
  const all = ['deployments', 'statefulsets', 'daemonsets']
  t.equal((await viewRights(jane, allowing(...all), [])).workloads, true)
  const inShop = await viewRights(jane, allowing(...all.map((kind) => `shop/${kind}`)), ['default', 'shop'])
  t.same(inShop.workloads, ['shop'])
})

test('a fleet with very many namespaces is not asked about each of them', async (t) => {
  const access = allowing()
  await viewRights(
    jane,
    access,
    Array.from({ length: 1_000 }, (_, i) => `ns-${i}`),
  )
  t.ok(access.asked.length < 700, `${access.asked.length} decisions`)
})
