import { test } from 'tap'
import type { Ingress } from '../../../api/network/ingress.ts'
import type { Service } from '../../../api/network/service.ts'
import { anIngress, aPath, aRule, aService, serviceOf } from '../../testing/ingress-objects.ts'
import type { CheckedCertificate } from './certificate-check.ts'
import { oldestFirst } from './ingress-problem.ts'
import { defaultIngressSettings } from './ingress-settings.ts'
import { proxyConfiguration } from './proxy-configuration.ts'

type Given = {
  readonly services?: readonly Service[]
  readonly certificates?: { readonly [key: string]: CheckedCertificate }
  readonly settings?: Partial<typeof defaultIngressSettings & { readonly ipv6: boolean }>
  readonly limits?: { readonly files: number; readonly certificates: number }
}

function configured(ingresses: readonly Ingress[], given: Given = {}) {
  const { services = [aService('web'), aService('api', '10.96.0.8')], certificates = {}, settings = {} } = given
  const { limits = { files: 1e6, certificates: 1e6 } } = given
  const byKey = new Map(services.map((one) => [`${one.metadata.namespace}/${one.metadata.name}`, one]))
  const builder = proxyConfiguration({
    service: (key) => byKey.get(key),
    certificate: (key) => certificates[key],
    settings: { ...defaultIngressSettings, ipv6: false, ...settings },
    limits,
  })
  const texts = [...ingresses].sort(oldestFirst).flatMap((one) => {
    const problems = builder.add(one)
    return problems.map(({ message }) => `${one.metadata.name}: ${message}`)
  })
  const { files, certificates: pems } = builder.finish()
  const lines = (name: string) => (files.get(name) ?? '').split('\n').filter((line) => line !== '')
  return { files, certificates: pems, lines, texts }
}

test('routes are keys of tables, and each Service is a backend', async (t) => {
  const rules = [
    aRule('a.example', 'Exact /x web', 'Prefix /y/ api:http', 'Prefix / web'),
    aRule('*.b.example', 'ImplementationSpecific /z web'),
    aRule('', 'Prefix /everywhere api'),
  ]
  const { lines, texts } = configured([anIngress('one', { rules })])
  t.same(texts, [])
  t.same(lines('exact.map'), ['a.example/x default_web_80|'])
  t.same(lines('prefix.map'), [
    'a.example/y/ default_api_80|',
    'a.example/ default_web_80|',
    '*.b.example/z/ default_web_80|',
    '/everywhere/ default_api_80|',
  ])
  t.match(lines('haproxy.cfg').slice(-4), [
    'backend default_api_80',
    '  server service 10.96.0.8:80',
    'backend default_web_80',
    '  server service 10.96.0.7:80',
  ])
})

test('annotations change the backend or the route', async (t) => {
  const annotations = {
    'bramble.dev/https-redirect': 'true',
    'bramble.dev/proxy-timeout': '2m',
    'bramble.dev/max-body-size': '1Ki',
    'bramble.dev/backend-protocol': 'H2C',
  }
  const { lines } = configured([
    anIngress('plain', { rules: [aRule('a.example', 'Prefix / web')] }),
    anIngress('other', { rules: [aRule('b.example', 'Prefix / web')] }, { annotations }),
  ])
  t.same(lines('prefix.map'), ['b.example/ default_web_80_t120_b1024_h2c|r', 'a.example/ default_web_80|'])
  t.same(lines('haproxy.cfg').slice(-4), [
    'backend default_web_80_t120_b1024_h2c',
    '  timeout server 120s',
    '  http-request deny deny_status 413 if { req.hdr_val(content-length) gt 1024 }',
    '  server service 10.96.0.7:80 proto h2',
  ])
})

test('a default backend serves what matches no path of its hosts, or of any', async (t) => {
  const { lines } = configured([
    anIngress('hosts', { defaultBackend: { service: serviceOf('web') }, rules: [aRule('a.example', 'Exact /x api')] }),
    anIngress('all', { defaultBackend: { service: serviceOf('api') } }),
    anIngress('empty', { defaultBackend: { service: serviceOf('web') }, rules: [{ host: 'b.example' }] }),
  ])
  t.same(lines('fallback.map'), ['* default_api_80|', 'b.example default_web_80|', 'a.example default_web_80|'])
})

