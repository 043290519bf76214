import { test } from 'tap'
import type { ServiceLink } from '../../../api/network/service-links.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { StoredObject } from '../../store/store.ts'
import { linkedNamespace, linkedServices, linkedServicesIndex } from './linked-services.ts'

const pod = (namespace: string, nodeName: string, more: object = {}) =>
  aPod({ name: 'p', namespace, nodeName, spec: more }) as StoredObject<'pods'>
const service = (name: string, clusterIP = '10.96.0.7', labels = {}, namespace = 'shop') =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { clusterIP, ports: [{ port: 80 }] },
  }) as StoredObject<'services'>
const link = (namespace: string, name: string): ServiceLink => ({ namespace, name, clusterIP: '10.96.0.7', ports: [] })

test('a pod is linked to its namespace, unless it declines or its node claimed it', async (t) => {
  t.equal(linkedNamespace(pod('shop', 'pi-1')), 'shop')
  t.equal(linkedNamespace(pod('shop', 'pi-1', { enableServiceLinks: true })), 'shop')
  t.equal(linkedNamespace(pod('shop', 'pi-1', { enableServiceLinks: false })), undefined)
  const claimed = pod('shop', 'pi-1')
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  t.equal(linkedNamespace({ ...claimed, metadata: { ...claimed.metadata, annotations } }), undefined)
})

test('a node gets the Services of its namespaces once each, in a stable order', async (t) => {
  const all: { readonly [namespace: string]: readonly ServiceLink[] } = {
    a: [link('a', 'two'), link('a', 'one'), link('a', 'ten')],
    b: [link('b', 'one')],
    c: [link('c', 'one')],
  }
  const pods = [pod('b', 'n'), pod('a', 'n'), pod('a', 'n'), pod('c', 'n', { enableServiceLinks: false })]
  t.same(
    linkedServices(pods, (namespace) => all[namespace] ?? []).map(({ namespace, name }) => `${namespace}/${name}`),
    ['a/one', 'a/ten', 'a/two', 'b/one'],
  )
})

test('a change of a Service concerns the nodes that have pods in its namespace', async (t) => {
  const index = linkedServicesIndex()
  t.same(index.updateService(service('web'), undefined), [])
  index.updatePod(pod('shop', 'pi-1'), undefined)
  index.updatePod(pod('shop', 'pi-1'), undefined)
  index.updatePod(pod('shop', 'pi-2'), undefined)
  index.updatePod(pod('shop', ''), undefined)
  index.updatePod(pod('other', 'pi-3'), undefined)
  t.same(index.updateService(service('web', '10.96.0.8'), service('web')), ['pi-1', 'pi-2'])
  t.same(index.updateService(service('web', '10.96.0.8', { a: 'b' }), service('web', '10.96.0.8')), [], 'labels only')
  t.match(index.servicesIn('shop'), [{ name: 'web', clusterIP: '10.96.0.8' }])
  index.updatePod(undefined, pod('shop', 'pi-1'))
  t.same(index.updateService(service('headless', 'None'), undefined), [])
  t.same(index.updateService(service('db'), undefined), ['pi-1', 'pi-2'], 'one pod is left')
  index.updatePod(pod('shop', 'pi-2'), pod('shop', 'pi-1'))
  t.same(index.updateService(service('web', 'None'), service('web', '10.96.0.8')), ['pi-2'], 'it became headless')
  index.updatePod(undefined, pod('shop', 'pi-2'))
  t.same(index.updateService(undefined, service('db')), ['pi-2'])
  index.updatePod(undefined, pod('shop', 'pi-2'))
  t.same(index.updateService(service('db'), undefined), [])
  t.same(index.updateService(undefined, service('db')), [])
  t.same(index.servicesIn('shop'), [])
})
