import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { randomNumbers } from '../../../daemon/testing/fuzz.ts'
import { answerCache } from '../../network/names/answer-cache.ts'
import { type Answerer, dnsAnswerer } from '../../network/names/answerer.ts'
import { dnsForwarder } from '../../network/names/forwarder.ts'
import { sourceLimit } from '../../network/names/source-limit.ts'
import { clusterZone, type Zone } from '../../network/names/zone.ts'
import { dnsQuestion, seenAnswer } from '../../network/testing/dns-client.ts'
import { aService, endpointOn } from '../../network/testing/services.ts'
import { until } from '../../testing/until.ts'
import { openNameSockets } from './name-sockets.ts'
import { upstreamSockets } from './upstream-sockets.ts'

const network = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  nodes: [],
}
const many = Array.from({ length: 250 }, (_, index) => `10.244.1.${index}`)
const services = new Map([
  ['shop/web', aService({})],
  ['shop/many', aService({ name: 'many', clusterIPs: [], addresses: many.map((ip) => endpointOn('pi-1', ip)) })],
  [
    'shop/out',
    aService({ name: 'out', type: 'ExternalName', clusterIPs: [], externalName: 'many.shop.svc.other.example' }),
  ],
])

const zoneFor = (clusterDomain: string): Zone =>
  clusterZone({ network: { ...network, clusterDomain }, services, isComplete: true, serial: 1 })

/** A server whose other server is at this port of the machine; undefined: it has none. */
function answererFor(zone: Zone, upstreamPort?: number): Answerer {
  const forwarder = dnsForwarder({
    sockets: upstreamSockets(upstreamPort),
    servers: async () => (upstreamPort === undefined ? [] : ['127.0.0.1']),
    cache: answerCache(),
    randomId: () => randomInt(65_536),
    clock: systemClock,
  })
  const isClient = (address: string) => address === '127.0.0.1'
  const limit = sourceLimit(systemClock, { perSecond: 1e9, atOnce: 1e9 })
  return dnsAnswerer({ zone: () => zone, forwarder, isClient, limit, random: Math.random })
}

async function serve(t: Test, answerer: Answerer, address = '127.0.0.1'): Promise<number> {
  const opened = await openNameSockets({ address, port: 0 }, answerer)
  t.teardown(opened.close)
  return opened.port
}

function resolverAt(port: number): Resolver {
  const resolver = new Resolver({ timeout: 5_000, tries: 2 })
  resolver.setServers([`127.0.0.1:${port}`])
  return resolver
}

test('a resolver finds names of the fleet, and names of another server through it', async (t) => {
  const upstream = await serve(t, answererFor(zoneFor('other.example')))
  const resolver = resolverAt(await serve(t, answererFor(zoneFor('cluster.local'), upstream)))
  t.same(await resolver.resolve4('web.shop.svc.cluster.local'), ['10.96.0.7'])
  t.match(await resolver.resolveSoa('cluster.local'), { nsname: 'ns.dns.cluster.local' })
  t.same(await resolver.resolveNs('cluster.local'), ['ns.dns.cluster.local'])
  t.same(await resolver.resolveTxt('dns-version.cluster.local'), [['1.1.0']])
  t.same(await resolver.reverse('10.96.0.7'), ['web.shop.svc.cluster.local'])
  t.match(await resolver.resolveSrv('web.shop.svc.cluster.local'), [
    { name: 'web.shop.svc.cluster.local', port: 80, weight: 100, priority: 0 },
  ])
  await t.rejects(resolver.resolve4('none.shop.svc.cluster.local'), { code: 'ENOTFOUND' })
  await t.rejects(resolver.resolve6('web.shop.svc.cluster.local'), { code: 'ENODATA' })
  t.same(await resolver.resolve4('web.shop.svc.other.example'), ['10.96.0.7'], 'forwarded')
  await t.rejects(resolver.resolve4('none.shop.svc.other.example'), { code: 'ENOTFOUND' })
  await t.rejects(resolver.resolve6('web.shop.svc.other.example'), { code: 'ENODATA' })
})