test('of two Ingresses with one host and path the older keeps it, and the other one has a problem', async (t) => {
  const rules = (...paths: readonly string[]) => ({ rules: [aRule('a.example', ...paths)] })
  const { lines, texts } = configured([
    anIngress('young', rules('Prefix / api', 'Prefix /own api'), { second: 2 }),
    anIngress('old', rules('Prefix / web', 'Prefix / api'), { second: 1, namespace: 'default' }),
  ])
  t.same(lines('prefix.map'), ['a.example/ default_web_80|', 'a.example/own/ default_api_80|'])
  const because =
    'Path / of host a.example is that of Ingress default/old, which is older: change or delete one of them'
  t.same(texts, [`young: ${because}`])
})

test('a backend that cannot be reached is answered 503, with the reason and a remedy', async (t) => {
  const services = [
    aService('web'),
    aService('headless', 'None'),
    aService('away', '', { type: 'ExternalName', externalName: 'example.com' }),
    aService('udp', '10.96.0.9', { ports: [{ port: 53, protocol: 'UDP' }] }),
  ]
  const paths = [
    'Exact /1 none',
    'Exact /2 headless',
    'Exact /3 away',
    'Exact /4 web:81',
    'Exact /5 web:x',
    'Exact /6 udp:53',
  ]
  const resource = { pathType: 'Exact', path: '/7', backend: { resource: { kind: 'Bucket', name: 'b' } } }
  const rules = [{ http: { paths: [...paths.map(aPath), resource] } }]
  const { lines, texts } = configured([anIngress('one', { rules })], { services })
  t.same(
    lines('exact.map'),
    ['1', '2', '3', '4', '5', '6', '7'].map((path) => `/${path} unavailable|`),
  )
  t.match(texts, [
    'one: spec.rules[0].http.paths[0].backend: Service default/none not found: create it, or name another one. Requests are answered 503',
    /default\/headless has no ClusterIP: name one that is not headless/,
    /default\/away is an ExternalName: name one with a ClusterIP/,
    /default\/web has no TCP port 81/,
    /default\/web has no TCP port "x"/,
    /default\/udp has no TCP port 53/,
    /names no Service/,
  ])
})

const listening = (lines: readonly string[]) => lines.filter((line) => /^ *(bind|\.)/.test(line))
const tlsWords = 'ssl crt-list /etc/bramble-ingress/certificates.list alpn h2,http/1.1 strict-sni'

test('the proxy listens at IPv6 in a fleet with ranges of it, where its machine has IPv6', async (t) => {
  t.same(listening(configured([], { settings: { ipv6: true } }).lines('haproxy.cfg')), [
    '  bind :8404',
    '.if defined(BRAMBLE_INGRESS_IPV6)',
    '  bind :8080,[::]:8080 v6only',
    `  bind :8443,[::]:8443 v6only ${tlsWords}`,
    '.else',
    '  bind :8080',
    `  bind :8443 ${tlsWords}`,
    '.endif',
  ])
  t.same(listening(configured([]).lines('haproxy.cfg')), ['  bind :8404', '  bind :8080', `  bind :8443 ${tlsWords}`])
})

test('a backend has the IPv4 address of its Service, also where that is the second', async (t) => {
  const services = [
    aService('both', 'fd00::9', { clusterIPs: ['fd00::9', '10.96.0.9'] }),
    aService('six', 'fd00::8', { clusterIPs: ['fd00::8'] }),
  ]
  const rules = [{ http: { paths: ['Exact /1 both', 'Exact /2 six'].map(aPath) } }]
  const { lines, texts } = configured([anIngress('one', { rules })], { services })
  t.same(lines('exact.map'), ['/1 default_both_80|', '/2 unavailable|'])
  t.match(texts, [/default\/six has only an IPv6 ClusterIP: name one with IPv4 among its ipFamilies/])
})

test('in a fleet with IPv6 ranges a Service without an IPv4 address is reached at that of IPv6', async (t) => {
  const services = [
    aService('both', 'fd00::9', { clusterIPs: ['fd00::9', '10.96.0.9'] }),
    aService('six', 'FD00::0:8', { clusterIPs: ['FD00::0:8'] }),
    aService('odd', 'fd00::8%a', { clusterIPs: ['fd00::8%a', 'fd00::8]:80 evil'] }),
  ]
  const rules = [{ http: { paths: ['Exact /1 both', 'Exact /2 six', 'Exact /3 odd'].map(aPath) } }]
  const { lines, texts } = configured([anIngress('one', { rules })], { services, settings: { ipv6: true } })
  t.same(lines('exact.map'), ['/1 default_both_80|', '/2 default_six_80|', '/3 unavailable|'])
  t.same(lines('haproxy.cfg').slice(-4), [
    'backend default_both_80',
    '  server service 10.96.0.9:80',
    'backend default_six_80',
    '  server service [fd00::8]:80',
  ])
  t.match(texts, [/default\/odd has no ClusterIP/])
})

