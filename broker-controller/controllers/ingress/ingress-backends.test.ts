import { test } from 'tap'
import type { IngressBackend } from '../../../api/network/ingress.ts'
import type { Service } from '../../../api/network/service.ts'
import { aService, serviceOf } from '../../testing/ingress-objects.ts'
import { type BackendPlace, backendText, proxyBackend, type ServiceLookup } from './ingress-backends.ts'
import type { IngressOptions } from './ingress-options.ts'

const options: IngressOptions = {
  redirect: false,
  timeoutSeconds: undefined,
  maxBodyBytes: undefined,
  protocol: 'http',
}
const place: BackendPlace = { namespace: 'default', options, place: 'spec.defaultBackend', ipv6: false }
const holding =
  (...services: readonly Service[]): ServiceLookup =>
  (key) =>
    services.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key)

/** The address of `web`, or what is wrong with it. */
function found(backend: IngressBackend, service: Service = aService('web'), more: Partial<BackendPlace> = {}): string {
  const decided = proxyBackend(backend, { ...place, ...more }, holding(service))
  return 'problem' in decided ? decided.problem.message : decided.value.address
}
const web = (port = '80'): IngressBackend => ({ service: serviceOf(`web:${port}`) })
const refused = (because: string) => `spec.defaultBackend: ${because}. Requests are answered 503`

test('a backend is a TCP port of a Service with a ClusterIP; what is not one has its reason and a remedy', async (t) => {
  const spec = (over: Partial<Service['spec']>) => aService('web', '192.0.2.7', over)
  const anotherPort = 'name one of its ports'
  const cases: readonly (readonly [title: string, IngressBackend, Service, expected: string])[] = [
    ['by its number', web(), spec({}), '192.0.2.7:80'],
    ['by its name', web('http'), spec({}), '192.0.2.7:80'],
    ['a port without a protocol', web(), spec({ ports: [{ port: 80 }] }), '192.0.2.7:80'],
    ['a resource', { resource: { kind: 'Bucket', name: 'b' } }, spec({}), 'it names no Service: name a Service'],
    ['nothing', {}, spec({}), 'it names no Service: name a Service'],
    [
      'a Service that is missing',
      { service: serviceOf('none') },
      spec({}),
      'Service default/none not found: create it, or name another one',
    ],
    [
      'a Service with an invalid name',
      { service: serviceOf('We b') },
      spec({}),
      'the name of its Service is invalid: name another one',
    ],
    [
      'an ExternalName',
      web(),
      aService('web', '', { type: 'ExternalName' }),
      'Service default/web is an ExternalName: name one with a ClusterIP',
    ],
    ['headless', web(), aService('web', 'None'), 'Service default/web has no ClusterIP: name one that is not headless'],
    [
      'no address yet',
      web(),
      aService('web', ''),
      'Service default/web has no ClusterIP: name one that is not headless',
    ],
    ['another number', web('81'), spec({}), `Service default/web has no TCP port 81: ${anotherPort}`],
    ['another name', web('https'), spec({}), `Service default/web has no TCP port "https": ${anotherPort}`],
    [
      'UDP alone',
      web('53'),
      spec({ ports: [{ port: 53, protocol: 'UDP' }] }),
      `Service default/web has no TCP port 53: ${anotherPort}`,
    ],
  ]
  for (const [title, backend, service, expected] of cases) {
    t.equal(found(backend, service), expected.endsWith(':80') ? expected : refused(expected), title)
  }
})

test('a number that a Service has for UDP and for TCP is that for TCP', async (t) => {
  const ports = [
    { name: 'h3', port: 443, protocol: 'UDP' as const },
    { name: 'https', port: 443, protocol: 'TCP' as const },
  ]
  t.equal(found(web('443'), aService('web', '192.0.2.7', { ports })), '192.0.2.7:443')
})

test('a backend has an IPv4 address in every fleet, and an IPv6 one only where pods have both', async (t) => {
  const only = refused('Service default/web has only an IPv6 ClusterIP: name one with IPv4 among its ipFamilies')
  const six = '[2001:db8::7]:80'
  const cases: readonly (readonly [clusterIPs: readonly string[], without: string, withIPv6: string])[] = [
    [['192.0.2.7'], '192.0.2.7:80', '192.0.2.7:80'],
    [['192.0.2.7', '2001:db8::7'], '192.0.2.7:80', '192.0.2.7:80'],
    [['2001:db8::7', '192.0.2.7'], '192.0.2.7:80', '192.0.2.7:80'],
    [['2001:db8::7'], only, six],
    [['2001:DB8:0::7'], only, six],
  ]
  for (const [clusterIPs, without, withIPv6] of cases) {
    const service = aService('web', clusterIPs[0], { clusterIPs })
    t.equal(found(web(), service), without, clusterIPs.join())
    t.equal(found(web(), service, { ipv6: true }), withIPv6, `${clusterIPs} with IPv6`)
  }
})

test('backends with other options have other names and other lines', async (t) => {
  const cases: readonly (readonly [Partial<IngressOptions>, name: string, lines: readonly string[], server: string])[] =
    [
      [{}, 'default_web_80', [], ''],
      [{ redirect: true }, 'default_web_80', [], ''],
      [{ timeoutSeconds: 120 }, 'default_web_80_t120', ['  timeout server 120s'], ''],
      [
        { maxBodyBytes: 1024 },
        'default_web_80_b1024',
        ['  http-request deny deny_status 413 if { req.hdr_val(content-length) gt 1024 }'],
        '',
      ],
      [{ protocol: 'h2c' }, 'default_web_80_h2c', [], ' proto h2'],
      [{ protocol: 'https' }, 'default_web_80_https', [], ' ssl verify none sni var(txn.host)'],
    ]
  for (const [over, name, lines, server] of cases) {
    const decided = proxyBackend(web(), { ...place, options: { ...options, ...over } }, holding(aService('web')))
    if ('problem' in decided) throw new Error(decided.problem.message)
    t.equal(decided.value.name, name)
    const text = [`backend ${name}`, ...lines, `  server service 10.96.0.7:80${server}`, ''].join('\n')
    t.equal(backendText(decided.value), text, name)
  }
})
