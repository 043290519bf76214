import { test } from 'tap'
import type { Ingress, IngressSpec } from '../../../api/network/ingress.ts'
import { anIngress, aRule, aService, serviceOf } from '../../testing/ingress-objects.ts'
import { fileRoom } from './ingress-problem.ts'
import { ingressRoutes, isHost } from './ingress-routes.ts'

function opened(bytes = 1e6) {
  const services = new Map(['web', 'api'].map((name) => [`default/${name}`, aService(name)]))
  const routes = ingressRoutes((key) => services.get(key), fileRoom(bytes), false)
  return {
    ...routes,
    add: (ingress: Ingress) => routes.add(ingress)?.map(({ reason, message }) => `${reason}: ${message}`),
    keys: (table: keyof typeof routes.tables) => [...routes.tables[table].keys()],
  }
}

test('a path is a key with its host, a prefix ends with a slash', async (t) => {
  const { add, tables } = opened()
  const rules = [
    aRule('a.example.com', 'Exact /x/ web', 'Prefix /y/ api:http', 'Prefix /z// web', 'Prefix / web'),
    aRule('*.example.com', 'ImplementationSpecific /z web'),
    aRule('', 'Exact /x web', 'Prefix /y api'),
    { host: 'b.example.com' },
    { http: { paths: [{ pathType: 'ImplementationSpecific', backend: { service: serviceOf('api') } }] } },
  ]
  t.same(add(anIngress('one', { rules })), [])
  t.same(Object.fromEntries(tables.exact), { 'a.example.com/x/': 'default_web_80|', '/x': 'default_web_80|' })
  t.same(Object.fromEntries(tables.prefix), {
    'a.example.com/y/': 'default_api_80|',
    'a.example.com/z/': 'default_web_80|',
    'a.example.com/': 'default_web_80|',
    '*.example.com/z/': 'default_web_80|',
    '/y/': 'default_api_80|',
    '/': 'default_api_80|',
  })
})

test('a default backend is of all requests, or of the hosts of its rules', async (t) => {
  const defaultBackend = { service: serviceOf('web') }
  const keys = (...hosts: readonly string[]) => {
    const routes = opened()
    routes.add(anIngress('one', { defaultBackend, ...(hosts.length > 0 && { rules: hosts.map((one) => aRule(one)) }) }))
    return routes.keys('fallback')
  }
  t.same(keys(), ['*'])
  t.same(keys('a.example.com', '*.example.com'), ['a.example.com', '*.example.com'])
  t.same(keys('a.example.com', ''), ['a.example.com', '*'], 'a rule without a host is of all')
})

test('a route of an older Ingress stays, and the younger one names it', async (t) => {
  const cases: readonly (readonly [title: string, older: IngressSpec, younger: IngressSpec, what: string])[] = [
    ['exact', { rules: [aRule('', 'Exact /a web')] }, { rules: [aRule('', 'Exact /a api')] }, 'Path /a without a host'],
    [
      'prefix',
      { rules: [aRule('a.example.com', 'Prefix /a/ web')] },
      { rules: [aRule('a.example.com', 'Prefix /a api')] },
      'Path /a of host a.example.com',
    ],
    [
      'of one host',
      { defaultBackend: { service: serviceOf('web') }, rules: [aRule('a.example.com')] },
      { defaultBackend: { service: serviceOf('api') }, rules: [aRule('a.example.com')] },
      'The default backend of host a.example.com',
    ],
    [
      'of all hosts',
      { defaultBackend: { service: serviceOf('web') } },
      { defaultBackend: { service: serviceOf('api') } },
      'The default backend of all requests',
    ],
  ]
  for (const [title, older, younger, what] of cases) {
    const { add, tables } = opened()
    t.same(add(anIngress('old', older)), [], title)
    t.same(add(anIngress('young', younger)), [
      `RouteConflict: ${what} is that of Ingress default/old, which is older: change or delete one of them`,
    ])
    t.same(
      [tables.exact, tables.prefix, tables.fallback].flatMap((table) => [...table.values()]),
      ['default_web_80|'],
    )
  }
})

