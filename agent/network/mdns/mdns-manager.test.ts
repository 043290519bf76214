import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import { dnsQuestion, seenAnswer } from '../testing/dns-client.ts'
import { aService } from '../testing/services.ts'
import { mdnsManager } from './mdns-manager.ts'
import { readMdnsMessage, writeResponse } from './mdns-message.ts'
import type { MdnsLink, MdnsSettings } from './mdns-names.ts'
import type { MdnsPeer } from './mdns-publisher.ts'

const eth0 = { device: 'eth0', address: '192.168.1.5', range: '192.168.1.0/24' }
const client = { address: '192.168.1.77', port: 5353 }
const balancer = '192.168.1.240'

function world(t: Test, settings: MdnsSettings | undefined, ...expected: readonly string[]) {
  const clock = fakeClock()
  const serviceStates = cell<ServiceStates | undefined>(undefined)
  const networkMessage = cell<NetworkMessage | undefined>(undefined)
  const mdnsRules = cell<RuleSet | undefined>(undefined)
  const machine = { links: [eth0] as readonly MdnsLink[], addresses: new Set([eth0.address]), isPortTaken: false }
  const sent: { readonly message: Buffer; readonly to: string }[] = []
  const open = new Map<string, { receive(message: Buffer, from: MdnsPeer): void; fail(error: Error): void }>()
  const { run } = mdnsManager(
    {
      nodeName: 'pi-1',
      nodeAddress: () => '192.168.1.5',
      host: {
        links: () => machine.links,
        addresses: () => machine.addresses,
        async open({ address }, receive) {
          if (machine.isPortTaken) throw new Error('The port is taken')
          let fail: (error: Error) => void = () => {}
          const ended = new Promise<Error>((resolve) => {
            fail = resolve
          })
          open.set(address, { receive, fail })
          return {
            ended,
            multicast: async (message) => void sent.push({ message, to: 'all' }),
            unicast: async (message, to) => void sent.push({ message, to: `${to.address}:${to.port}` }),
            close: async () => void open.delete(address),
          }
        },
      },
      reads: { serviceStates, networkMessage },
      writes: { mdnsRules },
      clock,
      random: () => 0,
      log: quietLog(t, ...expected),
    },
    settings,
  )
  const stop = new AbortController()
  const ended = run(stop.signal)
  const end = async () => {
    stop.abort()
    await ended
  }
  t.teardown(end)
  /** What was sent since the last call: kind, names and times to live, and receiver. */
  const taken = () =>
    sent.splice(0).map(({ message, to }) => {
      const read = readMdnsMessage(message)
      if (read?.isResponse !== true) return `probe ${read?.questions.map(({ name }) => name).join()}`
      const answers = seenAnswer(message).answers.map(({ name, ttl, data }) => `${name} ${ttl} ${data}`)
      return `${answers.join()} to ${to}`
    })
  const receive = (message: Buffer, from: MdnsPeer = client) => open.get(eth0.address)?.receive(message, from)
  return { clock, serviceStates, networkMessage, mdnsRules, machine, open, taken, receive, end }
}

const settings = { interfaces: undefined, services: false }
const here = 'pi-1.local 120 192.168.1.5'

test('a name is probed, announced, answered and withdrawn at the end', async (t) => {
  const { clock, taken, receive, end } = world(t, settings)
  await clock.advance(3_000)
  t.same(taken(), [...Array(3).fill('probe pi-1.local'), ...Array(2).fill(`${here} to all`)])
  receive(dnsQuestion('pi-1.local', 'A'))
  t.same(taken(), [`${here} to all`])
  receive(dnsQuestion('pi-1.local', 'A', { id: 5 }), { ...client, port: 40_000 })
  t.same(taken(), ['pi-1.local 10 192.168.1.5 to 192.168.1.77:40000'])
  await end()
  t.same(taken(), ['pi-1.local 0 192.168.1.5 to all'])
})

test('without the setting no socket is opened', async (t) => {
  const { clock, open } = world(t, undefined)
  await clock.advance(60_000)
  t.equal(open.size, 0)
})