/** What would change the meaning of a file, if it came into one as it is. */
const hostile = [
  'a b',
  'a\nbackend evil',
  'a\r\n  server evil 192.0.2.1:80',
  'a\0b',
  'a\tb',
  'a\u2028b',
  'ä',
  'a\u007f',
]
/** Harmless as a part of a key. */
const odd = ['"', "'", '#', '\\', `\${HOME}`, '%[env(HOME)]', '{}', '|r', ';', '$(id)', '`id`', '*', '..', '%00']

test('no text of a user is in the configuration, or is more than a key of a table', async (t) => {
  const legitimate = anIngress('legitimate', { rules: [aRule('a.example', 'Prefix / web')] })
  const plain = configured([legitimate])
  const service = (name: string, port: string | number) => ({
    service: { name, port: typeof port === 'string' ? { name: port } : { number: port } },
  })
  const at = (host: string, path: string, backend = service('web', 80)) =>
    anIngress('evil', { rules: [{ host, http: { paths: [{ path, pathType: 'Exact', backend }] } }] }, { second: 1 })
  /** As if a store had them; the API refuses such names. */
  const services = [
    aService('web'),
    ...hostile.flatMap((text) => [
      aService(text),
      { ...aService('web'), metadata: { name: 'web', namespace: text } },
      aService('odd', text),
    ]),
  ]
  const attacks = hostile.flatMap((text) => [
    at('a.example', `/${text}`),
    at(`${text}.example`, '/'),
    at(text, '/'),
    at('b.example', '/x', service(text, 80)),
    at('b.example', '/x', service('web', text)),
    at('b.example', '/x', service('odd', 80)),
    anIngress('evil', { defaultBackend: service(text, 80) }),
    anIngress('evil', { tls: [{ hosts: [text], secretName: text }], rules: [] }),
    anIngress('evil', { rules: [] }, { annotations: { 'bramble.dev/proxy-timeout': text } }),
    {
      ...at('b.example', '/x'),
      metadata: { name: 'evil', namespace: text, creationTimestamp: '2026-01-01T00:00:01Z' },
    },
  ])
  for (const host of ['#', '"', `\${HOME}`, 'a|b', 'a/b', '*', '*.', 'a.*', '-', `${'a'.repeat(254)}`])
    attacks.push(at(host, '/'))
  for (const attack of attacks) {
    const { files, lines, certificates, texts } = configured([legitimate, attack], { services })
    t.same(files.get('haproxy.cfg'), plain.files.get('haproxy.cfg'))
    t.same(files.get('certificates.list'), '')
    t.same([...certificates], [])
    t.same(lines('prefix.map'), plain.lines('prefix.map'))
    for (const line of [...lines('exact.map'), ...lines('fallback.map')]) t.match(line, /^\S+ unavailable\|$/)
    t.ok(texts.length > 0)
  }
  for (const text of odd) {
    const { files, lines } = configured([legitimate, at('b.example', `/${text}`)])
    t.same(lines('exact.map'), [`b.example/${text} default_web_80|`])
    t.same(files.get('haproxy.cfg'), plain.files.get('haproxy.cfg'))
  }
})

