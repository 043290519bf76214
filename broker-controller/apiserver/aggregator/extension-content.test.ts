import { test } from 'tap'
import type { DiscoveredVersion } from './discovery-needs.ts'
import { extensionContent } from './extension-content.ts'
import type { AskOptions, ExtensionAnswer } from './extension-servers.ts'

const flunders = {
  resource: 'flunders',
  scope: 'Namespaced',
  responseKind: { kind: 'Flunder' },
  verbs: ['delete', 'list', 'deletecollection'],
}
const current = (...resources: DiscoveredVersion['resources']): DiscoveredVersion => ({
  freshness: 'Current',
  resources,
})

type World = {
  /** By `group/version`. */
  readonly versions: { readonly [name: string]: DiscoveredVersion & { readonly priority?: number } }
  readonly answer: (method: string, path: string, more: Omit<AskOptions, 'signal'>) => ExtensionAnswer | Error
}

const json = (code: number, body: object): ExtensionAnswer => ({ code, body: Buffer.from(JSON.stringify(body)) })
const listOf = (...items: readonly object[]) => json(200, { items: items.map((metadata) => ({ metadata })) })

async function removed({ versions, answer }: World, signal = new AbortController().signal) {
  const asked: string[] = []
  const remotes = Object.entries(versions).map(([name, { priority = 10 }]) => {
    const [group = '', version = ''] = name.split('/')
    const spec = { group, version, groupPriorityMinimum: 1_000, versionPriority: priority, service: { name: group } }
    const metadata = { name: `${version}.${group}`, uid: name, resourceVersion: '1', creationTimestamp: '' }
    return { apiVersion: 'apiregistration.k8s.io/v1' as const, kind: 'APIService' as const, metadata, spec }
  })
  const content = extensionContent({
    apiServices: { remotes: () => remotes },
    discovery: {
      versionOf: ({ spec }) => versions[`${spec.group}/${spec.version}`] ?? { freshness: 'Stale', resources: [] },
    },
    servers: {
      async ask(_, path, { method = 'GET', ...more }) {
        asked.push(`${method} ${path}`)
        const given = answer(method, path, { method, ...more })
        if (given instanceof Error) throw given
        return given
      },
    },
  })
  return { ...(await content.remove('team', signal)), asked }
}

const path = '/apis/wardle.example.com/v1/namespaces/team/flunders'
const kind = { name: 'flunders', group: 'wardle.example.com' }

test('a kind without objects is listed only, and one that cannot be deleted is not asked for', async (t) => {
  const nodes = { ...flunders, resource: 'nodes', scope: 'Cluster' }
  const figures = { ...flunders, resource: 'figures', verbs: ['get', 'list'] }
  const found = await removed({
    versions: { 'wardle.example.com/v1': current(flunders, nodes, figures) },
    answer: () => listOf(),
  })
  t.same(found, { remaining: [], failures: [], undiscovered: [], asked: [`GET ${path}?limit=100`] })
})

test('the objects of a namespace are deleted together, in the background, and what is left is counted', async (t) => {
  const objects = new Map<string, object>([
    ['a', { name: 'a' }],
    ['b', { name: 'b', finalizers: ['example.com/hold'] }],
  ])
  const sent: unknown[] = []
  const found = await removed({
    versions: { 'wardle.example.com/v1': current(flunders) },
    answer(method, _, { body }) {
      if (method === 'GET') return listOf(...objects.values())
      sent.push(body)
      objects.delete('a')
      return json(200, {})
    },
  })
  t.same(found.asked, [`GET ${path}?limit=100`, `DELETE ${path}`, `GET ${path}?limit=100`])
  t.same(sent, [{ kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }])
  t.same(found.remaining, [{ kind, finalizers: [['example.com/hold']] }])
})

test('a server that cannot delete together is asked for each object', async (t) => {
  for (const verbs of [['delete', 'list'], flunders.verbs]) {
    const objects = new Set(['a', 'b/c', 'gone'])
    const found = await removed({
      versions: { 'wardle.example.com/v1': current({ ...flunders, verbs }) },
      answer(method, at) {
        if (method === 'GET') return listOf(...[...objects].map((name) => ({ name })))
        if (at === path) return json(405, { kind: 'Status' })
        objects.clear()
        return at.endsWith('gone') ? json(404, {}) : json(200, {})
      },
    })
    t.same(found.failures, [])
    t.same(found.remaining, [])
    if (verbs.length === 2)
      t.same(
        found.asked.slice(1, -1),
        ['a', 'b%2Fc', 'gone'].map((name) => `DELETE ${path}/${name}`),
      )
    else t.ok(found.asked.includes(`DELETE ${path}`))
  }
})

test('a kind is deleted in the first version of its group only', async (t) => {
  const found = await removed({
    versions: {
      'wardle.example.com/v1': { ...current(flunders), priority: 20 },
      'wardle.example.com/v1alpha1': current(flunders, { ...flunders, resource: 'fischers' }),
    },
    answer: () => listOf(),
  })
  t.same(
    found.asked.sort(),
    [`GET /apis/wardle.example.com/v1alpha1/namespaces/team/fischers?limit=100`, `GET ${path}?limit=100`].sort(),
  )
})

test('a server that fails is named with its reason, is not asked on, and holds up no other one', async (t) => {
  const many = Array.from({ length: 20 }, (_, index) => ({ ...flunders, resource: `f${index}` }))
  const found = await removed({
    versions: {
      'broken.example.com/v1': current(...many),
      'odd.example.com/v1': current(flunders),
      'refusing.example.com/v1': current(flunders),
      'wardle.example.com/v1': current(flunders),
    },
    answer(_, at) {
      if (at.startsWith('/apis/broken')) return new Error('timed out')
      if (at.startsWith('/apis/odd')) return { code: 200, body: Buffer.from('{"items":[{"metadata":7}]}') }
      if (at.startsWith('/apis/refusing')) return json(500, { kind: 'Status', message: 'etcdserver: no space\u0007' })
      return listOf()
    },
  })
  t.same([...found.failures].sort(), [
    'f0.broken.example.com: timed out',
    'flunders.odd.example.com: its list cannot be read',
    'flunders.refusing.example.com: etcdserver: no space ',
  ])
  t.equal(found.asked.filter((one) => one.includes('broken')).length, 4, 'those that were under way')
  t.ok(found.asked.includes(`GET ${path}?limit=100`))
})

test('a version that does not answer counts, unless its server had nothing that can be deleted', async (t) => {
  const figures = { ...flunders, verbs: ['get', 'list'] }
  const { undiscovered, asked } = await removed({
    versions: {
      'figures.example.com/v1': { freshness: 'Stale', resources: [figures] },
      'silent.example.com/v1': { freshness: 'Stale', resources: [] },
      'wardle.example.com/v1': { freshness: 'Stale', resources: [flunders] },
    },
    answer: () => listOf(),
  })
  t.same([...undiscovered].sort(), ['silent.example.com/v1', 'wardle.example.com/v1'])
  t.same(asked, [])
})

test('nothing is asked once the controller ends', async (t) => {
  const found = await removed(
    { versions: { 'wardle.example.com/v1': current(flunders) }, answer: () => listOf({ name: 'a' }) },
    AbortSignal.abort(),
  )
  t.same(found.asked, [])
})
