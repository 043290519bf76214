import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { defaultInterfaces, hostAddresses } from './node-addresses.ts'

const interfaces = () => [
  { name: 'lo', addresses: ['127.0.0.1'] },
  { name: 'wlan0', addresses: ['192.168.2.7'] },
  { name: 'eth0', addresses: ['192.168.1.7'] },
]
const settings = { nodeName: 'pi-7', hostname: 'pi-7', nodeIPs: [] }

test('of two default routes the kernel prefers the one with the smaller metric', async (t) => {
  t.same(defaultInterfaces(savedTree('pi-4-cgroup-v2')), ['eth0', 'wlan0'])
  t.same(defaultInterfaces(savedTree('debian-12-cgroup-v1')), ['eth0'])
  t.same(defaultInterfaces(savedTree('pi-os-without-memory-cgroup')), [])
})

test('a default route has a destination and a mask of zero, and IPv4 comes before IPv6', async (t) => {
  const v4 = (name: string, destination: string, mask: string, metric: number) =>
    [name, destination, '0102000A', '0003', '0', '0', metric, mask, '0', '0', '0'].join('\t')
  const zero = '0'.repeat(32)
  const v6 = (name: string, destination: string, length: string, metric: string) =>
    `${destination} ${length} ${zero} 00 fe80000000000000 ${metric} 00000001 00000000 00450003     ${name}`
  const root = testFolder(t, {
    proc: {
      net: {
        route: [
          'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask',
          v4('tun0', '00000000', '00000080', 0),
          v4('host0', '0102000A', '00000000', 0),
          v4('wlan0', '00000000', '00000000', 600),
          '',
        ].join('\n'),
        ipv6_route: [
          v6('lo', zero, '00', 'ffffffff'),
          v6('half0', zero, '01', '00000001'),
          v6('net0', `fd${'0'.repeat(30)}`, '00', '00000001'),
          v6('eth1', zero, '00', '00000400'),
          v6('eth0', zero, '00', '000000ff'),
          v6('wlan0', zero, '00', '00000001'),
          '',
        ].join('\n'),
      },
    },
  })
  t.same(defaultInterfaces(root), ['wlan0', 'eth0', 'eth1'])
  t.same(defaultInterfaces(testFolder(t)), [], 'a kernel without the files has none')
})

test('an address that is configured needs no name server', async (t) => {
  let asked = 0
  const resolve = async () => {
    asked++
    return ['192.168.2.7']
  }
  const needs = { root: savedTree('pi-4-cgroup-v2'), clock: fakeClock(), interfaces, resolve }
  const configured = hostAddresses(needs, { ...settings, nodeIPs: ['192.168.1.7'] })
  t.equal((await configured())[0]?.address, '192.168.1.7')
  t.equal(asked, 0)
  const resolved = hostAddresses(needs, settings)
  t.equal((await resolved())[0]?.address, '192.168.2.7', 'otherwise the name server decides')
  t.equal(asked, 1)
})

test('the answer of the name server is kept for five minutes', async (t) => {
  const clock = fakeClock()
  const root = testFolder(t, { proc: { net: { route: '', if_inet6: '' } } })
  let asked = 0
  const resolve = async () => {
    asked++
    return []
  }
  const addresses = hostAddresses({ root, clock, interfaces, resolve }, settings)
  for (const [advancedMs, queries] of [
    [0, 1],
    [299_999, 1],
    [1, 2],
  ] as const) {
    await clock.advance(advancedMs)
    await t.rejects(addresses())
    t.equal(asked, queries)
  }
})

test('the interfaces are those of this machine unless given', async (t) => {
  const needs = { root: testFolder(t), clock: fakeClock(), resolve: async () => [] }
  t.same(await hostAddresses(needs, { ...settings, nodeIPs: ['127.0.0.1'] })(), [
    { type: 'InternalIP', address: '127.0.0.1' },
    { type: 'Hostname', address: 'pi-7' },
  ])
})

test('the name server is asked once in five minutes, and may be silent', async (t) => {
  const clock = fakeClock()
  let asked = 0
  const resolve = async () => {
    asked++
    throw new Error('getaddrinfo EAI_AGAIN pi-7')
  }
  const addresses = hostAddresses({ root: savedTree('pi-4-cgroup-v2'), clock, interfaces, resolve }, settings)
  for (let look = 0; look < 10; look++) t.equal((await addresses())[0]?.address, '192.168.1.7')
  t.equal(asked, 1)
  await clock.advance(5 * 60_000)
  await addresses()
  t.equal(asked, 2)
})

