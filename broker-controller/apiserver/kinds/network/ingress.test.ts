import { test } from 'tap'
import type { HTTPIngressPath, Ingress, IngressBackend } from '../../../../api/network/ingress.ts'
import type { IngressClass } from '../../../../api/network/ingress-class.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'
import { defaultIngressClass } from './ingress.ts'
import { ingressStatusProblems } from './ingress-problems.ts'

const web: IngressBackend = { service: { name: 'web', port: { number: 80 } } }
const ingress = (spec: NonNullable<Ingress['spec']>, annotations = {}): Ingress => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'site', namespace: 'default', annotations },
  spec,
})
const ofPath = (path: Partial<HTTPIngressPath>) =>
  ingress({ rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend: web, ...path }] } }] })
const ofBackend = (defaultBackend: IngressBackend) => ingress({ defaultBackend })
const ingressClass = (spec: IngressClass['spec'], metadata: IngressClass['metadata'] = {}): IngressClass => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IngressClass',
  metadata: { name: 'public', ...metadata },
  spec: { controller: 'example.com/gate', ...spec },
})
const problemsOf = (one: Ingress) => causes(() => create('ingresses', one))
const classProblemsOf = (spec: IngressClass['spec']) => causes(() => create('ingressclasses', ingressClass(spec)))
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'

test('an ingress is created, listed and given an address by its controller', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  const rules = ['a', 'b', 'c', 'd', 'e'].map((letter) => ({ host: `${letter}.example` }))
  const claimed = { ...ingress({ rules, tls: [{ hosts: ['*.example'] }] }), status: { loadBalancer: {} } }
  const made = await ask('POST', path, { body: claimed })
  t.equal(made.code, 201)
  t.match(made.body, { metadata: { generation: 1 }, status: { loadBalancer: { ingress: undefined } } })
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.9' }, { hostname: 'gate.example' }, { ip: '192.0.2.9' }] } }
  const patched = await ask('PATCH', `${path}/site/status`, {
    body: { status },
    type: 'application/merge-patch+json',
  })
  t.match(patched, { code: 200, body: { metadata: { generation: 1 }, status } })
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    columnDefinitions: ['Name', 'Class', 'Hosts', 'Address', 'Ports', 'Age'].map((name) => ({ name })),
    rows: [
      { cells: ['site', '<none>', 'a.example,b.example,c.example + 2 more...', '192.0.2.9,gate.example', '80, 443'] },
    ],
  })
})

test('an ingress without hosts or TLS is shown with * and 80', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  t.equal((await ask('POST', path, { body: ofBackend(web) })).code, 201)
  const three = { rules: ['a', '', 'b', 'c'].map((host) => ({ host })) }
  t.equal((await ask('POST', path, { body: { ...ingress(three), metadata: { name: 'three' } } })).code, 201)
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    rows: [{ cells: ['site', '<none>', '*', '', '80'] }, { cells: ['three', '<none>', 'a,b,c', '', '80'] }],
  })
})

test('a class is created and listed, and its controller stays', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/networking.k8s.io/v1/ingressclasses'
  const parameters = { apiGroup: 'example.com', kind: 'Gate', name: 'front' }
  const made = await ask('POST', path, { body: ingressClass({ parameters }) })
  t.match(made, { code: 201, body: { spec: { parameters: { ...parameters, scope: 'Cluster' } } } })
  const { body } = await ask('GET', path, { accept: table })
  t.match(body, {
    columnDefinitions: ['Name', 'Controller', 'Parameters', 'Age'].map((name) => ({ name })),
    rows: [{ cells: ['public', 'example.com/gate', 'Gate.example.com/front'] }],
  })
  const before = create('ingressclasses', ingressClass({}))
  t.match(
    causes(() => update('ingressclasses', before, ingressClass({ controller: 'example.com/other' }))),
    ['spec.controller: Invalid value: "example.com/other": field is immutable'],
  )
  t.match(update('ingressclasses', before, ingressClass({ parameters })).metadata.name, 'public')
})

test('an ingress without a class gets the default class', async (t) => {
  const { ask } = await anApi(t)
  const classes = '/apis/networking.k8s.io/v1/ingressclasses'
  const isDefault = { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } }
  await ask('POST', classes, { body: ingressClass({}, { name: 'plain' }) })
  await ask('POST', classes, { body: ingressClass({}, { name: 'usual', ...isDefault }) })
  const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses'
  const classOf = async (one: Ingress, name: string) => {
    const { body } = await ask('POST', path, { body: { ...one, metadata: { ...one.metadata, name } } })
    return (body as Ingress).spec?.ingressClassName
  }
  t.equal(await classOf(ofBackend(web), 'a'), 'usual')
  t.equal(await classOf(ingress({ defaultBackend: web, ingressClassName: 'plain' }), 'b'), 'plain')
  t.equal(await classOf(ingress({ defaultBackend: web }, { 'kubernetes.io/ingress.class': 'old' }), 'c'), undefined)
})