test('an answer that is too long for a datagram comes over TCP, also from another server', async (t) => {
  const upstream = await serve(t, answererFor(zoneFor('other.example')))
  const resolver = resolverAt(await serve(t, answererFor(zoneFor('cluster.local'), upstream)))
  t.same((await resolver.resolve4('many.shop.svc.cluster.local')).sort(), [...many].sort())
  t.same((await resolver.resolve4('many.shop.svc.other.example')).sort(), [...many].sort())
  t.equal((await resolver.resolve4('out.shop.svc.cluster.local')).length, 250, 'the target of an alias')
})

test('a question that no server answers fails soon', async (t) => {
  const nothingListens = 1
  const resolver = resolverAt(await serve(t, answererFor(zoneFor('cluster.local'), nothingListens)))
  await t.rejects(resolver.resolve4('example.com'), { code: 'ESERVFAIL' })
  t.same(await resolver.resolve4('web.shop.svc.cluster.local'), ['10.96.0.7'], 'names of the fleet do not need it')
})

test('a stranger gets neither an answer nor a connection', async (t) => {
  const answerer = answererFor(zoneFor('cluster.local'))
  const port = await serve(t, { ...answerer, isClient: () => false, answer: () => undefined })
  const stranger = connect(port, '127.0.0.1')
  stranger.on('error', () => undefined)
  await until('the connection is closed', () => stranger.destroyed || stranger.readableEnded)
})

test('several questions on one connection are answered in order, however they are cut', async (t) => {
  const port = await serve(t, answererFor(zoneFor('cluster.local')))
  const framed = [1, 2, 3].map((id) => {
    const question = dnsQuestion('web.shop.svc.cluster.local', 'A', { id })
    return Buffer.concat([Buffer.from([0, question.length]), question])
  })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => void socket.destroy())
  let received = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
  })
  const all = Buffer.concat(framed)
  for (const byte of all.subarray(0, 60)) socket.write(Buffer.from([byte]))
  socket.write(all.subarray(60))
  const length = 2 + 12 + 26 + 2 + 4 + 16
  await until('three answers', () => received.length >= 3 * length)
  t.same(
    [0, 1, 2].map((index) => seenAnswer(received.subarray(index * length + 2, (index + 1) * length)).id),
    [1, 2, 3],
  )
})

test('a connection with a question that is too long is closed, and one client has 16 of them', async (t) => {
  const port = await serve(t, answererFor(zoneFor('cluster.local')))
  const open = Array.from({ length: 30 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  for (const socket of open) t.teardown(() => void socket.destroy())
  await until(
    '14 are closed',
    () => open.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length >= 14,
  )
  const left = open.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded)
  t.equal(left.length, 16)
  const [first] = left
  first?.resume()
  first?.write(Buffer.from([0xff, 0xff, 1, 2]))
  await until('it is closed', () => first === undefined || first.destroyed || first.readableEnded)
})

test('after any datagrams the server answers as before', async (t) => {
  const port = await serve(t, answererFor(zoneFor('cluster.local')))
  const client = createSocket('udp4')
  t.teardown(() => void client.close())
  const random = randomNumbers()
  for (let round = 0; round < 2_000; round++) {
    const bytes = Buffer.alloc(random() % 600)
    for (let at = 0; at < bytes.length; at++) bytes[at] = random() % 256
    client.send(bytes, port, '127.0.0.1')
  }
  t.same(await resolverAt(port).resolve4('web.shop.svc.cluster.local'), ['10.96.0.7'])
})

test('an address that the machine does not have is reported with its port', async (t) => {
  const answerer = answererFor(zoneFor('cluster.local'))
  await t.rejects(openNameSockets({ address: '192.0.2.77', port: 53 }, answerer), {
    message: 'Cannot listen on 192.0.2.77, port 53',
  })
})
