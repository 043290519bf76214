import { test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import {
  afterChallenge,
  afterNeighbours,
  afterOutcome,
  afterSending,
  dueProbes,
  type PeerAddress,
  type PeerAddresses,
  peersToProve,
  probedAgain,
  recordsFor,
} from './peer-addresses.ts'

const peer = (number: number, more: Partial<NetworkPeer> = { probePort: 8473 }): NetworkPeer => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment: 'lan',
  ...more,
})
const message = (nodes: readonly NetworkPeer[], more: Partial<NetworkMessage> = {}): NetworkMessage => ({
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'c' },
  nodes,
  ...more,
})
const never = Number.POSITIVE_INFINITY
const at = (nowMs: number, random = 1) => ({ nowMs, random: () => random })
const answered = (nowMs: number, mac?: string) => ({ ...at(nowMs), mac })
const nothing: PeerAddresses = new Map()
const proven = (more: Partial<PeerAddress> = {}): PeerAddress => ({
  ...{ address: '192.168.1.2', state: 'proven', mac: '02:00:00:00:00:02', failures: 0, dueMs: never },
  ...more,
})
const silent = { why: 'no answer' } as const

test('the addresses of other nodes are probed, those behind WireGuard and of this machine are not', async (t) => {
  const nodes = [peer(1), peer(2), peer(3, { segment: 'attic' }), peer(4, { address: '192.168.1.1' })]
  const names = (more: Partial<NetworkMessage>) => peersToProve(message(nodes, more), 'pi-1').map(({ name }) => name)
  t.same(names({}), ['pi-2', 'pi-3'])
  t.same(names({ wireguard: { port: 51_871 } }), ['pi-2'])
  t.same(peersToProve(message(nodes), 'pi-9'), [], 'a node that is not in the message has no network')
})

test('a new address is not used before it is proven; that of an earlier version is used at once', async (t) => {
  const records = recordsFor(nothing, [peer(2), peer(3, {})], at(1_000))
  t.match(records.get('pi-2'), { state: 'unproven', dueMs: 1_010 })
  t.match(records.get('pi-3'), { state: 'assumed', dueMs: never })
  const after = afterOutcome(
    { address: '192.168.1.2', state: 'unproven', failures: 0, dueMs: 0 },
    { why: 'proven' },
    answered(0, 'aa'),
  )
  t.same(after, { address: '192.168.1.2', state: 'proven', mac: 'aa', failures: 0, dueMs: never })
})

test('a proof holds for its address only, and outlives messages about other nodes', async (t) => {
  const known = new Map([['pi-2', proven()]])
  t.same(recordsFor(known, [peer(2), peer(3)], at(0)).get('pi-2'), proven())
  t.match(recordsFor(known, [peer(2, { probePort: 8473, address: '192.168.1.9' })], at(0)).get('pi-2'), {
    address: '192.168.1.9',
    state: 'unproven',
  })
  t.equal(recordsFor(known, [peer(3)], at(0)).has('pi-2'), false)
})

test('an address in use stays in use when its agent is upgraded, whether a firewall drops probes or not', async (t) => {
  let records = recordsFor(nothing, [peer(2, {})], at(0))
  records = recordsFor(records, [peer(2)], at(0))
  t.match(records.get('pi-2'), { state: 'assumed', dueMs: 5 })
  let record = records.get('pi-2')
  for (let failures = 0; record !== undefined && record.dueMs !== never; failures++) {
    t.ok(failures < 5, 'it is not probed for ever')
    record = afterOutcome({ ...record, dueMs: never }, silent, answered(record.dueMs))
  }
  t.match(record, { state: 'assumed', failures: 3 })
  const moved = recordsFor(
    new Map(record && [['pi-2', record]]),
    [peer(2, { probePort: 8473, address: '192.168.1.9' })],
    at(0),
  )
  t.match(
    moved.get('pi-2'),
    { address: '192.168.1.9', state: 'assumed', dueMs: 5 },
    'its next address is probed, and used',
  )
  t.same(recordsFor(new Map(record && [['pi-2', record]]), [peer(2)], at(9_000)).get('pi-2'), record)
})

test('a proven address stays in use while its node is silent', async (t) => {
  const again = probedAgain(new Map([['pi-2', proven()]]), new Set(['pi-2']), at(0)).get('pi-2') ?? proven()
  t.match(again, { state: 'proven', dueMs: 60 })
  let record = again
  for (let count = 0; count < 3; count++) record = afterOutcome({ ...record, dueMs: never }, silent, answered(0))
  t.match(record, { state: 'proven', failures: 3, dueMs: never })
  t.match(
    afterOutcome(record, { why: 'no certificate' }, answered(0)),
    { state: 'proven' },
    'nor for a stranger that answers',
  )
})