test('of several default classes the newest is chosen, and of those the first by name', (t) => {
  const annotations = { 'ingressclass.kubernetes.io/is-default-class': 'true' }
  const made = (name: string, second: number, more = {}) =>
    ingressClass({}, { name, creationTimestamp: `2026-01-01T00:00:0${second}Z`, annotations, ...more })
  t.equal(defaultIngressClass([]), undefined)
  t.equal(defaultIngressClass([made('a', 1), made('b', 2)]), 'b')
  t.equal(defaultIngressClass([made('b', 2), made('a', 1)]), 'b')
  t.equal(defaultIngressClass([made('c', 2), made('b', 2), made('a', 1)]), 'b')
  t.equal(defaultIngressClass([made('b', 2), made('c', 2)]), 'b')
  t.equal(defaultIngressClass([made('a', 1), made('b', 2, { annotations: {} })]), 'a')
  t.end()
})

test('what an ingress must not be', (t) => {
  const cases: readonly [Ingress, readonly (string | RegExp)[]][] = [
    [ingress({}), [/^spec: Invalid value: \[\]: either `defaultBackend` or `rules` must be specified/]],
    [ingress({ defaultBackend: web, ingressClassName: 'A' }), [/^spec.ingressClassName: Invalid value: "A"/]],
    [
      ingress({ defaultBackend: web, ingressClassName: 'new' }, { 'kubernetes.io/ingress.class': 'old' }),
      [
        'annotations.kubernetes.io/ingress.class: Invalid value: "old": must match `ingressClassName` when both are specified',
      ],
    ],
    [
      ingress({ rules: [{ host: '192.0.2.1' }, { host: 'A' }, { host: '*.a.*' }, { host: 'a.*' }, { host: '*.a' }] }),
      [
        'spec.rules[0].host: Invalid value: "192.0.2.1": must be a DNS name, not an IP address',
        /^spec.rules\[1\].host: Invalid value: "A"/,
        /^spec.rules\[2\].host: Invalid value: "\*\.a\.\*": a wildcard/,
        /^spec.rules\[3\].host: Invalid value: "a\.\*": a wildcard/,
      ],
    ],
    [
      ingress({ defaultBackend: web, tls: [{ hosts: ['*.a', '*a', 'B'], secretName: 'C' }] }),
      [/^spec.tls\[0\].hosts\[1\]/, /^spec.tls\[0\].hosts\[2\]/, /^spec.tls\[0\].secretName: Invalid value: "C"/],
    ],
    [ingress({ rules: [{ http: { paths: [] } }] }), ['spec.rules[0].http.paths: Required value']],
  ]
  for (const [one, expected] of cases) {
    const found = problemsOf(one)
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
  t.end()
})

test('the path of a rule is absolute and clear where it is matched as text', (t) => {
  const field = 'spec.rules[0].http.paths[0]'
  const cases: readonly [Partial<HTTPIngressPath>, readonly string[]][] = [
    [{ path: '/a', pathType: 'Exact' }, []],
    [{ path: '', pathType: 'ImplementationSpecific' }, []],
    [{ path: '/a//.', pathType: 'ImplementationSpecific' }, []],
    [{ pathType: undefined }, [`${field}.pathType: Required value: pathType must be specified`]],
    [
      { path: 'a', pathType: 'ImplementationSpecific' },
      [`${field}.path: Invalid value: "a": must be an absolute path`],
    ],
    [{ path: '' }, [`${field}.path: Invalid value: "": must be an absolute path`]],
    [{ path: '/a//b' }, [`${field}.path: Invalid value: "/a//b": must not contain '//'`]],
    [{ path: '/a%2fb' }, [`${field}.path: Invalid value: "/a%2fb": must not contain '%2f'`]],
    [{ path: '/a/..', pathType: 'Exact' }, [`${field}.path: Invalid value: "/a/..": cannot end with '/..'`]],
    [
      { pathType: 'Suffix' },
      [`${field}.pathType: Unsupported value: "Suffix": supported values: "Exact", "ImplementationSpecific", "Prefix"`],
    ],
  ]
  for (const [path, expected] of cases) {
    const { pathType, ...rest } = { path: '/', pathType: 'Prefix', backend: web, ...path }
    const whole = ingress({ rules: [{ http: { paths: [{ ...rest, ...(pathType !== undefined && { pathType }) }] } }] })
    t.same(problemsOf(whole), expected)
  }
  t.end()
})

test('a backend is one Service with one port, or one resource', (t) => {
  const field = 'spec.defaultBackend'
  const resource = { apiGroup: 'example.com', kind: 'Bucket', name: 'files' }
  t.ok(create('ingresses', ofBackend({ resource })))
  t.ok(create('ingresses', ofBackend({ service: { name: 'web', port: { name: 'http' } } })))
  const cases: readonly [IngressBackend, readonly (string | RegExp)[]][] = [
    [{}, [`${field}: Invalid value: "": resource or service backend is required`]],
    [{ ...web, resource }, [`${field}: Invalid value: "": cannot set both resource and service backends`]],
    [{ service: { name: '', port: { number: 80 } } }, [`${field}.service.name: Required value`]],
    [{ service: { name: '1a', port: { number: 80 } } }, [/^spec.defaultBackend.service.name: Invalid value: "1a"/]],
    [{ service: { name: 'web' } }, [`${field}: Required value: port name or number is required`]],
    [
      { service: { name: 'web', port: { name: 'http', number: 80 } } },
      [`${field}: Invalid value: "": cannot set both port name & port number`],
    ],
    [{ service: { name: 'web', port: { name: '-' } } }, [/^spec.defaultBackend.service.port.name: Invalid value: "-"/]],
    [
      { service: { name: 'web', port: { number: 65_536 } } },
      [`${field}.service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive`],
    ],
    [
      { resource: { apiGroup: 'A', kind: '', name: '..' } },
      [
        /^spec.defaultBackend.resource.apiGroup: Invalid value: "A"/,
        `${field}.resource.kind: Required value: kind is required`,
        `${field}.resource.name: Invalid value: "..": may not be '..'`,
      ],
    ],
    [
      { resource: { kind: 'a/b%', name: '' } },
      [
        `${field}.resource.kind: Invalid value: "a/b%": may not contain '/'`,
        `${field}.resource.kind: Invalid value: "a/b%": may not contain '%'`,
        `${field}.resource.name: Required value: name is required`,
      ],
    ],
  ]
  for (const [backend, expected] of cases) {
    const found = problemsOf(ofBackend(backend))
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
  t.end()
})

test('an address in the status of an ingress is an address, and a name is a name', (t) => {
  const problems = (one: { readonly ip?: string; readonly hostname?: string }) =>
    ingressStatusProblems({ ...ofPath({}), status: { loadBalancer: { ingress: [one] } } }).map(({ field }) => field)
  t.same(problems({ ip: '192.0.2.1', hostname: 'a.example' }), [])
  t.same(problems({ ip: 'a' }), ['status.loadBalancer.ingress[0].ip'])
  t.same(problems({ hostname: 'A' }), ['status.loadBalancer.ingress[0].hostname'])
  t.same(problems({ hostname: '192.0.2.1' }), ['status.loadBalancer.ingress[0].hostname'])
  t.same(ingressStatusProblems(ofPath({})), [])
  t.end()
})

test('what a class must not be', (t) => {
  const parameters = { kind: 'Gate', name: 'front' }
  t.ok(create('ingressclasses', ingressClass({ parameters: { ...parameters, scope: 'Namespace', namespace: 'a' } })))
  const cases: readonly [IngressClass['spec'], readonly (string | RegExp)[]][] = [
    [{ controller: '' }, ['spec.controller: Required value']],
    [{ controller: 'gate' }, [/^spec.controller: Invalid value: "gate": must be a domain-prefixed path/]],
    [{ controller: 'a.example/' }, [/^spec.controller: Invalid value: "a.example\/": must be a domain-prefixed path/]],
    [{ controller: 'A/b' }, [/^spec.controller: Invalid value: "A"/]],
    [{ controller: 'a.example/b c' }, ['spec.controller: Invalid value: "b c": Invalid path']],
    [{ controller: `a.example/${'b'.repeat(250)}` }, ['spec.controller: Too long: may not be more than 250 bytes']],
    [
      { parameters: { ...parameters, scope: 'Fleet' } },
      ['spec.parameters.scope: Unsupported value: "Fleet": supported values: "Cluster", "Namespace"'],
    ],
    [
      { parameters: { ...parameters, namespace: 'a' } },
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
    [
      { parameters: { ...parameters, scope: 'Namespace' } },
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      { parameters: { ...parameters, scope: 'Namespace', namespace: 'A' } },
      [/^spec.parameters.namespace: Invalid value: "A"/],
    ],
    [{ parameters: { kind: '', name: 'front' } }, ['spec.parameters.kind: Required value: kind is required']],
  ]
  for (const [spec, expected] of cases) {
    const found = classProblemsOf(spec)
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
  t.end()
})
