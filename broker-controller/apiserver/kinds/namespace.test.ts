import { test } from 'tap'
import type { Namespace } from '../../../api/namespace.ts'
import { causes, create, update } from '../../testing/admitting.ts'
import { namespaceStrategy } from './namespace.ts'

const namespace = (spec?: Namespace['spec'], metadata: Namespace['metadata'] = {}): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shop', ...metadata },
  ...(spec && { spec }),
})

test('a new namespace is active, has the label of its name, and stays until its content is gone', async (t) => {
  const made = (one: Namespace) => {
    const { metadata, spec, status } = create('namespaces', one)
    return { labels: metadata.labels, spec, status }
  }
  const labels = { 'kubernetes.io/metadata.name': 'shop' }
  const status = { phase: 'Active' }
  t.same(made({ ...namespace(), status: { phase: 'Terminating' } }), {
    ...{ labels, spec: { finalizers: ['kubernetes'] }, status },
  })
  t.same(made(namespace({ finalizers: ['example.com/a', 'kubernetes', 'example.com/a'] })).spec, {
    finalizers: ['example.com/a', 'kubernetes'],
  })
  t.same(made(namespace(undefined, { labels: { team: 'red', 'kubernetes.io/metadata.name': 'other' } })).labels, {
    ...{ team: 'red', ...labels },
  })
})

test('a finalizer has a name of Kubernetes, or one with a domain', async (t) => {
  const wrong = (...finalizers: readonly string[]) => causes(() => create('namespaces', namespace({ finalizers })))
  t.same(wrong('kubernetes', 'example.com/a'), [])
  t.same(wrong('example.com/a', 'mine'), [
    'spec.finalizers[1]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
  ])
  t.match(wrong('example.com/-'), [/^spec.finalizers\[0\]: Invalid value: "example.com\/-"/])
})

test('an update leaves the finalizers of a namespace as they are', async (t) => {
  const stored = create('namespaces', namespace({ finalizers: ['example.com/a'] }))
  const { spec } = update('namespaces', stored, namespace({ finalizers: [] }))
  t.same(spec, { finalizers: ['example.com/a', 'kubernetes'] })
  const { finalize } = namespaceStrategy.subresources
  if (finalize?.access !== 'update') throw new Error('Finalizers cannot be written')
  const old = namespace({ finalizers: ['kubernetes'] }, { labels: { team: 'red' } })
  const change = (now: Namespace) => finalize.change(old, now, '2026-01-01T00:00:00Z')
  t.same(change(namespace({ finalizers: [] }, { labels: {} })), { ...old, spec: { finalizers: [] } })
  t.same(change(namespace()), { ...old, spec: { finalizers: [] } })
})

test('the namespaces of the system cannot be deleted, and a row shows the phase', async (t) => {
  t.same(namespaceStrategy.undeletable?.names, ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
  t.same(namespaceStrategy.table.cells({ ...namespace(), status: { phase: 'Terminating' } }, 0), [
    ...['shop', 'Terminating', '<unknown>'],
  ])
  t.same(namespaceStrategy.table.cells(namespace(), 0), ['shop', '', '<unknown>'])
})
