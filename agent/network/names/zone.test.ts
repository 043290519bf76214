import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { fuzzSeed } from '../../../daemon/testing/fuzz.ts'
import { seededRandom } from '../../../daemon/testing/seeded-random.ts'
import { serviceKey } from '../messages/service-states.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { dnsTypes } from './dns-query.ts'
import type { DnsRecord } from './dns-response.ts'
import { clusterZone } from './zone.ts'

const network: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [
    { name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: 's' },
    { name: 'pi-2.lan', podCIDR: '10.244.2.0/24', address: '192.168.1.6', segment: 's' },
  ],
}

function zoneWith(services: readonly ServiceState[], isComplete = true, message = network) {
  const zone = clusterZone({
    network: message,
    services: new Map(services.map((service) => [serviceKey(service), service])),
    isComplete,
    serial: 42,
  })
  const ask = (name: string, type: keyof typeof dnsTypes = 'A') => zone.answer(name, dnsTypes[type])
  /** The code and the answers of a name below the domain. */
  const look = (name: string, type: keyof typeof dnsTypes = 'A') => {
    const found = ask(`${name}.cluster.local`, type)
    return found && [codes[found.code], ...found.answers.map(dataOf)]
  }
  return { ask, look }
}

const codes = ['found', 'malformed', 'unknown', 'none']

function dataOf(record: DnsRecord): string {
  switch (record.type) {
    case 'A':
    case 'AAAA':
      return record.address
    case 'SRV':
      return `${record.priority} ${record.weight} ${record.port} ${record.target}`
    case 'TXT':
      return record.text
    case 'CNAME':
    case 'PTR':
    case 'NS':
      return record.target
    case 'SOA':
      return `${record.server} ${record.mailbox} ${record.numbers.join(' ')}`
    case 'other':
      return 'other'
  }
}

const web = aService({
  addresses: [endpointOn('pi-1', '10.244.1.5'), endpointOn('pi-2', '10.244.2.5', { ready: false })],
})
const named = {
  ...web,
  ports: [
    { name: 'http', port: 80, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'UDP' },
  ],
} as const satisfies ServiceState
const headless: ServiceState = {
  ...aService({ name: 'db', clusterIPs: [] }),
  endpoints: [
    {
      ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      addresses: [
        endpointOn('pi-1', '10.244.1.7', { hostname: 'db-0' }),
        endpointOn('pi-2', '10.244.2.7', { hostname: 'db-1' }),
        endpointOn('pi-2', '10.244.2.8'),
        endpointOn('pi-2', '10.244.2.9', { hostname: 'db-2', ready: false }),
      ],
    },
  ],
}
const external = aService({ name: 'out', type: 'ExternalName', clusterIPs: [], externalName: 'DB.example.' })

test('a Service has the address of its own, and SRV records of its ports', async (t) => {
  const { look, ask } = zoneWith([named])
  t.same(look('web.shop.svc'), ['found', '10.96.0.7'])
  t.same(look('_http._tcp.web.shop.svc', 'SRV'), ['found', '0 100 80 web.shop.svc.cluster.local'])
  t.same(look('_dns._udp.web.shop.svc', 'SRV'), ['found', '0 100 53 web.shop.svc.cluster.local'])
  t.same(look('web.shop.svc', 'SRV'), [
    'found',
    '0 50 80 web.shop.svc.cluster.local',
    '0 50 53 web.shop.svc.cluster.local',
  ])
  t.match(ask('_http._tcp.web.shop.svc.cluster.local', 'SRV')?.additional, [
    { type: 'A', name: 'web.shop.svc.cluster.local', address: '10.96.0.7' },
  ])
  for (const name of ['_http._udp', '_https._tcp', 'http.tcp', '_x._http._tcp', '_http']) {
    t.same(look(`${name}.web.shop.svc`, 'SRV'), ['none'], name)
  }
  t.same(look('_http._tcp.web.shop.svc'), ['found', '10.96.0.7'])
})

