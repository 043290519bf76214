import { test } from 'tap'
import type { HTTPIngressPath, Ingress, IngressBackend } from '../../../../api/network/ingress.ts'
import type { IngressClass } from '../../../../api/network/ingress-class.ts'
import { problemText } from '../../../../api/problem.ts'
import {
  ingressClassChangeProblems,
  ingressClassProblems,
  ingressProblems,
  ingressStatusProblems,
  newIngressProblems,
} from './ingress-problems.ts'

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
const ingressClass = (spec: IngressClass['spec']): IngressClass => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IngressClass',
  metadata: { name: 'public' },
  spec: { controller: 'example.com/gate', ...spec },
})
const problemsOf = (one: Ingress) => newIngressProblems(one).map(problemText)
const classProblemsOf = (spec: IngressClass['spec']) => ingressClassProblems(ingressClass(spec)).map(problemText)

test('what an ingress must not be', async (t) => {
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
    [
      ingress({ rules: [{ host: '2001:db8::1' }, { host: `*.${'a.'.repeat(125)}aa` }] }),
      [
        'spec.rules[0].host: Invalid value: "2001:db8::1": must be a DNS name, not an IP address',
        /^spec.rules\[0\].host: Invalid value: "2001:db8::1"/,
        /^spec.rules\[1\].host: Invalid value: .* must be no more than 253 characters$/,
      ],
    ],
    [ingress({ rules: [{}], tls: [{}], ingressClassName: 'public' }), []],
    [ingress({ rules: [{ host: `*.${'a.'.repeat(125)}a` }] }), []],
  ]
  for (const [one, expected] of cases) {
    const found = problemsOf(one)
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
})

test('a class in an annotation is compared with that in the field for a new ingress only', async (t) => {
  const both = (named: string) =>
    ingress({ defaultBackend: web, ingressClassName: 'new' }, { 'kubernetes.io/ingress.class': named })
  t.same(newIngressProblems(both('new')), [])
  t.equal(newIngressProblems(both('old')).length, 1)
  t.same(ingressProblems(both('old')), [])
})

test('the path of a rule is absolute and clear where it is matched as text', async (t) => {
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
    [{ path: '/a/./b' }, [`${field}.path: Invalid value: "/a/./b": must not contain '/./'`]],
    [{ path: '/a/../b' }, [`${field}.path: Invalid value: "/a/../b": must not contain '/../'`]],
    [{ path: '/a%2Fb' }, [`${field}.path: Invalid value: "/a%2Fb": must not contain '%2F'`]],
    [{ path: '/a/.' }, [`${field}.path: Invalid value: "/a/.": cannot end with '/.'`]],
    [
      { path: '', backend: {} },
      [
        `${field}.path: Invalid value: "": must be an absolute path`,
        `${field}.backend: Invalid value: "": resource or service backend is required`,
      ],
    ],
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
})

test('a backend is one Service with one port, or one resource', async (t) => {
  const field = 'spec.defaultBackend'
  const resource = { apiGroup: 'example.com', kind: 'Bucket', name: 'files' }
  t.same(problemsOf(ofBackend({ resource })), [])
  for (const port of [{ name: 'http' }, { number: 1 }, { number: 65_535 }])
    t.same(problemsOf(ofBackend({ service: { name: 'web', port } })), [])
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
      { service: { name: 'web', port: { number: -1 } } },
      [`${field}.service.port.number: Invalid value: -1: must be between 1 and 65535, inclusive`],
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
})

test('an address in the status of an ingress is an address, and a name is a name', async (t) => {
  const problems = (one: { readonly ip?: string; readonly hostname?: string }) =>
    ingressStatusProblems({ ...ofPath({}), status: { loadBalancer: { ingress: [one] } } }).map(({ field }) => field)
  t.same(problems({ ip: '192.0.2.1', hostname: 'a.example' }), [])
  t.same(problems({ ip: '2001:db8::1' }), [])
  t.same(problems({ ip: 'a' }), ['status.loadBalancer.ingress[0].ip'])
  t.same(problems({ hostname: 'A' }), ['status.loadBalancer.ingress[0].hostname'])
  t.same(problems({ hostname: '192.0.2.1' }), ['status.loadBalancer.ingress[0].hostname'])
  t.same(ingressStatusProblems(ofPath({})), [])
})

test('what a class must not be', async (t) => {
  const parameters = { kind: 'Gate', name: 'front' }
  const right: readonly IngressClass['spec'][] = [
    { parameters: { ...parameters, scope: 'Namespace', namespace: 'a' } },
    { parameters: { ...parameters, scope: 'Cluster' } },
    { controller: "example.com/a/B-._~%!$&'()*+,;=:" },
    { controller: `example.com/${'b'.repeat(238)}` },
  ]
  for (const spec of right) t.same(classProblemsOf(spec), [])
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
      { parameters: { ...parameters, scope: 'Cluster', namespace: 'a' } },
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
    [{ parameters }, ['spec.parameters.scope: Required value']],
    [{ controller: '/a' }, [/^spec.controller: Invalid value: "\/a": must be a domain-prefixed path/]],
    [{ controller: `example.com/${'b'.repeat(239)}` }, ['spec.controller: Too long: may not be more than 250 bytes']],
    [
      { parameters: { kind: '', name: 'front', scope: 'Cluster' } },
      ['spec.parameters.kind: Required value: kind is required'],
    ],
  ]
  for (const [spec, expected] of cases) {
    const found = classProblemsOf(spec)
    t.match(found, expected)
    t.equal(found.length, expected.length, found.join())
  }
})

test('the controller of a class stays', async (t) => {
  const changed = (controller: string) =>
    ingressClassChangeProblems(ingressClass({}), ingressClass({ controller })).map(problemText)
  t.same(changed('example.com/gate'), [])
  t.same(changed('example.com/other'), ['spec.controller: Invalid value: "example.com/other": field is immutable'])
  t.same(changed(''), ['spec.controller: Invalid value: "": field is immutable', 'spec.controller: Required value'])
})
