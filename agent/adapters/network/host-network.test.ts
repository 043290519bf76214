import { mkdir, writeFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { ownSpace, whyNoRules } from '../../../test/support/own-space.ts'
import type { PeerNetwork } from '../../network/peers/family-network.ts'
import { planRoutes } from '../../network/peers/route-steps.ts'
import type { PodRoute } from '../../network/peers/tunnels.ts'
import { reflectPorts } from './bridge-ports.ts'
import { hasDockerRules } from './docker-rules.ts'
import { hostNetwork } from './host-network.ts'

const skip = whyNoRules() || (endianness() === 'LE' ? false : 'the addresses of the file are in another order')

/** A machine with one address, 192.0.2.1/24. */
async function machine(t: Test) {
  const space = await ownSpace(t)
  await space.run('ip', 'link', 'add', 'eth0', 'type', 'bridge')
  await space.run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'eth0')
  await space.run('ip', 'link', 'set', 'eth0', 'up')
  const tools = {
    ip: await space.tool('ip'),
    bridge: await space.tool('bridge'),
    iptables: await space.tool('iptables'),
    ip6tables: await space.tool('ip6tables'),
  }
  const root = testFolder(t)
  await mkdir(join(root, 'proc/net'), { recursive: true })
  const addresses = new Map([['192.0.2.1', 'eth0']])
  const host = hostNetwork(root, tools, (address) => addresses.get(address))
  const copyFiles = async () => {
    for (const name of ['route', 'dev', 'ipv6_route']) {
      await writeFile(join(root, `proc/net/${name}`), await space.run('cat', `/proc/net/${name}`))
    }
  }
  return {
    space,
    tools,
    host: {
      ...host,
      made: () => copyFiles().then(host.made),
      async links(withIPv6 = false, address?: string) {
        await copyFiles()
        for (const [, name = '', mtu = ''] of (await space.run('ip', '-o', 'link')).matchAll(
          /^\d+: (\S+?)[@:].* mtu (\d+)/gm,
        )) {
          await mkdir(join(root, `sys/class/net/${name}`), { recursive: true })
          await writeFile(join(root, `sys/class/net/${name}/mtu`), `${mtu}\n`)
        }
        return await host.links(withIPv6, address)
      },
    },
  }
}

const near: PodRoute = { range: '10.244.2.0/24', gateway: '192.0.2.2' }
const far: PodRoute = { range: '10.244.3.0/24', gateway: '10.244.3.0', device: 'bramble-vxlan' }
const farEnd = { address: '10.244.3.0', mac: '02:62:0a:f4:03:00', node: '192.0.2.3' }

test('routes are made and removed, and an agent that starts again finds its own', { skip }, async (t) => {
  const { host, space } = await machine(t)
  await space.run('ip', 'route', 'add', '10.250.0.0/24', 'via', '192.0.2.9')
  t.same(await host.apply([{ step: 'addRoute', route: near }]), [])
  t.match((await host.links()).routes, [
    { interface: 'eth0', gateway: '192.0.2.2', metric: 0 },
    { interface: 'eth0', gateway: '192.0.2.9' },
    { interface: 'eth0', direct: true },
  ])
  t.same(await host.made(), { routes: [near], guards: [], tunnelPeers: [] })
  t.same(await host.apply([{ step: 'removeRoute', route: near }]), [])
  t.same(await host.apply([{ step: 'removeRoute', route: near }]), [], 'one that is gone does not fail')
  t.same((await host.made()).routes, [])
  t.match(await space.run('ip', 'route'), /10\.250\.0\.0\/24/, 'others stay')
})

test('a failed step has its reason, and the steps after it are taken', { skip }, async (t) => {
  const { host } = await machine(t)
  const unreachable = { step: 'addRoute', route: { range: '10.244.9.0/24', gateway: '198.51.100.1' } } as const
  const failed = await host.apply([unreachable, { step: 'addRoute', route: near }])
  t.same(failed, [{ step: unreachable, because: 'Nexthop has invalid gateway.' }])
  t.same((await host.made()).routes, [near])
})

