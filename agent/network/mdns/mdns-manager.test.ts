import { type Test, test } from 'tap'
import type { NetworkMessage } from '../../../api/network/pod-network.ts'
import { byFamily } from '../../../api/text/ip-address.ts'
import { formatIPv6 } from '../../../api/text/ipv6-range.ts'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { ServiceStates } from '../messages/service-states.ts'
import type { RuleSet } from '../rule-set.ts'
import { dnsQuestion, seenAnswer } from '../testing/dns-client.ts'
import { aService } from '../testing/services.ts'
import { mdnsManager } from './mdns-manager.ts'
import { readMdnsMessage, writeResponse, writeWithdrawal } from './mdns-message.ts'
import type { MdnsLink, MdnsSettings } from './mdns-names.ts'
import type { MdnsPeer } from './mdns-publisher.ts'

const eth0 = { device: 'eth0', address: '192.168.1.5', range: '192.168.1.0/24', ipv6: undefined }
const both = { ...eth0, ipv6: { addresses: ['fd00:7::5'], ranges: ['fd00:7::/64'] } }
const linkClient = { address: 'fe80::77%eth0', port: 5353 }
const client = { address: '192.168.1.77', port: 5353 }
const balancer = '192.168.1.240'

/** IPv6 data are in hexadecimal. */
const addressOf = (data: string) => (data.length === 32 ? formatIPv6(BigInt(`0x${data}`)) : data)

const world = (t: Test, settings: MdnsSettings | undefined, ...expected: readonly string[]) =>
  worldWith(t, settings, [eth0], ...expected)

function worldWith(
  t: Test,
  settings: MdnsSettings | undefined,
  links: readonly MdnsLink[],
  ...expected: readonly string[]
) {
  const clock = fakeClock()
  const serviceStates = cell<ServiceStates | undefined>(undefined)
  const networkMessage = cell<NetworkMessage | undefined>(undefined)
  const podLink = cell<string | undefined>(undefined)
  const mdnsRules = byFamily(() => cell<RuleSet | undefined>(undefined))
  const machine = { links, addresses: new Set([eth0.address]), portTaken: '', unread: '' }
  const sent: { readonly message: Buffer; readonly to: string }[] = []
  const open = new Map<string, { receive(message: Buffer, from: MdnsPeer): void; fail(error: Error): void }>()
  const { run } = mdnsManager(
    {
      nodeName: 'pi-1',
      nodeAddress: () => '192.168.1.5',
      host: {
        links() {
          if (machine.unread !== '') throw new Error(machine.unread)
          return machine.links
        },
        addresses: () => machine.addresses,
        async open({ link: { address }, family }, receive) {
          if (machine.portTaken.includes(family)) throw new Error('The port is taken')
          const to = family === 'IPv4' ? 'all' : 'all by IPv6'
          const key = family === 'IPv4' ? address : 'IPv6'
          let fail: (error: Error) => void = () => {}
          const ended = new Promise<Error>((resolve) => {
            fail = resolve
          })
          open.set(key, { receive, fail })
          return {
            ended,
            multicast: async (message) => void sent.push({ message, to }),
            unicast: async (message, to) => void sent.push({ message, to: `${to.address}:${to.port}` }),
            close: async () => void open.delete(key),
          }
        },
      },
      reads: { serviceStates, networkMessage, podLink },
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
      const read = readMdnsMessage(message).message
      if (read?.isResponse !== true) return `probe ${read?.questions.map(({ name }) => name).join()}`
      const answers = seenAnswer(message).answers.map(({ name, ttl, data }) => `${name} ${ttl} ${addressOf(data)}`)
      return `${answers.join()} to ${to}`
    })
  const receive = (message: Buffer, from: MdnsPeer = client) =>
    open.get(from.address.includes(':') ? 'IPv6' : eth0.address)?.receive(message, from)
  return { clock, serviceStates, networkMessage, podLink, mdnsRules, machine, open, taken, receive, end }
}

