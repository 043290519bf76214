import { test } from 'tap'
import type { NetworkMessage } from '../../api/network/pod-network.ts'
import { liveNetworkLines, readLiveNetwork } from './live-network.ts'
import { type AddressProofs, noProofs } from './probes/proven-network.ts'
import { aService, endpointOn } from './testing/services.ts'

const message: NetworkMessage = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
  nodes: [{ name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.1', segment: 'lan', zone: 'attic' }],
}
const proofs: AddressProofs = {
  used: new Map([['pi-1', '192.168.1.1']]),
  failures: new Map([
    ['pi-2', { why: 'no answer' }],
    ['pi-3', { why: 'other node', node: 'pi-4' }],
  ]),
}

async function piecesOf(...given: Parameters<typeof liveNetworkLines>): Promise<readonly string[]> {
  const pieces: string[] = []
  for await (const piece of liveNetworkLines(...given)) pieces.push(Buffer.from(piece).toString())
  return pieces
}

test('what the agent has is read as it was written', async (t) => {
  const services = [
    aService({ addresses: [endpointOn('pi-1', '10.244.1.5')] }),
    aService({ name: 'db', clusterIPs: [], ipv6: { clusterIPs: ['fd00:10:96::7'], endpoints: [] } }),
  ]
  const known = { message, proofs, silentNodes: { ipv4: ['pi-2'], ipv6: ['pi-2', 'pi-3'] } }
  const [text = '', ...more] = await piecesOf(known, services)
  t.same(more, [])
  t.strictSame(readLiveNetwork(text), { ...known, services })
})

test('a node without a network has none', async (t) => {
  const [text = ''] = await piecesOf({ message: undefined, proofs: noProofs }, [])
  t.strictSame(readLiveNetwork(text), { message: undefined, proofs: noProofs, services: [] })
  const obstacle = { reason: 'OtherAgent', found: 'Another agent', remedy: 'Stop it' } as const
  const [off = ''] = await piecesOf({ message: undefined, obstacle, proofs: noProofs }, [])
  t.same(readLiveNetwork(off), { message: undefined, obstacle, proofs: noProofs, services: [] })
})

test('the Services of a large fleet are written in pieces', async (t) => {
  const services = Array.from({ length: 2_000 }, (_, index) => aService({ name: `web-${index}` }))
  const pieces = await piecesOf({ message, proofs }, services)
  t.ok(pieces.length > 5, `${pieces.length} pieces`)
  t.ok(pieces.every(({ length }) => length < 80_000))
  t.equal(readLiveNetwork(pieces.join('')).services.length, 2_000)
})

test('an answer that does not come from an agent is refused, and a Service that is not valid is left out', async (t) => {
  const head = '{"proven":{},"failures":{}}'
  for (const text of ['', '<html>', '{}', `${head}\n{"name"`, '{"proven":{},"failures":{"pi-2":{"why":"because"}}}'])
    t.throws(() => readLiveNetwork(text), { message: /^The answer of the agent is not valid: / }, text)
  const lines = [head, '{"name":"web"}', JSON.stringify(aService({}))]
  t.match(readLiveNetwork(lines.join('\n')).services, [{ name: 'web', namespace: 'shop' }])
  t.equal(readLiveNetwork(lines.join('\n')).services.length, 1)
})
