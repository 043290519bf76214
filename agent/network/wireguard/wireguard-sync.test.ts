import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { WireguardPeer, WireguardTunnel } from '../peers/tunnels.ts'
import { fakeWireguard, ownKey } from '../testing/wireguard.ts'
import { wireguardSync } from './wireguard-sync.ts'

const second: WireguardPeer = {
  name: 'pi-2',
  publicKey: 'two',
  endpoint: 'home.example.org:51871',
  ranges: ['10.244.2.0/24'],
  keepsAlive: true,
}
const third: WireguardPeer = { ...second, name: 'pi-3', publicKey: 'three', endpoint: undefined }
const tunnel = (...peers: readonly WireguardPeer[]): WireguardTunnel => ({
  kind: 'wireguard',
  address: '10.244.1.0',
  port: 51_871,
  peers,
})

function syncing(t: Test) {
  const [link, clock] = [fakeWireguard(), fakeClock()]
  link.names.set('home.example.org', '192.0.2.2')
  const endpoint = (key: string) => link.state?.peers.get(key)?.endpoint
  return { link, clock, endpoint, ...wireguardSync({ link, clock, log: quietLog(t) }) }
}

test('the same once more changes nothing', async (t) => {
  const { link, sync } = syncing(t)
  await sync(tunnel(second, third))
  t.match(link.state, { publicKey: ownKey, port: 51_871 })
  t.same([...(link.state?.peers.keys() ?? [])], ['two', 'three'])
  const changes = link.changes.length
  await sync(tunnel(second, third))
  t.equal(link.changes.length, changes)
  await sync(tunnel(third))
  t.same(link.changes.slice(changes), [{ change: 'removePeer', publicKey: 'two' }])
})

test('an endpoint that WireGuard has learned stays, until the peer is silent or has another one', async (t) => {
  const { link, clock, endpoint, sync } = syncing(t)
  await sync(tunnel(second))
  t.equal(endpoint('two'), '192.0.2.2:51871')
  link.contact('two', { endpoint: '198.51.100.9:4000', handshake: clock.wallMs() / 1000 })
  link.names.set('home.example.org', '192.0.2.3')
  await sync(tunnel(second))
  t.equal(endpoint('two'), '198.51.100.9:4000')
  await clock.advance(181_000)
  await sync(tunnel(second))
  t.equal(endpoint('two'), '192.0.2.3:51871', 'the name is resolved again')
  link.contact('two', { handshake: clock.wallMs() / 1000 })
  await sync(tunnel({ ...second, endpoint: '203.0.113.7:1' }))
  t.equal(endpoint('two'), '203.0.113.7:1')
})

test('an agent that starts again follows the settings of peers from then on', async (t) => {
  const { link, clock, endpoint, sync } = syncing(t)
  link.state = {
    publicKey: ownKey,
    port: 51_871,
    peers: new Map([
      ['two', { endpoint: '198.51.100.9:4000', ranges: [], handshake: clock.wallMs() / 1000, keepaliveSeconds: 25 }],
    ]),
  }
  await sync(tunnel(second))
  t.equal(endpoint('two'), '198.51.100.9:4000')
  await sync(tunnel({ ...second, endpoint: '203.0.113.7:1' }))
  t.equal(endpoint('two'), '203.0.113.7:1')
})

test('an endpoint in place of none is used at once, though the peer has connected from another address', async (t) => {
  const { link, clock, endpoint, sync } = syncing(t)
  await sync(tunnel(third))
  link.contact('three', { endpoint: '198.51.100.9:4000', handshake: clock.wallMs() / 1000 })
  await sync(tunnel(third))
  t.equal(endpoint('three'), '198.51.100.9:4000')
  await sync(tunnel({ ...third, endpoint: '203.0.113.7:1' }))
  t.equal(endpoint('three'), '203.0.113.7:1')
  await sync(tunnel(third))
  t.equal(endpoint('three'), '203.0.113.7:1', 'none takes nothing away that it has learned')
  link.contact('three', { endpoint: '198.51.100.9:4000' })
  await sync(tunnel({ ...third, endpoint: '203.0.113.7:1' }))
  t.equal(endpoint('three'), '203.0.113.7:1')
})

test('a name that has no address yet is resolved later, and the peer is there meanwhile', async (t) => {
  const { link, endpoint, sync } = syncing(t)
  link.names.clear()
  await sync(tunnel(second))
  t.same(link.state?.peers.get('two')?.ranges, ['10.244.2.0/24'])
  t.equal(endpoint('two'), undefined)
  link.names.set('home.example.org', '192.0.2.2')
  await sync(tunnel(second))
  t.equal(endpoint('two'), '192.0.2.2:51871')
})

test('a peer that never answers is named after 20 s, and one that did is not', async (t) => {
  const { link, clock, sync, silent } = syncing(t)
  await sync(tunnel(second, third))
  await clock.advance(10_000)
  await sync(tunnel(second, third))
  t.same(silent(), [])
  link.contact('three', { handshake: clock.wallMs() / 1000 })
  await clock.advance(15_000)
  await sync(tunnel(second, third))
  t.match(silent(), [/^node pi-2 has not answered/])
  await sync(undefined)
  t.same(silent(), [])
})

test('without an interface there is nothing to change, and no key is a failure', async (t) => {
  const { link, sync } = syncing(t)
  link.state = undefined
  await sync(tunnel(second))
  t.same(link.changes, [])
  link.problem = 'the key is damaged'
  await t.rejects(sync(tunnel(second)), { message: 'the key is damaged' })
})
