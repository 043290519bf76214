import { test } from 'tap'
import { reverseQuestion, type ZoneQuestion, zoneQuestion } from './zone-question.ts'

const asked = (name: string) => zoneQuestion(name === '' ? 'cluster.local' : `${name}.cluster.local`, 'cluster.local')

test('a name outside of the domain is not a question of it', async (t) => {
  for (const name of ['example.com', 'local', 'acluster.local', 'cluster.local.example.com', 'web.shop.svc', ''])
    t.equal(zoneQuestion(name, 'cluster.local'), undefined, name)
})

test('names of the domain are those of Kubernetes’ DNS-based service discovery', async (t) => {
  const web = { namespace: 'shop', service: 'web' }
  const names: { readonly [name: string]: ZoneQuestion } = {
    '': { of: 'apex' },
    'dns-version': { of: 'schema' },
    svc: { of: 'branch' },
    pod: { of: 'branch' },
    node: { of: 'branch' },
    dns: { of: 'branch' },
    'ns.dns': { of: 'server' },
    'shop.svc': { of: 'namespace', namespace: 'shop' },
    'shop.pod': { of: 'namespace', namespace: 'shop' },
    'web.shop.svc': { of: 'service', ...web },
    'db-0.web.shop.svc': { of: 'endpoint', ...web, endpoint: 'db-0' },
    '10-244-1-5.web.shop.svc': { of: 'endpoint', ...web, endpoint: '10-244-1-5' },
    '_http._tcp.web.shop.svc': { of: 'port', ...web, port: 'http', protocol: 'tcp' },
    '_dns._udp.web.shop.svc': { of: 'port', ...web, port: 'dns', protocol: 'udp' },
    'pi-1.node': { of: 'node', node: 'pi-1' },
    'pi-1.example.com.node': { of: 'node', node: 'pi-1.example.com' },
    '192-0-2-7.shop.pod': { of: 'pod', address: '192.0.2.7' },
    '2001-db8--7.shop.pod': { of: 'pod', address: '2001:db8::7' },
    '2001-db8-0-0-0-0-0-7.shop.pod': { of: 'pod', address: '2001:db8::7' },
    '--1.shop.pod': { of: 'pod', address: '::1' },
  }
  for (const [name, question] of Object.entries(names)) t.same(asked(name), question, name)
})

test('other names inside of the domain are those of nothing', async (t) => {
  const names = [
    ...['web', 'web.shop', 'a.dns-version', 'a.dns', 'a.ns.dns', 'svc.shop', 'web.shop.service'],
    ...['http.tcp.web.shop.svc', '_http.tcp.web.shop.svc', 'http._tcp.web.shop.svc', 'a._http._tcp.web.shop.svc'],
    ...['web.shop.pod', '192-0-2.shop.pod', '192-0-2-7-1.shop.pod', 'a.192-0-2-7.shop.pod', '2001-db8.shop.pod'],
  ]
  for (const name of names) t.same(asked(name), { of: 'nothing' }, name)
})

test('names below in-addr.arpa and ip6.arpa ask for addresses', async (t) => {
  t.same(reverseQuestion('7.2.0.192.in-addr.arpa'), { address: '192.0.2.7', zone: 'in-addr.arpa' })
  const digits = '20010db8000000000000000000000007'
  const reversed = [...digits].reverse().join('.')
  t.same(reverseQuestion(`${reversed}.ip6.arpa`), { address: '2001:db8::7', zone: 'ip6.arpa' })
  const others = [
    ...['2.0.192.in-addr.arpa', '1.7.2.0.192.in-addr.arpa', '7.2.0.b.in-addr.arpa', '1921.2.0.1.in-addr.arpa'],
    ...['in-addr.arpa', 'ip6.arpa', `${reversed.slice(2)}.ip6.arpa`, `0.${reversed}.ip6.arpa`],
    ...[`${reversed.replace('7', 'g')}.ip6.arpa`, `${reversed.replace('7', '70')}.ip6.arpa`, '7.2.0.192.example.com'],
  ]
  for (const name of others) t.equal(reverseQuestion(name), undefined, name)
})