test('the endpoints of a headless Service have its name, and each its own', async (t) => {
  const { look, ask } = zoneWith([headless])
  t.same(look('db.shop.svc'), ['found', '10.244.1.7', '10.244.2.7', '10.244.2.8'])
  t.same(look('db-0.db.shop.svc'), ['found', '10.244.1.7'])
  t.same(look('10-244-2-8.db.shop.svc'), ['found', '10.244.2.8'])
  t.same(look('10-244-1-7.db.shop.svc'), ['none'], 'it has a host name')
  t.same(look('db-2.db.shop.svc'), ['none'], 'it is not ready')
  t.same(look('_sql._tcp.db.shop.svc', 'SRV'), [
    'found',
    '0 33 5432 db-0.db.shop.svc.cluster.local',
    '0 33 5432 db-1.db.shop.svc.cluster.local',
    '0 33 5432 10-244-2-8.db.shop.svc.cluster.local',
  ])
  t.equal(ask('_sql._tcp.db.shop.svc.cluster.local', 'SRV')?.additional.length, 3)
  const [set] = headless.endpoints
  const unready = set?.addresses.map((one) => ({ ...one, ready: false })) ?? []
  const empty = zoneWith([{ ...headless, endpoints: [{ ports: [], addresses: unready }] }])
  t.same(empty.look('db.shop.svc'), ['none'], 'no endpoint is ready')
})

test('an endpoint of a Service with an address has a name, too', async (t) => {
  const { look } = zoneWith([web])
  t.same(look('10-244-1-5.web.shop.svc'), ['found', '10.244.1.5'])
  t.same(look('10-244-2-5.web.shop.svc'), ['none'])
})

test('a Service without ports has an address and no SRV record', async (t) => {
  const { look } = zoneWith([
    { ...web, ports: [] },
    { ...headless, endpoints: headless.endpoints.map((set) => ({ ...set, ports: [] })) },
  ])
  t.same(look('web.shop.svc'), ['found', '10.96.0.7'])
  t.same(look('web.shop.svc', 'SRV'), ['found'])
  t.same(look('db.shop.svc'), ['found', '10.244.1.7', '10.244.2.7', '10.244.2.8'])
  t.same(look('db.shop.svc', 'SRV'), ['found'])
})

test('an ExternalName is an alias, and its addresses come from elsewhere', async (t) => {
  const { ask, look } = zoneWith([external, aService({ ...external, name: 'address', externalName: '192.0.2.1' })])
  t.match(ask('out.shop.svc.cluster.local'), { code: 0, answers: [{ target: 'db.example' }], target: 'db.example' })
  t.match(ask('out.shop.svc.cluster.local', 'AAAA'), { target: 'db.example' })
  t.same(look('out.shop.svc', 'CNAME'), ['found', 'db.example'])
  t.same(look('out.shop.svc', 'SRV'), ['found'])
  t.same(look('x.out.shop.svc'), ['none'])
  t.same(look('address.shop.svc'), ['none'])
})

test('an alias for another name of the domain has its addresses in the same answer', async (t) => {
  const alias = (name: string, to: string) =>
    aService({ ...external, name, externalName: `${to}.shop.svc.cluster.local` })
  const { ask, look } = zoneWith([
    headless,
    alias('a', 'b'),
    alias('b', 'db'),
    alias('c', 'c'),
    alias('d', 'out'),
    external,
  ])
  t.same(
    ask('a.shop.svc.cluster.local')?.answers.map((record) => `${record.name ?? '@'} ${dataOf(record)}`),
    [
      '@ b.shop.svc.cluster.local',
      'b.shop.svc.cluster.local db.shop.svc.cluster.local',
      'db.shop.svc.cluster.local 10.244.1.7',
      'db.shop.svc.cluster.local 10.244.2.7',
      'db.shop.svc.cluster.local 10.244.2.8',
    ],
  )
  t.equal(look('c.shop.svc')?.[0], 'found', 'a circle ends')
  t.match(ask('d.shop.svc.cluster.local'), { answers: { length: 2 }, target: 'db.example' })
})

test('names of pods lead to addresses of the fleet, and to no others', async (t) => {
  const { look } = zoneWith([])
  t.same(look('10-244-7-9.any.pod'), ['found', '10.244.7.9'])
  t.same(look('192-168-1-5.any.pod'), ['found', '192.168.1.5'], 'a pod on the network of its node')
  for (const name of ['192-168-1-7', '8-8-8-8', '10-244-7-256', '10-244-7', '10-244--7-9', 'web', '1.10-244-7-9']) {
    t.same(look(`${name}.any.pod`), ['none'], name)
  }
})

