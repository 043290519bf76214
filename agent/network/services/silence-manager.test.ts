import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { byFamily } from '../../../api/text/ip-address.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import { aService, endpointOn } from '../testing/services.ts'
import { silenceManager } from './silence-manager.ts'
import type { NodeAnswer } from './silent-nodes.ts'

const names = Array.from({ length: 40 }, (_, index) => `pi-${index + 10}`)
const message: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: names.map((name, index) => ({
    name,
    podCIDR: `10.244.${index + 10}.0/24`,
    address: `192.168.1.${index + 10}`,
    segment: 'lan',
  })),
}
const statesOn = (...nodes: readonly string[]): ServiceStates => ({
  services: new Map([['shop/web', aService({ addresses: nodes.map((node) => endpointOn(node, '10.244.9.9')) })]]),
  changed: [],
  isComplete: true,
})

/** Each node has an IPv6 address with its number, and pods have addresses of both families. */
const dual: NetworkMessage = {
  ...message,
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  nodes: message.nodes.map((node, index) => ({
    ...node,
    ipv6: { podCIDR: `fd00:10:244:${index + 10}::/64`, address: `fd00:7::${index + 10}` },
  })),
}

function world(t: Test, states: ServiceStates, { hangs = false, network = message } = {}) {
  const networkMessage = cell<NetworkMessage | undefined>(network)
  const silentNodes = byFamily(() => cell<readonly string[]>([]))
  const answers = new Map<string, NodeAnswer | undefined>()
  const probed: string[] = []
  const link = { isConnected: false }
  const clock = fakeClock()
  const { run } = silenceManager({
    nodeName: 'pi-10',
    async probe(address) {
      probed.push(address)
      if (hangs) await new Promise(() => undefined)
      return answers.has(address) ? answers.get(address) : 'answers'
    },
    isConnected: () => link.isConnected,
    reads: { networkMessage, serviceStates: cell<ServiceStates | undefined>(states) },
    writes: { silentNodes },
    clock,
    log: quietLog(t, 'Endpoints of nodes that do not answer are left out'),
  })
  const end = new AbortController()
  const ended = run(end.signal)
  const stop = async () => {
    end.abort()
    await ended
  }
  t.teardown(stop)
  return { stop, networkMessage, silentNodes, answers, probed, link, clock }
}

test('with a controller no node is probed, and without one only nodes with endpoints are', async (t) => {
  const { probed, link, clock } = world(t, statesOn('pi-10', 'pi-11', 'pi-12'))
  link.isConnected = true
  await clock.advance(300_000)
  t.same(probed, [])
  link.isConnected = false
  await clock.advance(40_000)
  t.same(probed, [])
  await clock.advance(40_000)
  t.same([...new Set(probed)], ['192.168.1.11', '192.168.1.12'])
})

test('a node that ends is left out within some 80 s, and used again at its first answer', async (t) => {
  const { silentNodes, answers, clock } = world(t, statesOn('pi-11', 'pi-12'))
  await clock.advance(100_000)
  t.same(silentNodes.IPv4.get(), [])
  answers.set('192.168.1.11', 'silent')
  await clock.advance(40_000)
  t.same(silentNodes.IPv4.get(), [])
  await clock.advance(40_000)
  t.same(silentNodes.IPv4.get(), ['pi-11'])
  answers.set('192.168.1.11', undefined)
  await clock.advance(40_000)
  t.same(silentNodes.IPv4.get(), ['pi-11'], 'a probe that could not be sent proves nothing')
  answers.delete('192.168.1.11')
  await clock.advance(20_000)
  t.same(silentNodes.IPv4.get(), [])
})

test('a node that answers by one family only keeps the endpoints of that family', async (t) => {
  const sets = [{ ports: [], addresses: ['pi-11', 'pi-12'].map((node) => endpointOn(node, 'fd00:10:244:9::9')) }]
  const service = aService({ ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints: sets } })
  const states = { services: new Map([['shop/web', service]]), changed: [], isComplete: true }
  const { silentNodes, answers, probed, clock } = world(t, states, { network: dual })
  await clock.advance(100_000)
  t.same([...new Set(probed)].sort(), ['192.168.1.11', '192.168.1.12', 'fd00:7::11', 'fd00:7::12'])
  answers.set('fd00:7::11', 'silent')
  answers.set('192.168.1.12', 'silent')
  await clock.advance(80_000)
  t.same([silentNodes.IPv4.get(), silentNodes.IPv6.get()], [['pi-12'], ['pi-11']])
  answers.clear()
  await clock.advance(20_000)
  t.same([silentNodes.IPv4.get(), silentNodes.IPv6.get()], [[], []])
})

test('a node that never answered by IPv6 is judged by IPv4 for both', async (t) => {
  const sets = [{ ports: [], addresses: [endpointOn('pi-11', 'fd00:10:244:9::9')] }]
  const service = aService({ ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints: sets } })
  const states = { services: new Map([['shop/web', service]]), changed: [], isComplete: true }
  const { silentNodes, answers, clock } = world(t, states, { network: dual })
  answers.set('fd00:7::11', 'silent')
  await clock.advance(200_000)
  t.same([silentNodes.IPv4.get(), silentNodes.IPv6.get()], [[], []], 'a firewall may drop probes of IPv6')
  answers.set('192.168.1.11', 'unreachable')
  await clock.advance(80_000)
  t.same([silentNodes.IPv4.get(), silentNodes.IPv6.get()], [['pi-11'], ['pi-11']])
})

test('the controller judges again when it has been back for the grace period', async (t) => {
  const { silentNodes, answers, link, clock } = world(t, statesOn('pi-11'))
  answers.set('192.168.1.11', 'unreachable')
  await clock.advance(140_000)
  t.same(silentNodes.IPv4.get(), ['pi-11'])
  link.isConnected = true
  await clock.advance(40_000)
  t.same(silentNodes.IPv4.get(), ['pi-11'])
  await clock.advance(60_000)
  t.same(silentNodes.IPv4.get(), [])
})

test('a large fleet is probed in turns of 32 nodes', async (t) => {
  const { probed, clock } = world(t, statesOn(...names))
  while (probed.length === 0) await clock.advance(5_000)
  t.equal(probed.length, 32)
  await clock.advance(20_000)
  t.equal(probed.length, 64)
  t.equal(new Set(probed).size, 39)
})

test('without a network nothing is probed, and no endpoint is left out', async (t) => {
  const { networkMessage, silentNodes, answers, probed, clock } = world(t, statesOn('pi-11'))
  answers.set('192.168.1.11', 'unreachable')
  await clock.advance(140_000)
  networkMessage.set(undefined)
  await clock.settle()
  t.same(silentNodes.IPv4.get(), [])
  const before = probed.length
  await clock.advance(100_000)
  t.equal(probed.length, before)
})

test('an agent that ends does not wait for a probe', async (t) => {
  const { stop, probed, clock } = world(t, statesOn('pi-11'), { hangs: true })
  await clock.advance(60_000)
  t.same(probed, ['192.168.1.11'])
  await stop()
})
