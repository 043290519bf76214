import { test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { peerNetworkOf } from '../peers/peer-network.ts'
import type { PeerAddress, Unproven } from './peer-addresses.ts'
import {
  type AddressProofs,
  areSameProofs,
  noProofs,
  proofsOf,
  provenNetworkOf,
  unprovenAddresses,
  unprovenNodes,
} from './proven-network.ts'

const peer = (number: number, more: Partial<NetworkPeer> = { probePort: 8473 }): NetworkPeer => ({
  ...{ name: `pi-${number}`, podCIDR: `10.244.${number}.0/24`, address: `192.0.2.${number}`, segment: 'lan' },
  ...more,
})
const message: NetworkMessage = {
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'c' },
  nodes: [peer(1), peer(2), peer(3), peer(4, {})],
}
const used = (...numbers: readonly number[]) =>
  new Map(numbers.map((number) => [`pi-${number}`, `192.0.2.${number}`] as const))
const proofs = (more: Partial<AddressProofs>): AddressProofs => ({ ...noProofs, ...more })

test('addresses that were proven, or of an earlier version, are used; the others have their reason', async (t) => {
  const record = (state: PeerAddress['state'], because?: Unproven): PeerAddress => ({
    ...{ address: '192.0.2.2', state, failures: 0, dueMs: 0, ...(because && { because }) },
  })
  const silent = { why: 'no answer' } as const
  const found = proofsOf(
    new Map([
      ['proven', record('proven', silent)],
      ['assumed', record('assumed')],
      ['silent', record('unproven', silent)],
      ['new', record('unproven')],
    ]),
  )
  t.same(
    [...found.used],
    [
      ['proven', '192.0.2.2'],
      ['assumed', '192.0.2.2'],
    ],
  )
  t.same([...found.failures], [['silent', silent]])
  t.same(proofsOf(new Map()), noProofs)
  t.ok(areSameProofs(found, { used: new Map(found.used), failures: new Map(found.failures) }))
  t.notOk(areSameProofs(found, noProofs))
})

test('a node has to prove the address of the message, unless its agent is of an earlier version', async (t) => {
  t.same(unprovenNodes(message, 'pi-1', noProofs), ['pi-2', 'pi-3'])
  t.same(unprovenNodes(message, 'pi-1', proofs({ used: used(2, 3) })), [])
  t.same(unprovenNodes(message, 'pi-1', proofs({ used: new Map([['pi-2', '192.0.2.99']]) })), ['pi-2', 'pi-3'])
  t.same(unprovenNodes(message, 'pi-9', noProofs), [], 'a node that is not in the message')
})

test('nodes with an unproven address have no routes, and packets to their pods stay on this node', async (t) => {
  const whole = provenNetworkOf(message, 'pi-1', proofs({ used: used(2, 3) }))
  t.same(whole, peerNetworkOf(message, 'pi-1'))
  t.equal(whole?.isGuarded, false)
  const part = provenNetworkOf(message, 'pi-1', proofs({ used: used(2) }))
  t.equal(part?.isGuarded, true)
  const gateways = part?.routes.map(({ gateway }) => gateway)
  t.same(gateways, ['192.0.2.2', '192.0.2.4'])
  t.same(part?.nodeAddresses, ['192.0.2.1', '192.0.2.2', '192.0.2.4'])
  t.equal(provenNetworkOf(message, 'pi-9', noProofs), undefined)
  const ipv6 = { clusterCIDR: '2001:db8:244::/56', serviceCIDR: '2001:db8:96::/112' }
  const nodes = message.nodes.map((one, index) => ({ ...one, ipv6: { podCIDR: `2001:db8:244:${index + 1}::/64` } }))
  for (const hasIPv6 of [true, false])
    t.same(
      provenNetworkOf({ ...message, ipv6, nodes }, 'pi-1', proofs({ used: used(2, 3) }), hasIPv6),
      peerNetworkOf({ ...message, ipv6, nodes }, 'pi-1', hasIPv6),
    )
})

test('each address that failed its probe is named with its reason', async (t) => {
  const failures = (failure: Unproven) => proofs({ failures: new Map([['pi-2', failure]]) })
  const text = (failure: Unproven) => unprovenAddresses(message, 'pi-1', failures(failure))
  const start = 'no route to the pods of pi-2, whose address 192.0.2.2 is not proven: '
  t.same(text({ why: 'no answer' }), [
    `${start}its agent has not answered at UDP port 8473; start it, open the port, or find the machine that has the address`,
  ])
  t.same(text({ why: 'no certificate' }), [
    `${start}what answers there has no certificate of the fleet; find the machine that has the address`,
  ])
  t.same(text({ why: 'other node', node: 'pi-3' }), [
    `${start}node pi-3 answers there; the fleet follows when the other one has reported its address`,
  ])
  const both = { ...failures({ why: 'no answer' }), used: used(2) }
  t.same(unprovenAddresses(message, 'pi-1', both), [], 'it is used meanwhile')
  t.same(unprovenAddresses(message, 'pi-1', noProofs), [], 'not probed yet')
  const of4 = proofs({ failures: new Map([['pi-4', { why: 'no answer' }]]) })
  t.same(unprovenAddresses(message, 'pi-1', of4), [], 'an earlier version')
})