test('an exact path and a prefix, or one path of two hosts, do not conflict', async (t) => {
  const { add, keys } = opened()
  t.same(add(anIngress('old', { rules: [aRule('a.example.com', 'Exact /a web')] })), [])
  t.same(add(anIngress('young', { rules: [aRule('a.example.com', 'Prefix /a api'), aRule('', 'Exact /a api')] })), [])
  t.same([keys('exact'), keys('prefix')], [['a.example.com/a', '/a'], ['a.example.com/a/']])
})

test('a host or path that cannot be a key is left out, with the place where it is', async (t) => {
  const { add, keys } = opened()
  const expectedHost = 'a host is letters, digits, - and dots. Change it'
  const expectedPath = 'a path is at most 4096 visible characters of ASCII. Change it'
  const at = (path: string) => ({ path, pathType: 'Exact', backend: { service: serviceOf('web') } })
  const longest = `/${'a'.repeat(4095)}`
  const rules = [
    aRule('a_b.example.com', 'Exact /lost web'),
    { http: { paths: ['/ä', '/a b', 'a', `${longest}a`, longest].map(at) } },
  ]
  t.same(add(anIngress('one', { rules })), [
    `InvalidRoute: spec.rules[0].host is left out: ${expectedHost}`,
    ...[0, 1, 2, 3].map(
      (index) => `InvalidRoute: spec.rules[1].http.paths[${index}].path is left out: ${expectedPath}`,
    ),
  ])
  t.same(keys('exact'), [longest])
})

test('a redirect is part of the route, and a backend that is missing is answered 503', async (t) => {
  const { add, tables, backends } = opened()
  const annotations = { 'bramble.dev/https-redirect': 'true' }
  const rules = [aRule('', 'Exact /a web', 'Exact /b none')]
  t.match(add(anIngress('one', { rules }, { annotations })), [
    /^BackendUnavailable: spec.rules\[0].http.paths\[1].backend/,
  ])
  t.same([...tables.exact.values()], ['default_web_80|r', 'unavailable|r'])
  t.same([...backends.keys()], ['default_web_80'])
})

test('an Ingress that finds no room leaves nothing behind, and a later one may find it', async (t) => {
  const { add, keys, backends } = opened(200)
  const many = Array.from({ length: 20 }, (_, index) => `Exact /${index} web`)
  t.equal(add(anIngress('large', { rules: [aRule('a.example.com', ...many)] })), undefined)
  t.same([keys('exact'), [...backends]], [[], []])
  t.same(add(anIngress('small', { rules: [aRule('a.example.com', 'Exact /1 api')] })), [])
  t.same([keys('exact'), [...backends.keys()]], [['a.example.com/1'], ['default_api_80']])
})

test('an Ingress has at most a thousand paths, in all of its rules', async (t) => {
  const paths = (count: number) => Array.from({ length: count }, (_, index) => `Exact /${index} web`)
  const split = (first: number, second: number) =>
    anIngress('one', { rules: [aRule('a.example.com', ...paths(first)), aRule('b.example.com', ...paths(second))] })
  const [whole, over] = [opened(), opened()]
  t.same(whole.add(split(600, 400)), [])
  t.same(over.add(split(600, 401)), [
    'TooManyPaths: The Ingress has more than 1000 paths, and the others are left out: split it',
  ])
  t.same([whole.keys('exact').length, over.keys('exact').length], [1000, 1000])
})

test('a host is a name of lower case, or one with * as its first label', async (t) => {
  const hosts = ['', 'a', 'a.example.com', '*.example.com', '0.example.com', 'a--b.example.com', 'a'.repeat(253)]
  for (const host of hosts) t.equal(isHost(host), true, host)
  const others = ['A.example.com', '*', '*.', 'a.*', '*a.example.com', '-a', 'a-', '.a', 'a.', 'a_b', 'a'.repeat(254)]
  for (const host of others) t.equal(isHost(host), false, host)
})