test('a host has the certificate that its oldest Ingress names', async (t) => {
  const certificates = {
    'default/a': { file: 'a.pem', pem: 'A' },
    'default/b': { file: 'b.pem', pem: 'B' },
    'default/bad': { problem: 'has no private key' },
  }
  const web = { rules: [aRule('c.example', 'Prefix / web')] }
  const { lines, texts, ...rest } = configured(
    [
      anIngress('one', {
        ...web,
        tls: [{ hosts: ['a.example', '*.a.example'], secretName: 'a' }, { secretName: 'b' }],
      }),
      anIngress('two', { tls: [{ hosts: ['a.example', 'b.example'], secretName: 'b' }] }, { second: 1 }),
      anIngress(
        'three',
        { tls: [{ hosts: ['d.example'], secretName: 'bad' }, { hosts: ['e.example'] }] },
        { second: 2 },
      ),
      anIngress('four', { tls: [{ hosts: ['f.example'], secretName: 'none' }, { secretName: 'a' }] }, { second: 3 }),
    ],
    { certificates },
  )
  const folder = '/etc/bramble-ingress'
  t.same(lines('certificates.list'), [`${folder}/a.pem a.example *.a.example`, `${folder}/b.pem c.example b.example`])
  t.same(
    [...rest.certificates],
    [
      ['a.pem', 'A'],
      ['b.pem', 'B'],
    ],
  )
  t.ok(lines('haproxy.cfg').some((line) => line.endsWith(' strict-sni')))
  t.same(texts, [
    'two: Host a.example has the certificate of Ingress default/one, which is older: change or delete one of them',
    'three: Secret default/bad has no private key. Hosts d.example have no HTTPS',
    'three: Hosts e.example have no HTTPS: name a Secret in spec.tls, or configure ingress.defaultCertificate',
    'four: Secret default/none does not exist: create it with kubectl create secret tls. Hosts f.example have no HTTPS',
    'four: An entry of spec.tls has no effect: name its hosts',
  ])
})

test('the default certificate is shown for hosts without one of their own', async (t) => {
  const certificates = { 'certs/house': { file: 'house.pem', pem: 'H' } }
  const tls = [{ hosts: ['a.example'] }, { hosts: ['b.example'], secretName: 'none' }]
  const settings = { defaultCertificate: 'certs/house' }
  const { lines, texts } = configured([anIngress('one', { tls })], { certificates, settings })
  t.same(lines('certificates.list'), ['/etc/bramble-ingress/house.pem *'])
  t.notOk(lines('haproxy.cfg').some((line) => line.endsWith(' strict-sni')))
  t.match(texts, [/Secret default\/none does not exist.*served with the default certificate/])
  t.equal(texts.length, 1)
  t.match(configured([], { settings }).lines('haproxy.cfg').join('\n'), 'strict-sni', 'there is none')
})

test('what finds no room is left out, the youngest first', async (t) => {
  const many = Array.from({ length: 100 }, (_, index) =>
    anIngress(`i${index}`, { rules: [aRule(`h${index}.example`, 'Prefix / web')] }, { second: index }),
  )
  const { lines, texts } = configured(many, { limits: { files: 1000, certificates: 0 } })
  t.ok(lines('prefix.map').length > 10 && lines('prefix.map').length < 50)
  t.match(lines('prefix.map')[0], 'h0.example/')
  t.equal(texts.length, 100 - lines('prefix.map').length)
  t.match(texts[0], 'The Ingress is left out')
})

test('no Ingress takes the room of the others', async (t) => {
  const web = anIngress('web', { rules: [aRule('a.example', 'Prefix / web')] }, { second: 2 })
  const paths = Array.from({ length: 1001 }, (_, index) => `Exact /${index} web`)
  const { lines, texts } = configured([anIngress('many', { rules: [aRule('b.example', ...paths)] }), web])
  t.equal(lines('exact.map').length, 1000)
  t.match(texts, [/^many: The Ingress has more than 1000 paths/])
  t.same(lines('prefix.map'), ['a.example/ default_web_80|'])
  const certificates = { 'default/a': { file: 'a.pem', pem: 'A' } }
  const hosts = Array.from({ length: 100 }, (_, index) => `h${index}.example`)
  const limits = { files: 2000, certificates: 100 }
  const full = configured([anIngress('hosts', { tls: [{ hosts, secretName: 'a' }] })], { certificates, limits })
  t.ok((full.files.get('certificates.list') ?? '').length < 2000)
  t.match(full.texts.at(-1), 'Host h99.example has no HTTPS: the proxies cannot read more hosts')
})

test('equal inputs give equal files, and any change another version', async (t) => {
  const one = anIngress('one', { rules: [aRule('a.example', 'Prefix / web')] })
  const two = anIngress('two', { rules: [aRule('b.example', 'Prefix / web')] }, { second: 1 })
  const version = (...given: Parameters<typeof configured>) => configured(...given).files.get('version')
  t.same(configured([two, one]).files, configured([one, two]).files, 'in any order')
  const versions = [
    version([]),
    version([one]),
    version([one, two]),
    version([one], { services: [aService('web', '10.96.0.99')] }),
    version([one], { settings: { httpsPort: 8443 } }),
    version([one], { settings: { accessLog: true } }),
    version([one], { settings: { ipv6: true } }),
  ]
  t.equal(new Set(versions).size, versions.length)
})
