import { type Test, test } from 'tap'
import type { NetworkMessage, NetworkPeer } from '../../../api/network/pod-network.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueNode } from '../../../certs/issue.ts'
import { temporaryFolder } from '../../../certs/testing/openssl.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ProbePeer } from './address-prober.ts'
import type { PeerAddresses } from './peer-addresses.ts'
import { probeManager } from './probe-manager.ts'
import { datagramBytes } from './probe-message.ts'
import { type AddressProofs, noProofs } from './proven-network.ts'

const peer = (number: number, more: Partial<NetworkPeer> = {}): NetworkPeer => ({
  name: `pi-${number}`,
  podCIDR: `10.244.${number}.0/24`,
  address: `192.168.1.${number}`,
  segment: 'lan',
  probePort: 8473,
  ...more,
})
const message = (...nodes: readonly NetworkPeer[]): NetworkMessage => ({
  ...{ epoch: 'e', version: 1, clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', clusterDomain: 'c' },
  nodes,
})

type Machine = {
  mac: string
  readonly addresses: Set<string>
  receive?: (message: Buffer, from: ProbePeer) => void
}

/** A link with machines on it, all of which run the loop. */
async function link(t: Test) {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  const authority = await openAuthority(folder.path, nowMs)
  const clock = fakeClock()
  const machines: Machine[] = []
  const sent: Buffer[] = []
  const holder = (address: string) => machines.find(({ addresses }) => addresses.has(address))

  const plug = async (number: number, first: NetworkMessage | undefined, saved: PeerAddresses = new Map()) => {
    const name = `pi-${number}`
    const machine: Machine = { mac: `02:00:00:00:00:0${number}`, addresses: new Set([`192.168.1.${number}`]) }
    machines.push(machine)
    const world = {
      ...machine,
      machine,
      links: 'eth0',
      isTaken: false,
      saved,
      saves: 0,
      networkMessage: cell(first),
      addressProofs: cell<AddressProofs>(noProofs),
      log: quietLog(t),
      used: () => [...world.addressProofs.get().used.keys()].sort(),
    }
    const credentials = { ca: authority.certificate, ...issueNode(authority, { nodeName: name, nowMs }) }
    const manager = probeManager({
      nodeName: name,
      host: {
        async open(port, receive) {
          if (world.isTaken) throw new Error(`Cannot listen on UDP port ${port}`)
          machine.receive = receive
          return {
            ended: new Promise(() => undefined),
            async send(bytes, { address }) {
              sent.push(bytes)
              const [from = ''] = machine.addresses
              holder(address)?.receive?.(bytes, { address: from, port: 8473 })
            },
            async close() {
              delete machine.receive
            },
          }
        },
        isOwn: async (address) => machine.addresses.has(address),
        neighbours: async () =>
          new Map(machines.flatMap(({ mac, addresses }) => [...addresses].map((address) => [address, mac]))),
        links: async () => world.links,
      },
      credentials: () => credentials,
      checkpoint: {
        load: async () => world.saved,
        async save(records) {
          world.saves++
          world.saved = records
        },
      },
      reads: world,
      writes: world,
      clock,
      random: () => 0.5,
      log: world.log,
    })
    await manager.load()
    const end = new AbortController()
    const ended = manager.run(end.signal)
    const stop = async () => {
      end.abort()
      await ended
    }
    t.teardown(stop)
    return { ...world, world, stop }
  }
  return { clock, plug, machines, sent }
}

test('two nodes prove their addresses to each other when they have the message, and not again', async (t) => {
  const { clock, plug, sent } = await link(t)
  const one = await plug(1, message(peer(1), peer(2)))
  const two = await plug(2, undefined)
  t.same(one.used(), [], 'not before it is proven')
  await clock.advance(5_000)
  t.same(one.used(), [], 'the other one has no network yet')
  two.networkMessage.set(message(peer(1), peer(2)))
  await clock.advance(1_500)
  t.same([one.used(), two.used()], [['pi-2'], ['pi-1']])
  t.same(one.log.messages('warn'), ['The address of a node is not proven: its pods have no route'])
  t.same(one.log.messages('info'), ['The address of a node is proven'])
  t.ok(sent.every(({ length }) => length <= datagramBytes))
  const count = sent.length
  await clock.advance(10 * 60_000)
  t.equal(sent.length, count, 'nothing is sent while nothing changes')
  one.world.links = 'eth0 again'
  await clock.advance(6_000)
  t.equal(sent.length, count + 2, 'a challenge and its proof after a change of the links')
})

test('another machine that takes the address of a node gets its pods no route', async (t) => {
  const { clock, plug, machines } = await link(t)
  const one = await plug(1, message(peer(1), peer(2)))
  const two = await plug(2, message(peer(1), peer(2)))
  await clock.advance(2_000)
  t.same(one.used(), ['pi-2'])
  two.machine.addresses.clear()
  await clock.advance(60_000)
  t.same(one.used(), ['pi-2'], 'a node that is off keeps its route')
  machines.push({ mac: '02:00:00:00:00:99', addresses: new Set(['192.168.1.2']) })
  await clock.advance(10_000)
  t.same(one.used(), [])
  t.same(one.addressProofs.get().failures.get('pi-2'), { why: 'no answer' })
})

test('a node that has the address of another one now is named, and the route follows the message', async (t) => {
  const { clock, plug } = await link(t)
  const all = [peer(1), peer(2), peer(3)]
  const one = await plug(1, message(...all))
  const two = await plug(2, message(...all))
  const three = await plug(3, message(...all))
  await clock.advance(2_000)
  t.same(one.used(), ['pi-2', 'pi-3'])
  two.machine.addresses.clear()
  two.machine.addresses.add('192.168.1.22')
  three.machine.addresses.clear()
  three.machine.addresses.add('192.168.1.2')
  await clock.advance(10_000)
  t.same(one.addressProofs.get().failures.get('pi-2'), { why: 'other node', node: 'pi-3' })
  const next = message(peer(1), peer(2, { address: '192.168.1.22' }), peer(3, { address: '192.168.1.2' }))
  for (const { networkMessage } of [one, two, three]) networkMessage.set(next)
  await clock.advance(2_000)
  t.same(one.addressProofs.get(), {
    used: new Map([
      ['pi-2', '192.168.1.22'],
      ['pi-3', '192.168.1.2'],
    ]),
    failures: new Map(),
  })
})

test('what was proven before a restart is used at once, with every other machine off', async (t) => {
  const { clock, plug } = await link(t)
  const both = message(peer(1), peer(2))
  const one = await plug(1, both)
  const two = await plug(2, both)
  await clock.advance(2_000)
  await one.stop()
  t.match([...one.world.saved], [['pi-2', { address: '192.168.1.2', state: 'proven', mac: '02:00:00:00:00:02' }]])
  t.equal(one.world.saves, 1)
  two.machine.addresses.clear()
  const again = await plug(1, both, one.world.saved)
  t.same(again.used(), ['pi-2'], 'before the loop runs')
  await clock.advance(60_000)
  t.same(again.used(), ['pi-2'])
  t.equal(again.world.saves, 0, 'the card is not written while nothing changes')
})

test('an agent of an earlier version is not probed, and a port that another program has costs no route', async (t) => {
  const { clock, plug, sent } = await link(t)
  const one = await plug(1, message(peer(1), older(2)))
  t.same(one.used(), ['pi-2'])
  await clock.advance(60_000)
  t.equal(sent.length, 0)
  one.world.isTaken = true
  one.networkMessage.set(undefined)
  await clock.advance(0)
  one.networkMessage.set(message(peer(1), peer(3)))
  t.same(one.used(), [])
  await clock.advance(1_000)
  t.same(one.used(), ['pi-3'])
  t.same(one.log.messages('warn'), ['Addresses of nodes are used without a proof'])
  one.world.isTaken = false
  await clock.advance(31_000)
  t.same(one.used(), [], 'the port is free again: pi-3 is not there')
})

test('an address that an agent of an earlier version used is used after each restart, without an answer', async (t) => {
  const { clock, plug } = await link(t)
  const one = await plug(1, message(peer(1), older(2)))
  one.networkMessage.set(message(peer(1), peer(2)))
  await clock.advance(60_000)
  await one.stop()
  const again = await plug(1, message(peer(1), peer(2)), one.world.saved)
  t.same(again.used(), ['pi-2'], 'before the loop runs')
  await clock.advance(10 * 60_000)
  t.same(again.used(), ['pi-2'])
})

function older(number: number): NetworkPeer {
  const { probePort: _, ...rest } = peer(number)
  return rest
}

test('a stranger gets few answers, and a flood of challenges few signatures', async (t) => {
  const { clock, plug, sent } = await link(t)
  const one = await plug(1, message(peer(1), peer(2)))
  await clock.advance(1_000)
  const challenge = sent.find(({ length }) => length === datagramBytes)
  if (challenge === undefined) return t.fail('no challenge was sent')
  const forOne = Buffer.from(challenge)
  forOne.write('192.168.1.1', 29, 'latin1')
  const before = sent.length
  for (let count = 0; count < 200; count++) one.machine.receive?.(forOne, { address: `10.0.0.${count}`, port: 1 })
  await clock.settle()
  t.equal(sent.length - before, 20)
  for (let count = 0; count < 200; count++) one.machine.receive?.(forOne, { address: '192.168.1.2', port: 8473 })
  await clock.settle()
  t.ok(sent.length - before <= 30, `${sent.length - before}`)
  const late = sent.length
  one.machine.receive?.(challenge, { address: '192.168.1.2', port: 8473 })
  await clock.settle()
  t.equal(sent.length, late, 'no proof for an address of another machine')
})

test('a machine that has the address of a node and answers now so, now not, is logged once a minute', async (t) => {
  const { clock, plug, machines, sent } = await link(t)
  const one = await plug(1, message(peer(1), peer(2)))
  const impostor: Machine = { mac: '02:00:00:00:00:99', addresses: new Set(['192.168.1.2']) }
  let received = 0
  impostor.receive = (bytes) => {
    // A proof with a signature and a certificate of 0 bytes.
    const forged = Buffer.concat([Buffer.from('BRp1'), bytes.subarray(4, 28), Buffer.alloc(4)])
    if (received++ % 2 === 0) one.machine.receive?.(forged, { address: '192.168.1.2', port: 8473 })
  }
  machines.push(impostor)
  for (let second = 0; second < 130; second++) {
    const [challenge] = sent
    if (challenge !== undefined) one.machine.receive?.(challenge, { address: '192.168.1.2', port: 8473 })
    await clock.advance(1_000)
  }
  t.ok(received > 2, `${received} probes`)
  t.same(one.used(), [])
  const lines = one.log.messages('warn')
  t.ok(lines.length >= 2 && lines.length <= 3, `${lines.length} lines`)
})