test('a proven address that another node proves is given up at once', async (t) => {
  const after = afterOutcome(proven(), { why: 'other node', node: 'pi-3' }, answered(0))
  t.match(after, { state: 'unproven', dueMs: 1_000, because: { why: 'other node', node: 'pi-3' } })
})

test('a proven address that another machine has is given up after two probes without a proof', async (t) => {
  const others = new Map([['192.168.1.2', '02:00:00:00:00:99']])
  const doubted = afterNeighbours(new Map([['pi-2', proven()]]), others, 500)
  t.match(doubted.get('pi-2'), { state: 'proven', isDoubted: true, dueMs: 500 })
  t.equal(afterNeighbours(doubted, others, 900), doubted, 'it is probed once for it')
  const sent = afterSending(doubted, new Set(['pi-2'])).get('pi-2') ?? proven()
  const once = afterOutcome(sent, silent, answered(1_500))
  t.match(once, { state: 'proven', dueMs: 2_500 })
  t.match(afterOutcome(once, silent, answered(3_000)), { state: 'unproven', because: silent })
  const other = afterOutcome(once, { why: 'proven' }, answered(3_000, '02:00:00:00:00:99'))
  t.same(other, proven({ mac: '02:00:00:00:00:99' }), 'the node has another interface')
  const own = new Map([['192.168.1.2', '02:00:00:00:00:02']])
  t.same(afterNeighbours(doubted, own, 900).get('pi-2'), proven(), 'the machine that has proven it is back')
  t.same(afterNeighbours(new Map([['pi-2', proven()]]), new Map(), 0).get('pi-2'), proven(), 'a machine that is off')
})

test('an address without an answer is probed ever more rarely, and at once when its node sends a challenge', async (t) => {
  let record: PeerAddress = { address: '192.168.1.2', state: 'unproven', failures: 0, dueMs: 0 }
  const waits: number[] = []
  for (let count = 0; count < 11; count++) {
    const nowMs = record.dueMs
    record = afterOutcome({ ...record, dueMs: never }, silent, answered(nowMs))
    waits.push((record.dueMs - nowMs) / 1000)
  }
  t.same(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
  const sent = afterSending(new Map([['pi-2', record]]), new Set(['pi-2']))
  const half = afterOutcome(sent.get('pi-2') ?? record, silent, { ...at(0, 0), mac: undefined })
  t.equal(half.dueMs, 150_000, 'with jitter')
  const records = new Map([['pi-2', record]])
  const nowMs = record.dueMs - 10_000
  const asked = afterChallenge(records, '192.168.1.2', nowMs)
  t.equal(asked.get('pi-2')?.dueMs, nowMs + 1_000)
  t.equal(afterChallenge(asked, '192.168.1.2', nowMs), asked, 'a flood of challenges makes no flood of probes')
  t.equal(afterChallenge(records, '192.168.1.3', nowMs), records)
  const meanwhile = afterChallenge(sent, '192.168.1.2', nowMs).get('pi-2') ?? record
  t.equal(
    afterOutcome(meanwhile, silent, answered(nowMs + 500)).dueMs,
    nowMs + 1_000,
    'also while a probe is under way',
  )
  const used = new Map([['pi-2', proven()]])
  t.equal(afterChallenge(used, '192.168.1.2', nowMs), used)
})

test('the probes of a fleet are spread', async (t) => {
  const peers = Array.from({ length: 1_000 }, (_, index) => peer(index % 250, { probePort: 1, name: `n-${index}` }))
  let turn = 0
  const random = () => turn++ / 1_000
  const fresh = recordsFor(nothing, peers, { nowMs: 0, random })
  const within = (records: PeerAddresses, ms: number) => dueProbes(records, new Set(), ms).now.length
  t.same([within(fresh, 0), within(fresh, 999), within(fresh, 5_000)], [1, 200, 1_000])
  turn = 0
  const again = probedAgain(new Map(peers.map(({ name }) => [name, proven()])), new Set(peers.map((p) => p.name)), {
    nowMs: 0,
    random,
  })
  t.same([within(again, 5_999), within(again, 60_000)], [100, 1_000])
})

test('what is due comes first that waits longest, without what is under way', async (t) => {
  const records = new Map([
    ['a', proven({ dueMs: 30 })],
    ['b', proven({ dueMs: 10 })],
    ['c', proven({ dueMs: 20 })],
    ['d', proven({ dueMs: 90 })],
    ['e', proven()],
  ])
  t.same(dueProbes(records, new Set(['c']), 30), { now: ['b', 'a'], nextMs: 90 })
  t.same(dueProbes(nothing, new Set(), 30), { now: [], nextMs: never })
})