test('names of nodes lead to their addresses', async (t) => {
  const { look } = zoneWith([])
  t.same(look('pi-1.node'), ['found', '192.168.1.5'])
  t.same(look('pi-2.lan.node'), ['found', '192.168.1.6'])
  t.same(look('pi-1.node', 'AAAA'), ['found'])
  t.same(look('pi-3.node'), ['none'])
})

test('addresses lead back to names', async (t) => {
  const { ask } = zoneWith([web, headless])
  const back = (name: string, type: 'PTR' | 'A' = 'PTR') => {
    const found = ask(`${name}.in-addr.arpa`, type)
    return found && [codes[found.code], ...found.answers.map(dataOf)]
  }
  t.same(back('7.0.96.10'), ['found', 'web.shop.svc.cluster.local'])
  t.same(back('7.1.244.10'), ['found', 'db-0.db.shop.svc.cluster.local'])
  t.same(back('8.2.244.10'), ['none'], 'an endpoint without a host name')
  t.same(back('9.2.244.10'), ['none'], 'an endpoint that is not ready')
  t.same(back('7.0.96.10', 'A'), ['found'])
  for (const name of ['5.1.168.192', '0.96.10', '7.0.96.10.1', '7.0.96.256']) t.equal(back(name), undefined, name)
  t.equal(ask('10.96.0.7.in-addr.arpa.cluster.local', 'PTR')?.code, 3)
})

test('names that exist without an address have no records, and others do not exist', async (t) => {
  const { look, ask } = zoneWith([web])
  for (const name of ['svc', 'pod', 'node', 'dns', 'shop.svc', 'dns-version']) t.same(look(name), ['found'], name)
  for (const name of ['x', 'x.svc', 'web.x.svc', 'x.shop.svc', 'x.dns', 'x.dns-version', 'default.svc']) {
    t.same(look(name), ['none'], name)
  }
  t.same(look('web.shop.svc', 'AAAA'), ['found'], 'there is no IPv6')
  t.match(ask('x.cluster.local')?.authorities, [
    { type: 'SOA', name: 'cluster.local', numbers: [42, 7200, 1800, 86_400, 5] },
  ])
  t.match(ask('web.shop.svc.cluster.local', 'AAAA')?.authorities, [{ type: 'SOA' }])
  t.same(ask('web.shop.svc.cluster.local')?.authorities, [])
  t.same(look('x.shop.svc') && zoneWith([], false).look('x.shop.svc'), ['unknown'], 'not all Services were received')
})

test('the domain has its server, its SOA and the version of the schema', async (t) => {
  const { ask, look } = zoneWith([])
  const at = (type: keyof typeof dnsTypes) => ask('cluster.local', type)?.answers.map(dataOf)
  t.same(at('NS'), ['ns.dns.cluster.local'])
  t.same(at('SOA'), ['ns.dns.cluster.local hostmaster.cluster.local 42 7200 1800 86400 5'])
  t.same(at('A'), [])
  t.same(look('ns.dns'), ['found', '169.254.20.10'])
  t.same(look('dns-version', 'TXT'), ['found', '1.1.0'])
})

test('names outside of the domain are not answered here', async (t) => {
  const { ask } = zoneWith([web])
  for (const name of ['example.com', 'cluster.local.example', 'xcluster.local', 'local', '', 'localhost']) {
    t.equal(ask(name), undefined, name)
  }
})

