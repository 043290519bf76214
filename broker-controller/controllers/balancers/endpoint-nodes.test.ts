import { test } from 'tap'
import type { StoredObject } from '../../store/store.ts'
import { endpointNodes } from './endpoint-nodes.ts'

type Slice = StoredObject<'endpointslices'>
type Given = { readonly name?: string; readonly service?: string; readonly family?: Slice['addressType'] }

const on = (nodeName: string | undefined, ready?: boolean): NonNullable<Slice['endpoints']>[number] => ({
  addresses: ['10.42.1.7'],
  ...(nodeName !== undefined && { nodeName }),
  ...(ready !== undefined && { conditions: { ready } }),
})
function slice(endpoints: Slice['endpoints'], { name = 'web-1', service = 'web', family = 'IPv4' }: Given = {}): Slice {
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: family },
    metadata: {
      ...{ name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '1' },
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(service !== '' && { labels: { 'kubernetes.io/service-name': service } }),
    },
    ...(endpoints && { endpoints }),
  }
}

test('nodes with a ready endpoint count, and those of an unknown state', async (t) => {
  const nodes = endpointNodes()
  const endpoints = [on('a', true), on('b', false), on('c'), on(undefined, true), on('', true), on('a', true)]
  t.equal(nodes.put(slice(endpoints), undefined), true)
  t.same([...nodes.of('default/web', 'IPv4')], ['a', 'c'])
  t.equal(nodes.of('default/web', 'IPv6').size, 0)
  t.equal(nodes.of('other/web', 'IPv4').size, 0)
})

test('a Service has the nodes of all its slices, each family its own', async (t) => {
  const nodes = endpointNodes()
  nodes.put(slice([on('a', true)]), undefined)
  nodes.put(slice([on('b', true), on('a', true)], { name: 'web-2' }), undefined)
  nodes.put(slice([on('c', true)], { name: 'web-3', family: 'IPv6' }), undefined)
  const sorted = (family: 'IPv4' | 'IPv6') => [...nodes.of('default/web', family)].sort()
  t.same([sorted('IPv4'), sorted('IPv6')], [['a', 'b'], ['c']])
  nodes.put(undefined, slice([on('b', true), on('a', true)], { name: 'web-2' }))
  t.same(sorted('IPv4'), ['a'])
  nodes.put(slice([on('a', false)]), slice([on('a', true)]))
  t.same(sorted('IPv4'), [])
})

test('only a change of the nodes is one', async (t) => {
  const before = slice([on('a', true), on('b', true)])
  const cases: readonly (readonly [title: string, present: Slice | undefined, isChange: boolean])[] = [
    ['the same', slice([on('a', true), on('b', true)]), false],
    ['in another order', slice([on('b', true), on('a', true)]), false],
    ['a second endpoint of a node', slice([on('a', true), on('b', true), on('b', true)]), false],
    ['one that is not ready', slice([on('a', true), on('b', false)]), true],
    ['gone', undefined, true],
    ['of another Service', slice([on('a', true), on('b', true)], { service: 'api' }), true],
    ['of no Service', slice([on('a', true), on('b', true)], { service: '' }), true],
  ]
  for (const [title, present, isChange] of cases) {
    const nodes = endpointNodes()
    nodes.put(before, undefined)
    t.equal(nodes.put(present, before), isChange, title)
    t.equal(nodes.of('default/web', 'IPv4').size, isChange ? (title.startsWith('one') ? 1 : 0) : 2, title)
  }
  t.equal(endpointNodes().put(slice([on('a', true)], { service: '' }), undefined), true, 'it is of none')
})