const settings = { interfaces: undefined, services: false }
const here = 'pi-1.local 120 192.168.1.5'
const response = (address: string) => writeResponse([{ name: 'pi-1.local', addresses: [address], type: 255 }])

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

test('where the addresses of the machine cannot be read for a moment, what is published stays', async (t) => {
  const warning = 'Cannot read the addresses of this machine: published names are not updated'
  const { clock, machine, open, taken, receive } = world(t, settings, warning)
  await clock.advance(15_000)
  machine.unread = 'EMFILE'
  machine.links = []
  await clock.advance(25_000)
  taken()
  receive(dnsQuestion('pi-1.local', 'A'))
  t.same(taken(), [`${here} to all`])
  machine.unread = ''
  await clock.advance(15_000)
  t.equal(open.size, 0, 'then it is as the machine is')
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
  receive(response('192.168.1.66'), { ...client, port: 40_000 })
  receive(Buffer.from('no message'))
  await clock.advance(1_000)
  t.same(taken(), [])
})

test('a machine that has the name keeps it, which is logged', async (t) => {
  const { clock, taken, receive } = world(t, settings, 'Another machine has a name of this node on the link')
  await clock.advance(100)
  receive(response(client.address))
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

test('a message of many names counts as many messages, also where it is malformed', async (t) => {
  const { clock, taken, receive } = world(t, settings)
  await clock.advance(5_000)
  taken()
  const names = Array.from({ length: 100 }, (_, at) => ({
    name: `${'x'.repeat(60)}.${at}.local`,
    addresses: ['1.2.3.4'],
  }))
  const costly = writeWithdrawal(names)
  const asks = (last: number) => receive(dnsQuestion('pi-1.local', 'A'), { address: `192.168.1.${last}`, port: 40_000 })
  for (let count = 0; count < 8; count++) receive(costly.subarray(0, -1), { ...client, port: 40_000 })
  asks(77)
  t.same(taken(), [], 'eight of them take what one machine has')
  await clock.advance(200)
  asks(77)
  t.same(taken(), [], 'what is beyond that is owed')
  asks(78)
  t.equal(taken().length, 1, 'another machine gets its answer')
  for (let count = 0; count < 100; count++) receive(costly, { address: `192.168.1.${80 + count}`, port: 40_000 })
  asks(79)
  t.same(taken(), [], 'those of all machines together are limited, too')
  await clock.advance(1_000)
  asks(79)
  t.equal(taken().length, 1, 'a second later there is an answer')
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
  machine.portTaken = 'IPv4'
  await clock.advance(10_000)
  machine.links = [eth0]
  await clock.advance(30_000)
  t.equal(open.size, 0)
  machine.portTaken = ''
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
  const { clock, networkMessage, podLink, mdnsRules } = world(t, settings)
  await clock.settle()
  t.equal(mdnsRules.IPv4.get(), undefined)
  networkMessage.set(message)
  t.match(mdnsRules.IPv4.get()?.chains.get('multicast-input')?.rules, [
    /^udp dport 5353 ip saddr 10.244.0.0\/16 drop$/,
    /fib/,
  ])
  t.equal(mdnsRules.IPv6.get(), undefined, 'the fleet has no IPv6')
  networkMessage.set({ ...message, ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' } })
  const ofIPv6 = [/^udp dport 5353 ip6 saddr fd00:10:244::\/56 drop$/, /fib/]
  t.match(mdnsRules.IPv6.get()?.chains.get('multicast-input')?.rules, ofIPv6)
  podLink.set('br-1')
  const rules = mdnsRules.IPv6.get()?.chains.get('multicast-input')?.rules
  t.match(rules, ['iifname "br-1" udp dport 5353 drop', ...ofIPv6])
  networkMessage.set(undefined)
  t.same([mdnsRules.IPv4.get(), mdnsRules.IPv6.get()], [undefined, undefined])
})

const ofBoth = 'pi-1.local 120 192.168.1.5,pi-1.local 120 fd00:7::5'

test('a link with IPv6 has its names by the messages of each family', async (t) => {
  const { clock, machine, taken, receive, end } = worldWith(t, settings, [both])
  await clock.advance(3_000)
  const sent = taken()
  t.equal(sent.filter((text) => text === 'probe pi-1.local').length, 6)
  for (const to of ['all', 'all by IPv6']) t.equal(sent.filter((text) => text === `${ofBoth} to ${to}`).length, 2)
  receive(dnsQuestion('pi-1.local', 'AAAA'), linkClient)
  t.same(taken(), ['pi-1.local 120 fd00:7::5 to all by IPv6'], 'the one who asks by IPv6 is answered by it')
  receive(dnsQuestion('pi-1.local', 'AAAA'), client)
  t.same(taken(), ['pi-1.local 120 fd00:7::5 to all'], 'and the one who asks by IPv4, although IPv6 had it just now')
  receive(dnsQuestion('pi-1.local', 'AAAA', { id: 5 }), { ...linkClient, port: 40_000 })
  t.same(taken(), ['pi-1.local 10 fd00:7::5 to fe80::77%eth0:40000'])
  receive(dnsQuestion('pi-1.local', 'AAAA'), { address: 'fd00:8::77', port: 40_000 })
  t.same(taken(), [], 'a source of another link')

  machine.links = [{ ...both, ipv6: { addresses: ['fd00:8::5'], ranges: ['fd00:8::/64'] } }]
  await clock.advance(12_000)
  t.ok(taken().includes('pi-1.local 0 fd00:7::5 to all by IPv6'), 'an address that is gone is withdrawn')
  receive(dnsQuestion('pi-1.local', 'AAAA', { id: 5 }), { address: 'fd00:8::77', port: 40_000 })
  t.same(taken(), ['pi-1.local 10 fd00:8::5 to fd00:8::77:40000'], 'its source is of the link now')
  await end()
  t.same(
    taken().sort(),
    ['all', 'all by IPv6'].map((to) => `${ofBoth.replaceAll('120', '0').replace('7::', '8::')} to ${to}`),
  )
})

test('a name that another machine has by one family is not published by the other one', async (t) => {
  const { clock, taken, receive } = worldWith(
    t,
    settings,
    [both],
    'Another machine has a name of this node on the link',
  )
  await clock.advance(5_000)
  taken()
  for (let round = 0; round < 2; round++) {
    receive(response('192.168.1.66'))
    await clock.advance(100)
  }
  await clock.advance(5_000)
  const sent = taken().filter((text) => !text.startsWith('probe'))
  t.same(sent, [`${ofBoth.replaceAll('120', '0')} to all by IPv6`])
  receive(dnsQuestion('pi-1.local', 'AAAA'), linkClient)
  t.same(taken(), [])
  await clock.advance(70_000)
  const again = taken()
  for (const to of ['all', 'all by IPv6'])
    t.ok(again.includes(`${ofBoth} to ${to}`), `${to}: it is free a minute later`)
})

test('a port that cannot be used by one family leaves the other one its names', async (t) => {
  const { clock, machine, open } = worldWith(t, settings, [], 'Names are not published on a link')
  machine.portTaken = 'IPv4'
  await clock.advance(10_000)
  machine.links = [both]
  await clock.advance(30_000)
  t.same([...open.keys()], ['IPv6'])
  machine.portTaken = ''
  await clock.advance(10_000)
  t.same([...open.keys()].sort(), [eth0.address, 'IPv6'])
})

test('a link that has no IPv6 any more is left by it', async (t) => {
  const { clock, machine, open } = worldWith(t, settings, [both])
  await clock.advance(10_000)
  t.equal(open.size, 2)
  machine.links = [eth0]
  await clock.advance(10_000)
  t.same([...open.keys()], [eth0.address])
})
