import { test } from 'tap'
import { decodeNetwork, isSameNetwork, nameIn } from './received-network.ts'

const facts = {
  epoch: 'e',
  version: 1,
  clusterCIDR: '10.244.0.0/16',
  serviceCIDR: '10.96.0.0/12',
  clusterDomain: 'cluster.local',
}
const peer = { name: 'pi-1', podCIDR: '10.244.1.0/24', address: '192.168.1.5', segment: '192.168.1.0/24' }

test('a message of the network is taken as it is, and a node with an invalid value is left out', async (t) => {
  const decoded = decodeNetwork({ ...facts, nodes: [peer] })
  t.match(decoded, { ok: true, value: { message: { ...facts, nodes: [peer] }, problems: [] } })
  const others = [
    { ...peer, name: 'Pi 2' },
    { ...peer, podCIDR: '10.244.1.5/24' },
    { ...peer, address: '192.168.1.5; flush ruleset' },
    { ...peer, address: 'fd00::5' },
    { ...peer, name: '' },
    { ...peer, name: 'x'.repeat(254) },
    { ...peer, podCIDR: 'fd00:10:244:1::/64' },
    { ...peer, address: '' },
    { ...peer, segment: 'x'.repeat(254) },
    { ...peer, zone: 'x'.repeat(254) },
    { ...peer, wireguardKey: `${'A'.repeat(42)};=` },
    { ...peer, wireguardKey: `${'A'.repeat(43)}=` },
    { ...peer, probePort: 0 },
    { ...peer, probePort: 65_536 },
    { ...peer, wireguardEndpoint: '--help:1' },
    { ...peer, wireguardEndpoint: '$(id):1' },
  ]
  for (const other of others) {
    t.match(decodeNetwork({ ...facts, nodes: [other, peer] }), {
      ok: true,
      value: { message: { nodes: [peer] }, problems: [/^node "/] },
    })
  }
})

const fleetOfBoth = { ...facts, ipv6: { clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112' } }
const peerOfBoth = { ...peer, ipv6: { podCIDR: 'fd00:10:244:1::/64', address: 'fd00:1::5' } }

test('a node with an invalid range or IPv6 address, or one that no router forwards, is left out', async (t) => {
  const withIPv6 = (podCIDR: string, address?: string) => {
    const ipv6: { podCIDR: string; address?: string } = { podCIDR, ...(address !== undefined && { address }) }
    return { ...peer, name: 'pi-2', ipv6 }
  }
  const range = 'fd00:10:244:2::/64'
  const all = [peerOfBoth, ...['2001:db8::5', 'fc00::5', '3fff::5', undefined].map((ip) => withIPv6(range, ip))]
  t.same(decodeNetwork({ ...fleetOfBoth, nodes: all }), {
    ok: true,
    value: { message: { ...fleetOfBoth, nodes: all }, problems: [] },
    unknownFields: [],
  })
  const ranges = [
    ...['', 'all', '10.244.2.0/24', 'fd00:10:244:2::', 'fd00:10:244:2::/129', 'fd00:10:244:2::/-1', `${range} `],
    ...['fd00:10:244:2::1/64', 'FD00:10:244:2::/64', 'fd00:10:244:2:0::/64', 'fd00:10:244:2::/064'],
    ...[`${range}; flush ruleset`, `${range}\n`, '--help', 'fd00::/64,fd01::/64', `fd00:${'0:'.repeat(50_000)}:/64`],
  ]
  const addresses = [
    ...['', '192.168.1.6', '::', '::1', 'fe80::5', 'fe80::5%eth0', 'febf::5', 'fec0::5', 'ff02::1', '::ffff:192.0.2.1'],
    ...['64:ff9b::c000:201', 'FD00::5', 'fd00:0::5', 'fd00:0:0:0:0:0:0:5', 'fd00::5%eth0', 'fd00::5/64', '[fd00::5]'],
    ...[
      'fd00::5 }; flush ruleset',
      'fd00::5\n',
      ' fd00::5',
      'fd00:::5',
      'fd00::5::1',
      'fd00::12345',
      'fd00:1',
      '--help',
    ],
  ]
  const bad = [...ranges.map((one) => withIPv6(one)), ...addresses.map((one) => withIPv6(range, one))]
  for (const other of bad) {
    const { podCIDR, address: ip = '' } = other.ipv6
    t.match(
      decodeNetwork({ ...fleetOfBoth, nodes: [other, peerOfBoth] }),
      { ok: true, value: { message: { nodes: [peerOfBoth] }, problems: ['node "pi-2"'] } },
      JSON.stringify(`${podCIDR} ${ip}`.slice(0, 60)),
    )
  }
})

test('a message of the network with IPv6 fields of another type is refused', async (t) => {
  const shapes = [7, '', 'fd00::/64', [], ['fd00::/64'], {}, { podCIDR: 7 }, { podCIDR: null, address: 'fd00::5' }]
  for (const ipv6 of [...shapes, { podCIDR: 'fd00::/64', address: ['fd00::5'] }, { address: 'fd00::5' }]) {
    const decoded = decodeNetwork({ ...fleetOfBoth, nodes: [{ ...peer, ipv6 }] })
    t.match(decoded, { ok: false, problems: [{ field: /^nodes\[0\]\.ipv6/ }] }, JSON.stringify(ipv6))
  }
  for (const ipv6 of [...shapes, { clusterCIDR: 'fd00::/56' }, { clusterCIDR: 'fd00::/56', serviceCIDR: 1 }]) {
    const decoded = decodeNetwork({ ...facts, ipv6, nodes: [peer] })
    t.match(decoded, { ok: false, problems: [{ field: /^ipv6/ }] }, JSON.stringify(ipv6))
  }
})

test('a message of the network whose own IPv6 ranges are invalid, or that no router forwards, is refused', async (t) => {
  const good = fleetOfBoth.ipv6
  const ranges = [
    ...['', '-', '10.244.0.0/16', 'fd00::', 'fd00::1/56', 'FD00::/56', 'fd00:0::/56', 'fd00::/129', 'fd00::/56 }'],
    ...['::/0', '::/128', 'fe80::/64', 'ff00::/8', '::ffff:10.0.0.0/104', 'fc00::/6', '4000::/2', '64:ff9b::/96'],
  ]
  for (const range of ranges) {
    for (const field of ['clusterCIDR', 'serviceCIDR']) {
      const decoded = decodeNetwork({ ...facts, ipv6: { ...good, [field]: range }, nodes: [peerOfBoth] })
      t.match(decoded, { ok: false, problems: [{ field: `ipv6.${field}` }] }, `${field} ${range}`)
    }
  }
  const both = decodeNetwork({ ...facts, ipv6: { clusterCIDR: 'a', serviceCIDR: 'b' }, nodes: [] })
  t.match(both, { ok: false, problems: [{ field: 'ipv6.clusterCIDR' }, { field: 'ipv6.serviceCIDR' }] })
})

test('null means no IPv6, and unknown IPv6 fields are left out', async (t) => {
  const without = decodeNetwork({ ...facts, ipv6: null, nodes: [{ ...peer, ipv6: null }] })
  t.same(without.ok && without.value, { message: { ...facts, nodes: [peer] }, problems: [] })
  const later = { ...peerOfBoth, ipv6: { ...peerOfBoth.ipv6, prefix: '; reboot' } }
  const decoded = decodeNetwork({ ...fleetOfBoth, ipv6: { ...fleetOfBoth.ipv6, mtu: 1 }, nodes: [later] })
  t.same(decoded.ok && decoded.value.message, { ...fleetOfBoth, nodes: [peerOfBoth] })
})

test('a message of the network with invalid values of its own is refused', async (t) => {
  for (const field of ['clusterCIDR', 'serviceCIDR', 'clusterDomain', 'nodes', 'epoch', 'version']) {
    t.match(decodeNetwork({ ...facts, nodes: [peer], [field]: { a: 1 } }), { ok: false }, field)
  }
  t.match(decodeNetwork({ ...facts, nodes: [], wireguard: { port: 65_536 } }), { ok: false })
  t.match(decodeNetwork({ ...facts, nodes: [], wireguard: { port: 51_871 } }), { ok: true })
  for (const field of ['clusterCIDR', 'serviceCIDR', 'clusterDomain']) {
    t.match(decodeNetwork({ ...facts, nodes: [], [field]: '-' }), { ok: false, problems: [{ field }] })
  }
  for (const input of [undefined, null, 1, 'text', []]) t.match(decodeNetwork(input), { ok: false })
})

test('the limits of what a node has are inside of them', async (t) => {
  const wireguard = { wireguardKey: `${'A'.repeat(42)}E=`, wireguardEndpoint: '[2001:db8::7]:51871' }
  const nodes = [
    { ...peer, name: 'a.b-1', segment: 'x'.repeat(253), zone: 'x'.repeat(253), probePort: 65_535, relay: true },
    { ...peer, segment: '', zone: '', ...wireguard },
    { ...peer, ...wireguard, wireguardEndpoint: 'none' },
  ]
  t.match(decodeNetwork({ ...facts, nodes }), { ok: true, value: { message: { nodes }, problems: [] } })
})

test('each invalid value of the message has its field and what it must be', async (t) => {
  const domain = 'a'.repeat(254)
  const given = { clusterCIDR: '10.244.1.0/16', serviceCIDR: 'fd00::/112', clusterDomain: domain }
  const decoded = decodeNetwork({
    ...{ ...facts, ...given, ipv6: { clusterCIDR: 'fd00::/56', serviceCIDR: 'fe80::/64' } },
    ...{ wireguard: { port: 0 }, nodes: [{ ...peer, address: 'none' }] },
  })
  t.match(decoded, {
    ok: false,
    problems: [
      { field: 'clusterCIDR', message: /10\.244\.1\.0\/16.* must be an IPv4 range/ },
      { field: 'serviceCIDR', message: /must be an IPv4 range/ },
      { field: 'ipv6.serviceCIDR', message: /must be an IPv6 range, global or unique local/ },
      { field: 'clusterDomain' },
      { field: 'wireguard.port', message: /must be a port/ },
    ],
  })
  t.equal(!decoded.ok && decoded.problems.length, 5, 'a node is left out without a problem of the message')
  for (const port of [1, 65_535]) t.ok(decodeNetwork({ ...facts, nodes: [], wireguard: { port } }).ok)
})

test('a part that cannot be decoded is named as far as it has a name', async (t) => {
  const names: readonly (readonly [unknown, string])[] = [
    [{ namespace: 'default', name: 'web' }, '"default/web"'],
    [{ name: 'web' }, '"web"'],
    [{ namespace: 7, name: 'web' }, '"web"'],
    [{ name: 'a"\n' }, '"a\\"\\n"'],
    [{ name: 'x'.repeat(1000) }, JSON.stringify('x'.repeat(320))],
    [{ name: ['web'] }, '""'],
    ...[{}, undefined, null, 7, 'web', []].map((item) => [item, '""'] as const),
  ]
  for (const [item, name] of names) t.equal(nameIn(item), name)
})

test('two messages mean the same whichever their epochs and versions are', async (t) => {
  const first = { ...facts, nodes: [peer] }
  t.ok(isSameNetwork(first, { ...first, epoch: 'f', version: 7 }))
  t.notOk(isSameNetwork(first, { ...first, nodes: [] }))
  t.notOk(isSameNetwork(first, { ...first, nodes: [{ ...peer, address: '192.168.1.6' }] }))
  t.notOk(isSameNetwork(first, undefined))
  t.notOk(isSameNetwork(undefined, first))
  t.ok(isSameNetwork(undefined, undefined))
})