test('a tunnel is opened, gets its peers, loses them and is closed', { skip }, async (t) => {
  const { host, space } = await machine(t)
  const open = { step: 'openTunnel', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', mtu: 1350 } as const
  const peer = { step: 'addTunnelPeer', peer: farEnd } as const
  t.same(await host.apply([open, peer, { step: 'addRoute', route: far }]), [])
  t.equal((await host.links()).hasTunnel, true)
  t.same((await host.made()).routes, [far])
  const link = await space.run('ip', '-d', 'link', 'show', 'bramble-vxlan')
  t.match(link, /mtu 1350/)
  t.same(await host.apply([{ step: 'setTunnelMtu', device: 'bramble-vxlan', mtu: 1450 }]), [])
  await space.run('ip', 'link', 'set', 'eth0', 'mtu', '1400')
  t.match(await host.links(false, '192.0.2.1'), { linkMtu: 1400, tunnelMtus: { 'bramble-vxlan': 1450 } })
  const { linkMtu, tunnelMtus } = await host.links(false, '192.0.2.7')
  t.same([linkMtu, tunnelMtus], [undefined, { 'bramble-vxlan': 1450 }], 'no link has the address')
  t.match(link, /vxlan id 1 .*dstport 8472 nolearning/)
  t.match(await space.run('bridge', 'fdb', 'show', 'dev', 'bramble-vxlan'), /02:62:0a:f4:03:00 dst 192\.0\.2\.3 self/)
  t.match(
    await space.run('ip', 'neighbour', 'show', 'dev', 'bramble-vxlan'),
    /10\.244\.3\.0 lladdr 02:62:0a:f4:03:00 PERM/,
  )
  t.same(await host.apply([open, peer]), [], 'repeating it does not fail')
  t.same(await host.apply([{ step: 'removeTunnelPeer', peer: farEnd }]), [])
  t.equal(await space.run('bridge', 'fdb', 'show', 'dev', 'bramble-vxlan'), '')
  t.same(await host.apply([{ step: 'closeTunnel' }, { step: 'closeTunnel' }]), [])
  t.equal((await host.links()).hasTunnel, false)
})

test('an agent that starts again leaves a tunnel and its routes in place', { skip }, async (t) => {
  const { host, space } = await machine(t)
  const ends = { address: '10.244.1.0', mac: '02:62:0a:f4:01:00' }
  const wanted: PeerNetwork = {
    ...{
      address: '192.0.2.1',
      clusterCIDR: '10.244.0.0/16',
      serviceCIDR: '10.96.0.0/12',
      podCIDR: '10.244.1.0/24',
      nodeAddresses: [],
      routes: [far],
    },
    ...{ tunnel: { kind: 'vxlan', ...ends, peers: [farEnd] }, isGuarded: false, relays: new Map(), gaps: [] },
  }
  for (const expected of [['openTunnel', 'addTunnelPeer', 'addRoute'], ['addTunnelPeer']]) {
    const { steps } = planRoutes(wanted, await host.made(), await host.links())
    t.same(
      steps.map(({ step }) => step),
      expected,
    )
    t.same(await host.apply(steps), [])
    t.match(await space.run('ip', 'route'), /10\.244\.3\.0\/24 .* bramble-vxlan/)
  }
})

test('the one rule among those of Docker is there once, and goes without a trace', { skip }, async (t) => {
  const { host, space, tools } = await machine(t)
  await t.rejects(host.acceptMarked(false), { message: /^Cannot add a rule to DOCKER-USER: .*Docker makes the chain/ })
  t.equal(await hasDockerRules(tools.iptables), false)
  await space.run('iptables', '-N', 'DOCKER-USER')
  t.equal(await hasDockerRules(tools.iptables), true)
  await space.run('iptables', '-A', 'DOCKER-USER', '-j', 'RETURN')
  const rules = () => space.run('iptables', '-S', 'DOCKER-USER')
  const before = await rules()
  await host.acceptMarked(false)
  await host.acceptMarked(false)
  t.same((await rules()).trim().split('\n'), [
    '-N DOCKER-USER',
    '-A DOCKER-USER -m mark --mark 0x8000/0x8000 -j ACCEPT',
    '-A DOCKER-USER -j RETURN',
  ])
  await host.refuseMarked()
  await host.refuseMarked()
  t.equal(await rules(), before)
})

test('ports of one bridge reflect, and those of another do not', { skip }, async (t) => {
  const { space, tools } = await machine(t)
  for (const [port, bridge] of [
    ['v0', 'pods'],
    ['v1', 'other'],
  ] as const) {
    await space.run('ip', 'link', 'add', bridge, 'type', 'bridge')
    await space.run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', `${port}-peer`)
    await space.run('ip', 'link', 'set', port, 'master', bridge)
  }
  await reflectPorts('pods', tools.bridge)
  await reflectPorts('pods', tools.bridge)
  const hairpin = async (port: string) =>
    /hairpin (on|off)/.exec(await space.run('bridge', '-d', 'link', 'show', 'dev', port))?.[1]
  t.same([await hairpin('v0'), await hairpin('v1')], ['on', 'off'])
})

test('routes, the tunnel and refused IPv6 packets are made, found again and removed', { skip }, async (t) => {
  const { host, space } = await machine(t)
  await space.run('ip', '-6', 'address', 'add', 'fd00:1::1/64', 'dev', 'eth0', 'nodad')
  const ipv6 = {
    ...{ clusterCIDR: 'fd00:10:244::/56', serviceCIDR: 'fd00:10:96::/112', podCIDR: 'fd00:10:244:1::/64' },
    nodeAddresses: [],
    routes: [
      { range: 'fd00:10:244:2::/64', gateway: 'fd00:1::2' },
      { range: 'fd00:10:244:3::/64', gateway: 'fd00:10:244:3::', device: 'bramble-vxlan' },
    ],
    serviceRoute: { range: 'fd00:10:96::/112', source: 'fd00:1::1' },
  } as const
  const ofIPv4: PeerNetwork = {
    address: '192.0.2.1',
    ...{ clusterCIDR: '10.244.0.0/16', serviceCIDR: '10.96.0.0/12', podCIDR: '10.244.1.0/24', nodeAddresses: [] },
    ...{ routes: [near, far], isGuarded: true, relays: new Map(), gaps: [] },
    tunnel: { kind: 'vxlan', address: '10.244.1.0', mac: '02:62:0a:f4:01:00', peers: [farEnd] },
  }
  const end = { ...farEnd, ipv6: 'fd00:10:244:3::' }
  const both: PeerNetwork = {
    ...ofIPv4,
    ipv6,
    tunnel: ofIPv4.tunnel?.kind === 'vxlan' ? { ...ofIPv4.tunnel, ipv6: 'fd00:10:244:1::', peers: [end] } : undefined,
  }
  const links = () => host.links(true)
  const { steps } = planRoutes(both, await host.made(), await links())
  t.same(await host.apply(steps), [])
  const made = await host.made()
  t.match(made, { tunnelIPv6: { 'bramble-vxlan': 'fd00:10:244:1::' }, guards: ['10.244.0.0/16', 'fd00:10:244::/56'] })
  t.same(made.serviceRoutes, [ipv6.serviceRoute])
  t.match(await space.run('ip', '-6', 'route', 'get', 'fd00:10:96::7'), /dev lo .*src fd00:1::1/)
  t.same(planRoutes(both, { ...made, tunnelPeers: [end] }, await links()).steps, [], 'a later agent finds all of it')
  const neighbours = await space.run('ip', '-6', 'neighbour', 'show', 'dev', 'bramble-vxlan')
  t.match(neighbours, /fd00:10:244:3:: lladdr 02:62:0a:f4:03:00 PERMANENT/)
  t.same(await host.apply(planRoutes(ofIPv4, { ...made, tunnelPeers: [end] }, await links()).steps), [])
  const left = `${await space.run('ip', '-6', 'route')}${await space.run('ip', '-6', 'address', 'show', 'scope', 'global')}`
  t.notMatch(left, /fd00:10:/)
  t.match(await space.run('ip', 'route'), /10\.244\.3\.0\/24 .* bramble-vxlan/, 'IPv4 stays as it is')
})

test('the IPv6 rule is among those of Docker only where Docker has some', { skip }, async (t) => {
  const { host, space } = await machine(t)
  await space.run('iptables', '-N', 'DOCKER-USER')
  await host.acceptMarked(true)
  t.equal(await host.acceptsIPv6(), true, 'Docker has no IPv6 rules')
  t.notMatch(await space.run('ip6tables', '-S'), /0x8000|DOCKER/)
  await space.run('ip6tables', '-N', 'DOCKER-USER')
  t.equal(await host.acceptsIPv6(), false)
  await host.acceptMarked(true)
  await host.acceptMarked(true)
  t.equal((await space.run('ip6tables', '-S', 'DOCKER-USER')).split('0x8000/0x8000').length, 2)
  await host.acceptMarked(false)
  t.notMatch(await space.run('ip6tables', '-S'), /0x8000/)
  await host.acceptMarked(true)
  await host.refuseMarked()
  t.notMatch(`${await space.run('ip6tables', '-S')}${await space.run('iptables', '-S')}`, /0x8000/)
})