test('for any Services the records are those of the specification', async (t) => {
  const random = seededRandom(fuzzSeed)
  const below = (most: number) => Math.floor(random() * most)
  for (let round = 0; round < 200; round++) {
    const services = Array.from({ length: 1 + below(6) }, (_, index): ServiceState => {
      const addresses = Array.from({ length: below(5) }, (__, one) =>
        endpointOn('pi-1', `10.244.${index}.${one}`, {
          ready: random() < 0.7,
          ...(random() < 0.5 && { hostname: `h-${one}` }),
        }),
      )
      const service = aService({ name: `s${index}`, clusterIPs: random() < 0.5 ? [] : [`10.96.1.${index}`], addresses })
      return random() < 0.5 ? service : { ...service, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }
    })
    const { look } = zoneWith(services)
    for (const { name, clusterIPs, endpoints } of services) {
      const ready = endpoints.flatMap(({ addresses }) => addresses).filter((one) => one.ready)
      const wanted = clusterIPs.length > 0 ? clusterIPs : ready.map(({ ip }) => ip)
      t.same(look(`${name}.shop.svc`), wanted.length === 0 ? ['none'] : ['found', ...wanted])
      for (const { ip, hostname } of ready) {
        t.same(look(`${hostname ?? ip.replaceAll('.', '-')}.${name}.shop.svc`), ['found', ip])
      }
    }
  }
})

test('while not all Services were received, only names that are not known are uncertain', async (t) => {
  const { look, ask } = zoneWith([web], false)
  t.same(look('web.shop.svc'), ['found', '10.96.0.7'])
  t.same(look('web.shop.svc', 'AAAA'), ['found'])
  t.same(ask('x.shop.svc.cluster.local'), { code: 2, answers: [], additional: [], authorities: [] })
})

test('an answer without records has the SOA, and one with records nothing else', async (t) => {
  const { ask } = zoneWith([web, external])
  for (const [name, type] of [
    ['pi-1.node', 'AAAA'],
    ['svc', 'TXT'],
    ['dns-version', 'A'],
    ['out.shop.svc', 'TXT'],
  ] as const) {
    t.match(ask(`${name}.cluster.local`, type), { code: 0, answers: [], authorities: [{ type: 'SOA' }] }, name)
  }
  t.same(ask('svc.cluster.local', 'TXT')?.answers, [])
  const found = ask('web.shop.svc.cluster.local')
  t.same([found?.authorities, found?.additional], [[], []])
  t.same(ask('cluster.local', 'NS')?.additional, [
    { type: 'A', name: 'ns.dns.cluster.local', ttl: 5, address: '169.254.20.10' },
  ])
})

test('an alias without a name is ignored, and a long chain of aliases ends', async (t) => {
  const alias = (name: string, to: string) => aService({ ...external, name, externalName: to })
  const chain = Array.from({ length: 20 }, (_, index) => alias(`a${index}`, `a${index + 1}.shop.svc.cluster.local`))
  const { ask, look } = zoneWith([alias('empty', ''), ...chain])
  t.same(look('empty.shop.svc'), ['none'])
  t.equal(ask('a0.shop.svc.cluster.local')?.answers.length, 9)
  t.equal(ask('a0.shop.svc.cluster.local', 'CNAME')?.answers.length, 1)
})

test('a Service without ports has no port by any name, and numbers have no zeros before them', async (t) => {
  const { look, ask } = zoneWith([{ ...web, ports: [] }])
  t.same(look('_http._tcp.web.shop.svc', 'SRV'), ['none'])
  t.same(look('10-244-07-9.any.pod'), ['none'])
  t.equal(ask('07.0.96.10.in-addr.arpa', 'PTR'), undefined)
})

const dualStack: NetworkMessage = {
  ...network,
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  nodes: network.nodes.map((node, index) => ({
    ...node,
    ipv6: { podCIDR: `fd00:10:244:${index + 1}::/64`, ...(index === 0 && { address: 'fd00:7::5' }) },
  })),
}
const dualWeb: ServiceState = {
  ...named,
  ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints: [] },
}
const dualHeadless: ServiceState = {
  ...headless,
  ipv6: {
    clusterIPs: [],
    endpoints: [
      {
        ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
        addresses: [
          endpointOn('pi-1', 'fd00:10:244:1::7', { hostname: 'db-0' }),
          endpointOn('pi-2', 'fd00:10:244:2::8'),
          endpointOn('pi-2', 'fd00:10:244:2::9', { ready: false }),
        ],
      },
    ],
  },
}

