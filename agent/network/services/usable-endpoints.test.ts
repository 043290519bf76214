import { test } from 'tap'
import type { ServiceState } from '../../../api/network/service-endpoints.ts'
import { ipv4Rules, ipv6Rules } from '../rule-family.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { endpointsOf, isPortNumber, type NodePlace, type PortEndpoint, usableEndpoints } from './usable-endpoints.ts'

const place: NodePlace = { nodeName: 'pi-1', zone: '', family: ipv4Rules }
const port = { port: 80, protocol: 'TCP' } as const
type State = 'ready' | 'ending' | 'gone'
const states = {
  ready: { ready: true, serving: true, terminating: false },
  ending: { ready: false, serving: true, terminating: true },
  gone: { ready: false, serving: false, terminating: true },
}

function endpoint(ip: string, state: State = 'ready', more: Partial<PortEndpoint> = {}): PortEndpoint {
  return { ip, port: 8080, isLocal: false, isSilent: false, zones: [], ...states[state], ...more }
}
const here = (ip: string, state?: State) => endpoint(ip, state, { isLocal: true })
const silent = (ip: string, state?: State) => endpoint(ip, state, { isSilent: true })

function used(endpoints: readonly PortEndpoint[], policies: { cluster?: boolean; local?: boolean } = {}, zone = '') {
  const wanted = { cluster: true, local: true, ...policies }
  const { cluster, local, reachable, exist } = usableEndpoints(endpoints, wanted, { ...place, zone })
  const ips = (of: readonly PortEndpoint[]) => of.map(({ ip }) => ip).join(' ')
  return { cluster: ips(cluster), local: ips(local), reachable: ips(reachable), exist }
}

test('a node sends packets to ready endpoints, or to those that end and still serve', async (t) => {
  const none = { cluster: '', local: '', reachable: '', exist: false }
  t.same(used([]), none)
  t.same(used([endpoint('a', 'gone')]), none)
  t.same(used([endpoint('a', 'ready', { serving: true, ready: false })]), none, 'it serves, is not ready and stays')
  t.same(used([endpoint('a'), here('b'), endpoint('c', 'ending')]), {
    ...{ cluster: 'a b', local: 'b', reachable: 'a b', exist: true },
  })
  t.same(used([endpoint('a', 'ending'), here('b', 'ending'), endpoint('c', 'gone')]), {
    ...{ cluster: 'a b', local: 'b', reachable: 'a b', exist: true },
  })
})

test('each policy falls back to endpoints that end by itself', async (t) => {
  t.same(used([endpoint('a'), here('b', 'ending')]), { cluster: 'a', local: 'b', reachable: 'a b', exist: true })
  t.same(used([endpoint('a'), here('b', 'ending')], { local: false }), {
    ...{ cluster: 'a', local: '', reachable: 'a', exist: true },
  })
  t.same(used([endpoint('a'), here('b')], { cluster: false }), {
    ...{ cluster: '', local: 'b', reachable: 'b', exist: true },
  })
  t.same(used([endpoint('a')], { cluster: false }), { cluster: '', local: '', reachable: '', exist: true })
  t.same(used([endpoint('a', 'ending')], { cluster: false }), { cluster: '', local: '', reachable: '', exist: true })
})

test('endpoints of silent nodes are left out, unless all of them are silent', async (t) => {
  t.equal(used([endpoint('a'), silent('b')]).cluster, 'a')
  t.equal(used([silent('a'), silent('b')]).cluster, 'a b')
  t.equal(used([silent('a'), endpoint('b', 'ending')]).cluster, 'a', 'one that is ready comes before one that ends')
  t.equal(used([silent('a', 'ending'), endpoint('b', 'ending')]).cluster, 'b')
})

test('hints are followed where each ready endpoint has one and some are for the zone of the node', async (t) => {
  const hinted = (ip: string, ...zones: readonly string[]) => endpoint(ip, 'ready', { zones })
  const both = [hinted('a', 'one'), hinted('b', 'one', 'two'), hinted('c', 'two')]
  t.equal(used(both, {}, 'one').cluster, 'a b')
  t.equal(used(both, {}, 'three').cluster, 'a b c')
  t.equal(used(both, {}, '').cluster, 'a b c')
  t.equal(used([...both, endpoint('d')], {}, 'one').cluster, 'a b c d', 'one has no hint')
  t.equal(used([...both, endpoint('d', 'ending')], {}, 'one').cluster, 'a b', 'hints of others do not count')
  const local = endpoint('d', 'ready', { zones: ['two'], isLocal: true })
  t.match(used([...both, local], {}, 'one'), { cluster: 'a b', local: 'd', reachable: 'a b d' })
})

test('the endpoints of a port are matched by its name and protocol, each address once', async (t) => {
  const found = (service: ServiceState, of: ServiceState['ports'][number] = port, more: Partial<NodePlace> = {}) =>
    endpointsOf(service, of, { ...place, ...more }).map(({ ip, port: number }) => `${ip}:${number}`)
  const [a, b] = [endpointOn('pi-1', '10.244.1.5'), endpointOn('pi-2', '10.244.2.5')]
  const set = (name: string | undefined, number: number, ...addresses: readonly (typeof a)[]) => ({
    ports: [{ ...(name !== undefined && { name }), port: number, protocol: 'TCP' as const }],
    addresses: [...addresses],
  })
  const named = { ...aService({}), endpoints: [set('http', 8080, a), set('http', 8081, b), set('admin', 9090, a)] }
  t.same(found(named, { ...port, name: 'http' }), ['10.244.1.5:8080', '10.244.2.5:8081'])
  t.same(found(named, { ...port, name: 'admin' }), ['10.244.1.5:9090'])
  t.same(found(named), [], 'a port without a name')
  t.same(found(named, { ...port, name: 'http', protocol: 'UDP' }), [])
  const plain = { ...aService({}), endpoints: [set(undefined, 8080, a, a), set('', 8080, a, b)] }
  t.same(found(plain), ['10.244.1.5:8080', '10.244.2.5:8080'])
  for (const number of [0, -1, 65_536, 1.5]) t.same(found({ ...plain, endpoints: [set(undefined, number, a)] }), [])
  const both = { ...plain, endpoints: [set(undefined, 8080, a, endpointOn('pi-1', '2001:db8::5'))] }
  t.same(found(both), ['10.244.1.5:8080'])
  t.same(found(both, port, { family: ipv6Rules }), ['2001:db8::5:8080'])
})

test('an endpoint has its place, and is ready where the Service publishes it in any case', async (t) => {
  const zones = ['one']
  const addresses = [
    endpointOn('pi-1', '10.244.1.5', { zones }),
    endpointOn('pi-2', '10.244.2.5', { ready: false }),
    { ip: '192.0.2.7', ...states.ready },
  ]
  const silentNodes = ['pi-2']
  t.match(endpointsOf(aService({ addresses }), port, { ...place, silentNodes }), [
    { isLocal: true, isSilent: false, ready: true, zones },
    { isLocal: false, isSilent: true, ready: false, zones: [] },
    { isLocal: false, isSilent: false, ready: true },
  ])
  t.match(endpointsOf(aService({ addresses, publishNotReadyAddresses: true }), port, place)[1], { ready: true })
})

test('a port is a whole number from 1 to 65535', async (t) => {
  t.same([1, 65_535].map(isPortNumber), [true, true])
  t.same([undefined, 0, -1, 65_536, 1.5, Number.NaN].map(isPortNumber), [false, false, false, false, false, false])
})