test('what comes from another link, or from another port as an answer, is ignored', async (t) => {
  const { clock, taken, receive } = world(t, settings)
  await clock.advance(5_000)
  taken()
  receive(dnsQuestion('pi-1.local', 'A'), { address: '10.9.9.9', port: 5353 })
  receive(writeResponse([{ name: 'pi-1.local', address: '192.168.1.66' }]), { ...client, port: 40_000 })
  receive(Buffer.from('no message'))
  await clock.advance(1_000)
  t.same(taken(), [])
})

test('a machine that has the name keeps it, which is logged', async (t) => {
  const { clock, taken, receive } = world(t, settings, 'Another machine has a name of this node on the link')
  await clock.advance(100)
  receive(writeResponse([{ name: 'pi-1.local', address: client.address }]))
  await clock.advance(5_000)
  t.same(taken(), ['probe pi-1.local'])
  receive(dnsQuestion('pi-1.local', 'A'))
  t.same(taken(), [])
})

test('a flood from one machine is not read, and another one gets its answer meanwhile', async (t) => {
  const { clock, taken, receive } = world(t, settings)
  await clock.advance(5_000)
  taken()
  for (let index = 0; index < 1_000; index++) receive(dnsQuestion('pi-1.local', 'A'), { ...client, port: 40_000 })
  t.equal(taken().length, 100)
  receive(dnsQuestion('pi-1.local', 'A'), { address: '192.168.1.78', port: 40_000 })
  t.equal(taken().length, 1)
  for (let index = 0; index < 1_000; index++) {
    receive(dnsQuestion('pi-1.local', 'A'), { address: `192.168.1.${80 + (index % 100)}`, port: 40_000 })
  }
  t.equal(taken().length, 299, 'nor one from many')
})

test('the address of a load balancer is published while this machine has it', async (t) => {
  const { clock, serviceStates, machine, taken } = world(t, { ...settings, services: true })
  await clock.advance(5_000)
  taken()
  const service = aService({ type: 'LoadBalancer', loadBalancerNode: 'pi-1', loadBalancerIPs: [balancer] })
  machine.addresses = new Set([eth0.address, balancer])
  serviceStates.set({ services: new Map([['shop/web', service]]), changed: [], isComplete: true })
  await clock.advance(3_000)
  t.same(taken().slice(-1), [`web.shop.local 120 ${balancer} to all`])
  machine.addresses = new Set([eth0.address])
  await clock.advance(10_000)
  t.same(taken(), [`web.shop.local 0 ${balancer} to all`])
})

test('a link that comes later, or whose socket fails, is used', async (t) => {
  const { clock, machine, open, taken } = world(t, settings)
  machine.links = []
  await clock.advance(20_000)
  t.equal(open.size, 0)
  machine.links = [eth0]
  await clock.advance(20_000)
  t.equal(open.size, 1)
  taken()
  open.get(eth0.address)?.fail(new Error('The network is down'))
  await clock.advance(3_000)
  t.equal(open.size, 1)
  t.same(taken().slice(-1), [`${here} to all`])
})

test('a port that another program has for itself is tried again, and logged once', async (t) => {
  const { clock, machine, open } = world(t, settings, 'Names are not published on a link')
  machine.links = []
  machine.isPortTaken = true
  await clock.advance(10_000)
  machine.links = [eth0]
  await clock.advance(30_000)
  t.equal(open.size, 0)
  machine.isPortTaken = false
  await clock.advance(10_000)
  t.equal(open.size, 1)
})

test('packets of pods are kept away where the fleet has a network and names are published', async (t) => {
  const message = {
    ...{
      epoch: 'e',
      version: 1,
      clusterCIDR: '10.244.0.0/16',
      serviceCIDR: '10.96.0.0/12',
      clusterDomain: 'c',
      nodes: [],
    },
  }
  const { clock, networkMessage, mdnsRules } = world(t, settings)
  await clock.settle()
  t.equal(mdnsRules.get(), undefined)
  networkMessage.set(message)
  t.match(mdnsRules.get()?.chains.get('multicast-input')?.rules, [
    /^udp dport 5353 ip saddr 10.244.0.0\/16 drop$/,
    /fib/,
  ])
  networkMessage.set(undefined)
  t.equal(mdnsRules.get(), undefined)
})