test('with both families A has the IPv4 addresses and AAAA those of IPv6', async (t) => {
  const { look, ask } = zoneWith([dualWeb, dualHeadless], true, dualStack)
  t.same(look('web.shop.svc'), ['found', '10.96.0.7'])
  t.same(look('web.shop.svc', 'AAAA'), ['found', 'fd00:10:96::7'])
  t.same(look('db.shop.svc'), ['found', '10.244.1.7', '10.244.2.7', '10.244.2.8'])
  t.same(look('db.shop.svc', 'AAAA'), ['found', 'fd00:10:244:1::7', 'fd00:10:244:2::8'])
  t.same(look('db-0.db.shop.svc', 'AAAA'), ['found', 'fd00:10:244:1::7'])
  t.same(look('db-1.db.shop.svc', 'AAAA'), ['found'], 'an IPv4 endpoint')
  t.same(look('fd00-10-244-2--8.db.shop.svc', 'AAAA'), ['found', 'fd00:10:244:2::8'])
  t.same(look('fd00-10-244-2--8.db.shop.svc'), ['found'])
  t.same(look('fd00-10-244-2--9.db.shop.svc', 'AAAA'), ['none'], 'it is not ready')
  t.same(look('pi-1.node', 'AAAA'), ['found', 'fd00:7::5'])
  t.same(look('pi-2.lan.node', 'AAAA'), ['found'], 'it has no IPv6 address')
  t.same(look('ns.dns', 'AAAA'), ['found'], 'the server has an IPv4 address')
  t.same(look('fd00-10-244-1--7.any.pod', 'AAAA'), ['found', 'fd00:10:244:1::7'])
  t.same(look('fd00-7--5.any.pod', 'AAAA'), ['found', 'fd00:7::5'], 'a pod on the network of its node')
  t.same(look('fd01--1.any.pod', 'AAAA'), ['none'])
  t.same(look('_http._tcp.web.shop.svc', 'SRV'), ['found', '0 50 80 web.shop.svc.cluster.local'])
  t.same(
    ask('_http._tcp.web.shop.svc.cluster.local', 'SRV')?.additional.map((one) => [one.type, one.name, dataOf(one)]),
    [
      ['A', 'web.shop.svc.cluster.local', '10.96.0.7'],
      ['AAAA', 'web.shop.svc.cluster.local', 'fd00:10:96::7'],
    ],
  )
  const targets = (look('_sql._tcp.db.shop.svc', 'SRV') ?? []).map((record) => String(record).split(/[ .]/)[3])
  t.same(targets, [undefined, 'db-0', 'db-1', '10-244-2-8', 'fd00-10-244-2--8'])
})

test('an IPv6-only Service has an address, and its endpoints do not have its name', async (t) => {
  const single: ServiceState = {
    ...dualHeadless,
    ipv6: { ...dualWeb.ipv6, clusterIPs: ['fd00:10:96::9'], endpoints: [] },
  }
  const { look } = zoneWith([single], true, dualStack)
  t.same(look('db.shop.svc', 'AAAA'), ['found', 'fd00:10:96::9'])
  t.same(look('db.shop.svc'), ['found'])
})

test('IPv6 addresses lead back to names', async (t) => {
  const reversed = (address: string) => `${[...address].reverse().join('.')}.ip6.arpa`
  const ofService = reversed('fd000010009600000000000000000007')
  const ofEndpoint = reversed('fd000010024400010000000000000007')
  const { ask } = zoneWith([dualWeb, dualHeadless], true, dualStack)
  const back = (name: string) => ask(name, 'PTR')?.answers.map(dataOf)
  t.same(back(ofService), ['web.shop.svc.cluster.local'])
  t.same(back(ofEndpoint), ['db-0.db.shop.svc.cluster.local'])
  t.match(ask(ofService, 'A'), { code: 0, answers: [], authorities: [{ type: 'SOA', name: 'ip6.arpa' }] })
  t.match(ask(reversed('fd000010009600000000000000000008'), 'PTR'), { code: 3 })
  for (const name of [reversed('fd000007000000000000000000000005'), ofService.slice(2), `0.${ofService}`, 'ip6.arpa']) {
    t.equal(ask(name, 'PTR'), undefined, name)
  }
  t.equal(zoneWith([dualWeb]).ask(ofService, 'PTR'), undefined, 'without IPv6 ranges other servers are asked')
})
