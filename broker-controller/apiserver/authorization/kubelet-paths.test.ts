import { test } from 'tap'
import type { Attributes } from '../handlers/authorizer.ts'
import { narrowerAttributes } from './kubelet-paths.ts'

const proxied: Attributes = {
  kind: 'resource',
  verb: 'get',
  group: '',
  resource: 'nodes',
  subresource: 'proxy',
  namespace: '',
  name: 'pi-1',
  fields: new Map(),
}
const at = (rest: string | undefined, more: { method?: string; isUpgrade?: boolean } = {}, attributes = proxied) =>
  narrowerAttributes(attributes, { method: 'GET', isUpgrade: false, rest, ...more })

test('the metrics of a node are permitted by nodes/metrics, its statistics by nodes/stats', async (t) => {
  for (const path of ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes']) {
    t.match(at(path), { verb: 'get', resource: 'nodes', subresource: 'metrics', name: 'pi-1' }, path)
  }
  t.match(at('/stats/summary'), { subresource: 'stats' })
})

test('the rest of a node needs nodes/proxy', async (t) => {
  const others = [
    undefined,
    '',
    '/',
    '/pods',
    '/logs/',
    '/configz',
    '/metrics/',
    '/metrics/../pods',
    '/metrics//cadvisor',
  ]
  const written = ['/%6detrics', '/metrics%2f..%2fpods', '/metrics;x', 'constructor', '/stats/summary/../../pods']
  for (const path of [...others, ...written]) t.equal(at(path), undefined, String(path))
})

test('another method, another port, an upgrade and another resource need the whole right', async (t) => {
  for (const method of ['HEAD', 'POST', 'OPTIONS']) t.equal(at('/metrics', { method }), undefined, method)
  t.equal(at('/metrics', { isUpgrade: true }), undefined)
  for (const name of ['pi-1:22', 'pi-1:10250', 'http:pi-1:80']) {
    t.equal(at('/metrics', {}, { ...proxied, name }), undefined, name)
  }
  t.equal(at('/metrics', {}, { ...proxied, resource: 'pods', namespace: 'default' }), undefined)
  t.equal(at('/metrics', {}, { ...proxied, group: 'example.com' }), undefined)
  t.equal(
    narrowerAttributes(
      { kind: 'path', verb: 'get', path: '/metrics' },
      { method: 'GET', rest: '/metrics', isUpgrade: false },
    ),
    undefined,
  )
})
