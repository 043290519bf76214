import { test } from 'tap'
import { aggregatedRouteOf, isLongAggregated } from './aggregated-route.ts'
import type { ApiServices, StoredApiService } from './api-services.ts'

const found = { metadata: { name: 'v1.wardle.example.com' } } as StoredApiService
const apiServices: ApiServices = {
  all: () => [found],
  remotes: () => [found],
  remoteAt: ({ group, version }) => (group === 'wardle.example.com' && version === 'v1' ? found : undefined),
  onChange: () => () => {},
}
const routed = (method: string, path: string, query = '') => {
  const names = path.split('/').filter(Boolean).map(decodeURIComponent)
  return aggregatedRouteOf(method, names, new URLSearchParams(query), apiServices)
}
const base = '/apis/wardle.example.com/v1'

test('a path is read as Kubernetes reads it, without knowing its kinds', (t) => {
  const cases: readonly [string, string, string, object][] = [
    ['GET', `${base}/namespaces/a/flunders`, '', { verb: 'list', namespace: 'a', resource: 'flunders', name: '' }],
    ['GET', `${base}/flunders`, 'watch=1', { verb: 'watch', namespace: '', resource: 'flunders' }],
    ['GET', `${base}/flunders`, 'fieldSelector=a%3Db,metadata.name%3Dx', { verb: 'list', name: 'x' }],
    ['GET', `${base}/namespaces/a/flunders/x`, 'watch=1', { verb: 'get', name: 'x' }],
    ['POST', `${base}/namespaces/a/flunders`, '', { verb: 'create', resource: 'flunders', name: '' }],
    ['PUT', `${base}/namespaces/a/flunders/x/status`, '', { verb: 'update', name: 'x', subresource: 'status' }],
    ['PATCH', `${base}/fischers/x`, '', { verb: 'patch', resource: 'fischers', name: 'x', namespace: '' }],
    ['DELETE', `${base}/fischers/x`, '', { verb: 'delete' }],
    ['DELETE', `${base}/fischers`, 'fieldSelector=metadata.name%3Dx', { verb: 'deletecollection', name: '' }],
    ['GET', `${base}/namespaces/a`, '', { verb: 'get', resource: 'namespaces', name: 'a', namespace: 'a' }],
    ['GET', `${base}/namespaces/a/status`, '', { resource: 'namespaces', subresource: 'status', name: 'a' }],
    ['OPTIONS', `${base}/flunders`, '', { verb: '' }],
    ['GET', base, '', { resource: '', verb: 'list' }],
    ['GET', `/openapi/v3${base}`, '', { resource: '', path: `/openapi/v3${base}` }],
  ]
  for (const [method, path, query, expected] of cases)
    t.match(routed(method, path, query), expected, `${method} ${path}`)
  t.end()
})

test('what is asked of the server is the path that is authorized', (t) => {
  t.match(routed('GET', `${base}//namespaces/a///flunders/`), { path: `${base}/namespaces/a/flunders` })
  t.match(routed('GET', `${base}/flunders/a%3Fb`), { name: 'a?b', path: `${base}/flunders/a%3Fb` })
  for (const path of ['/flunders/..', '/flunders/%2e%2e/secrets', '/flunders/a%2Fb', '/flunders/%00', '/./flunders']) {
    t.equal(routed('GET', `${base}${path}`), undefined, path)
  }
  t.end()
})

test('other versions and groups are not routed to an extension server', (t) => {
  for (const path of ['/apis/wardle.example.com/v2/x', '/apis/wardle.example.com', '/api/v1/pods', '/openapi/v3']) {
    t.equal(routed('GET', path), undefined, path)
  }
  t.equal(routed('GET', `/openapi/v3${base}/flunders`), undefined)
  t.end()
})

test('watches, upgrades and logs last, all else has a deadline', (t) => {
  const isLong = (method: string, path: string, query = '', isUpgrade = false) => {
    const route = routed(method, `${base}${path}`, query)
    return route && isLongAggregated(route, isUpgrade)
  }
  t.equal(isLong('GET', '/flunders', 'watch=true'), true)
  t.equal(isLong('GET', '/namespaces/a/flunders/x/log'), true)
  t.equal(isLong('GET', '/flunders', '', true), true)
  t.equal(isLong('GET', '/flunders'), false)
  t.equal(isLong('POST', '/namespaces/a/flunders'), false)
  t.end()
})
