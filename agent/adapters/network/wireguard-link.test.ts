import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { ownSpace } from '../../../test/support/own-space.ts'
import { startWireguard, whyNoWireguard } from '../../../test/support/wireguard.ts'
import { hostNetwork } from './host-network.ts'
import { readWireguard, wireguardLink } from './wireguard-link.ts'

const skip = whyNoWireguard()
const peerKey = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg='
const otherKey = 'TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0='

test('the key, the port and the peers of WireGuard are set, changed and read', { skip }, async (t) => {
  const space = await ownSpace(t)
  const { tool } = await startWireguard(t, space.name)
  const keyFile = join(testFolder(t), 'wireguard.key')
  const link = wireguardLink(keyFile, tool)
  const publicKey = await link.publicKey()
  t.equal((await link.read())?.publicKey, undefined, 'it has no key yet')
  await link.apply([
    { change: 'setDevice', port: 51_999 },
    {
      change: 'setPeer',
      publicKey: peerKey,
      endpoint: '192.0.2.7:51871',
      ranges: ['10.244.2.0/24', '10.244.3.0/24'],
      keepaliveSeconds: 25,
    },
    { change: 'setPeer', publicKey: otherKey, endpoint: '[2001:db8::7]:443', ranges: ['10.244.4.0/24'] },
  ])
  const peer = {
    endpoint: '192.0.2.7:51871',
    ranges: ['10.244.2.0/24', '10.244.3.0/24'],
    handshake: 0,
    keepaliveSeconds: 25,
  }
  const other = { endpoint: '[2001:db8::7]:443', ranges: ['10.244.4.0/24'], handshake: 0, keepaliveSeconds: 0 }
  const state = await link.read()
  t.same(state?.peers.get(peerKey), peer)
  t.same(state?.peers.get(otherKey), other)
  t.match(state, { publicKey, port: 51_999 })
  await link.apply([
    { change: 'removePeer', publicKey: otherKey },
    { change: 'setPeer', publicKey: peerKey, ranges: [], keepaliveSeconds: 0 },
  ])
  t.same([...((await link.read())?.peers ?? [])], [[peerKey, { ...peer, ranges: [], keepaliveSeconds: 0 }]])
})

test('a port that another program has, and a program that is missing, are named', { skip }, async (t) => {
  const space = await ownSpace(t)
  const [first, second] = [await startWireguard(t, space.name), await ownSpace(t)]
  const keyFile = join(testFolder(t), 'wireguard.key')
  const elsewhere = wireguardLink(keyFile, await second.tool('wg'))
  t.equal(await elsewhere.read(), undefined, 'there is no interface')
  t.equal(await readWireguard(async () => ({ code: 1, stdout: '', stderr: 'No such device' })), undefined)
  await t.rejects(
    readWireguard(async () => ({ code: 1, stdout: '', stderr: 'Operation not permitted' })),
    {
      message: 'Cannot read the state of WireGuard: Operation not permitted',
    },
  )
  const missing = wireguardLink(keyFile, '/nowhere/wg')
  await t.rejects(missing.read(), { message: /not installed.*apt-get install wireguard-tools/ })
  await t.rejects(wireguardLink(keyFile, first.tool).apply([{ change: 'setDevice', port: 1 }]), {
    message: /^Cannot set up WireGuard: /,
  })
})

test('the key is made once, and only root can read it', async (t) => {
  const keyFile = join(testFolder(t), 'wireguard.key')
  const made = await wireguardLink(keyFile).publicKey()
  t.match(made, /^[A-Za-z0-9+/]{43}=$/)
  t.equal((await stat(keyFile)).mode & 0o777, 0o600)
  t.notMatch(await readFile(keyFile, 'utf8'), made)
  t.equal(await wireguardLink(keyFile).publicKey(), made)
  // The first pair of keys of RFC 7748, 6.1.
  await writeFile(keyFile, 'dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=\n')
  t.equal(await wireguardLink(keyFile).publicKey(), 'hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=')
  for (const text of ['', 'x', '-----BEGIN PRIVATE KEY-----\n']) {
    await writeFile(keyFile, text)
    await t.rejects(wireguardLink(keyFile).publicKey(), { message: /remove it, and restart the agent/ })
    t.equal(await readFile(keyFile, 'utf8'), text, 'it stays as it is')
  }
})

test('hosts are addresses, or names that the machine resolves', async (t) => {
  const { resolve } = wireguardLink('/nowhere')
  t.equal(await resolve('192.0.2.7'), '192.0.2.7')
  t.equal(await resolve('2001:db8::7'), '[2001:db8::7]')
  t.equal(await resolve('2001:0DB8:0::7'), '[2001:db8::7]', 'as wg prints it')
  t.match(await resolve('localhost'), /^(127\.0\.0\.1|\[::1\])$/)
  t.equal(await resolve('no-such-host.invalid'), undefined)
})

test('the interface of another implementation is used, and refused packets have an error', { skip }, async (t) => {
  const space = await ownSpace(t)
  await startWireguard(t, space.name)
  const [ip, bridge, iptables] = [await space.tool('ip'), await space.tool('bridge'), await space.tool('iptables')]
  const root = testFolder(t, { proc: { net: { dev: '', route: '' } } })
  const host = hostNetwork(root, { ip, bridge, iptables, ip6tables: await space.tool('ip6tables') })
  const refresh = async () => {
    for (const name of ['route', 'dev'])
      await writeFile(join(root, `proc/net/${name}`), await space.run('cat', `/proc/net/${name}`))
    return await host.links()
  }
  const far = { range: '10.244.3.0/24', gateway: '10.244.3.0', device: 'bramble-wg' } as const
  const guard = { step: 'addGuard', range: '10.244.0.0/16' } as const
  const open = { step: 'openWireguard', address: '10.244.1.0', mtu: 1320 } as const
  t.same(await host.apply([guard, open, open, { step: 'addRoute', route: far }, guard]), [])
  t.match(await refresh(), { hasWireguard: true, hasTunnel: false })
  const made = { routes: [far], guards: ['10.244.0.0/16'], tunnelPeers: [], wireguardAddress: '10.244.1.0' }
  t.same(
    await host.made(),
    made,
    'for an agent that starts again: no interface is opened twice, which takes its routes away',
  )
  t.match(await space.run('ip', 'address', 'show', 'dev', 'bramble-wg'), /mtu 1320[\s\S]* inet 10\.244\.1\.0\/32/)
  t.match(await space.run('ip', 'route', 'get', '10.244.3.9'), /dev bramble-wg src 10\.244\.1\.0/)
  await t.rejects(space.run('ip', 'route', 'get', '10.244.9.9'), { message: /No route to host|unreachable/i })
  const shown = (await refresh()).routes.find((route) => route.interface === '*')
  t.match(shown, { range: { bits: 16 } }, 'as the plan looks for it')
  t.same(await host.apply([{ step: 'closeWireguard' }, { step: 'removeGuard', range: '10.244.0.0/16' }]), [])
  t.match(await refresh(), { hasWireguard: false, routes: [] })
  t.same(await host.apply([{ step: 'closeWireguard' }, { step: 'removeGuard', range: '10.244.0.0/16' }]), [])
})