test('a machine without a network reports why it has no address', async (t) => {
  const needs = {
    root: savedTree('pi-os-without-memory-cgroup'),
    clock: fakeClock(),
    interfaces,
    resolve: async () => [],
  }
  await t.rejects(hostAddresses(needs, settings)(), { message: /no default route/ })
})

test('interfaces are listed again when the network changes, the address is lost, or after a minute', async (t) => {
  const root = testFolder(t, { proc: { net: { route: '', if_inet6: '' } } })
  const route = (iface: string) =>
    `Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n${iface}\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n`
  const clock = fakeClock()
  let listed = 0
  const counted = () => {
    listed++
    return interfaces()
  }
  const lost = new Set<string>()
  const isOwn = async (address: string) => !lost.has(address)
  const addresses = hostAddresses({ root, clock, interfaces: counted, isOwn, resolve: async () => [] }, settings)
  const ip = async () => (await addresses())[0]?.address
  await t.rejects(addresses(), { message: /no default route/ })
  await t.rejects(addresses(), { message: /no default route/ }, 'without an address each look lists them')
  t.equal(listed, 2)
  writeFileSync(join(root, 'proc/net/route'), route('eth0'))
  t.same([await ip(), await ip(), listed], ['192.168.1.7', '192.168.1.7', 3])
  writeFileSync(join(root, 'proc/net/route'), route('wlan0'))
  t.same([await ip(), listed], ['192.168.2.7', 4])
  writeFileSync(join(root, 'proc/net/if_inet6'), 'fd00 03 40 00 80 eth0\n')
  t.same([await ip(), listed], ['192.168.2.7', 5])
  await clock.advance(60_000)
  t.same([await ip(), await ip(), listed], ['192.168.2.7', '192.168.2.7', 6])
  lost.add('192.168.2.7')
  t.same([await ip(), listed], ['192.168.2.7', 7])
})

test('in a fleet with IPv6 a node has the lasting IPv6 address of the same interface, a unique local one first', async (t) => {
  const row = (address: string, flags: string, name: string) =>
    `${address.replaceAll(':', '').padEnd(32, '0')} 02 40 00 ${flags} ${name}`
  const ofEth0 = [
    row('fe80::', '80', 'eth0'),
    row('2001:0db8', '00', 'eth0'),
    row('fd00:0001:0000:0000:0000:0000:0000:0009', '01', 'eth0'),
    row('fd00:0001:0000:0000:0000:0000:0000:0008', '20', 'eth0'),
    row('fd00:0001:0000:0000:0000:0000:0000:0007', '40', 'eth0'),
  ]
  const local = row('fd00:0001:0000:0000:0000:0000:0000:0006', '80', 'eth0')
  const other = row('fd00:0001:0000:0000:0000:0000:0000:0005', '80', 'eth0')
  const root = testFolder(t, { proc: { net: { if_inet6: '' } } })
  const write = (...rows: readonly string[]) => writeFileSync(join(root, 'proc/net/if_inet6'), `${rows.join('\n')}\n`)
  let isDual = true
  const needs = { root, clock: fakeClock(), interfaces, resolve: async () => ['192.168.1.7'] }
  const addresses = hostAddresses({ ...needs, isOwn: async () => true, withIPv6: () => isDual }, settings)
  const shown = async () => (await addresses()).flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []))
  write(...ofEth0, row('fd00:0001:0000:0000:0000:0000:0000:0001', '80', 'wlan0'))
  t.same(await shown(), ['192.168.1.7', '2001:db8::'])
  write(...ofEth0, local)
  t.same(await shown(), ['192.168.1.7', 'fd00:1::6'])
  write(...ofEth0, other, local)
  t.same(await shown(), ['192.168.1.7', 'fd00:1::6'], 'it stays while the machine has it')
  isDual = false
  t.same(await shown(), ['192.168.1.7'])
  isDual = true
  write('')
  t.same(await shown(), ['192.168.1.7'])
  const configured = hostAddresses(
    { ...needs, isOwn: async () => true, withIPv6: () => true },
    { ...settings, nodeIPs: ['192.168.1.7'] },
  )
  write(local)
  t.same((await configured()).length, 2, 'nodeIP is as it was')
})
