import { test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { aService, endpointOn } from '../testing/services.ts'
import {
  attachment,
  type NodeAnswer,
  nodesInTurn,
  nodesToProbe,
  type ProbeRecords,
  recordAnswers,
  silentByIPv6,
  silentNodes,
} from './silent-nodes.ts'

const after = (...rounds: readonly NodeAnswer[]): ProbeRecords =>
  rounds.reduce<ProbeRecords>((records, answer) => recordAnswers(records, new Map([['pi-2', answer]])), new Map())

test('a node is alone after 50 s without a connection, and no longer after 50 s with one', async (t) => {
  const start = { isConnected: false, sinceMs: 0, isAlone: false }
  t.equal(attachment(start, false, 49_999).isAlone, false)
  const alone = attachment(start, false, 50_000)
  t.equal(alone.isAlone, true)
  const back = attachment(alone, true, 60_000)
  t.same(back, { isConnected: true, sinceMs: 60_000, isAlone: true })
  t.equal(attachment(back, true, 109_999).isAlone, true)
  t.equal(attachment(back, true, 110_000).isAlone, false)
})

test('a connection that is lost for less than 50 s changes nothing', async (t) => {
  const connected = { isConnected: true, sinceMs: 0, isAlone: false }
  const lost = attachment(connected, false, 100_000)
  const again = attachment(lost, true, 149_000)
  t.equal(attachment(again, true, 200_000).isAlone, false)
  t.equal(attachment(lost, false, 149_999).isAlone, false)
})

test('a node is silent after three missed probes, and not after one answer', async (t) => {
  t.same(silentNodes(after('answers', 'silent', 'silent')), [])
  t.same(silentNodes(after('answers', 'silent', 'unreachable', 'silent')), ['pi-2'])
  t.same(silentNodes(after('answers', 'silent', 'silent', 'answers', 'silent')), [])
  t.same(silentNodes(after('answers', 'silent', 'silent', 'silent', 'silent', 'answers')), [])
})

test('a node that never answered is silent only where the link has no such machine', async (t) => {
  t.same(silentNodes(after('silent', 'silent', 'silent', 'silent')), [])
  t.same(silentNodes(after('unreachable', 'unreachable', 'unreachable')), ['pi-2'])
})

test('a round without an answer about a node leaves it as it was', async (t) => {
  const silent = after('unreachable', 'unreachable', 'unreachable')
  t.same(silentNodes(recordAnswers(silent, new Map([['pi-3', 'answers']]))), ['pi-2'])
})

const message: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [
    { name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan' },
    { name: 'pi-3', podCIDR: '10.244.3.0/24', address: '192.168.9.3', segment: 'yard' },
    { name: 'pi-2', podCIDR: '10.244.2.0/24', address: '192.168.1.2', segment: 'lan' },
    { name: 'pi-4', podCIDR: '10.244.4.0/24', address: '192.168.1.4', segment: 'lan' },
  ],
}
const services = new Map([
  [
    'shop/web',
    aService({ addresses: ['pi-1', 'pi-2', 'pi-3'].map((node, index) => endpointOn(node, `10.244.${index + 1}.5`)) }),
  ],
])

test('other nodes with endpoints are probed, by WireGuard at their end of the tunnel', async (t) => {
  t.same(nodesToProbe(message, services, 'pi-1'), [
    { name: 'pi-2', address: '192.168.1.2' },
    { name: 'pi-3', address: '192.168.9.3' },
  ])
  t.same(nodesToProbe({ ...message, wireguard: { port: 51_871 } }, services, 'pi-1'), [
    { name: 'pi-2', address: '192.168.1.2' },
    { name: 'pi-3', address: '10.244.3.0' },
  ])
})

test('a node with IPv6 endpoints only is probed at its IPv4 address', async (t) => {
  const endpoints = [{ ports: [], addresses: [endpointOn('pi-4', 'fd00:10:244:4::5')] }]
  const alone = new Map([['shop/web', aService({ clusterIPs: [], ipv6: { clusterIPs: [], endpoints } })]])
  t.same(nodesToProbe(message, alone, 'pi-1'), [{ name: 'pi-4', address: '192.168.1.4' }])
})

const dual: NetworkMessage = {
  ...message,
  ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' },
  nodes: message.nodes.map((node, index) => ({
    ...node,
    ipv6: {
      podCIDR: `fd00:10:244:${index + 1}::/64`,
      ...(node.name !== 'pi-4' && { address: `fd00:7::${index + 1}` }),
    },
  })),
}

test('a node with IPv6 endpoints is probed by IPv6, too, behind a tunnel at its end of it', async (t) => {
  const onAll = ['pi-1', 'pi-2', 'pi-3', 'pi-4'].map((node) => endpointOn(node, 'fd00:10:244:9::5'))
  const ipv6 = { clusterIPs: ['fd00:10:96::7'], endpoints: [{ ports: [], addresses: onAll }] }
  const mixed = new Map([...services, ['shop/db', aService({ name: 'db', ipv6 })]])
  t.same(nodesToProbe(dual, mixed, 'pi-1'), [
    { name: 'pi-2', address: '192.168.1.2', ipv6: 'fd00:7::3' },
    { name: 'pi-3', address: '192.168.9.3', ipv6: 'fd00:10:244:2::' },
    { name: 'pi-4', address: '192.168.1.4' },
  ])
  t.same(
    nodesToProbe(dual, services, 'pi-1').map(({ ipv6: address }) => address),
    [undefined, undefined],
  )
  t.notOk(nodesToProbe(message, mixed, 'pi-1').some(({ ipv6: address }) => address !== undefined))
})

test('IPv6 endpoints are judged by IPv6 where the node has answered by it, else by IPv4', async (t) => {
  const lost = after('answers', 'silent', 'silent', 'silent')
  const well = after('answers')
  const closed = after('silent', 'silent', 'silent', 'silent')
  t.same(silentByIPv6(well, lost), ['pi-2'])
  t.same(silentByIPv6(lost, well), [])
  t.same(silentByIPv6(lost, closed), ['pi-2'])
  t.same(silentByIPv6(well, closed), [])
})

test('nodes take turns', async (t) => {
  const nodes = ['a', 'b', 'c'].map((name) => ({ name, address: '192.168.1.2' }))
  const turn = (last: string | undefined, most: number) => nodesInTurn(nodes, last, most).map(({ name }) => name)
  t.same(turn(undefined, 2), ['a', 'b'])
  t.same(turn('b', 2), ['c', 'a'])
  t.same(turn('c', 2), ['a', 'b'])
  t.same(turn('bb', 5), ['c', 'a', 'b'], 'b is gone, and none twice')
})
