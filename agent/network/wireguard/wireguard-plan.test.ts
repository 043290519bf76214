import { test } from 'tap'
import type { WireguardPeer } from '../peers/tunnels.ts'
import {
  contactOf,
  needsEndpoint,
  noContactWith,
  planWireguard,
  type WireguardPeerState,
  type WireguardState,
} from './wireguard-plan.ts'

const peer = (more: Partial<WireguardPeer> = {}): WireguardPeer => ({
  name: 'pi-2',
  publicKey: 'two',
  endpoint: 'home.example.org:51871',
  ranges: ['10.244.2.0/24'],
  keepsAlive: false,
  ...more,
})
const present = (more: Partial<WireguardPeerState> = {}): WireguardPeerState => ({
  endpoint: '192.0.2.2:51871',
  ranges: ['10.244.2.0/24'],
  handshake: 1_000,
  keepaliveSeconds: 0,
  ...more,
})
const state = (...peers: readonly (readonly [string, WireguardPeerState])[]): WireguardState => ({
  publicKey: 'own',
  port: 51_871,
  peers: new Map(peers),
})
const wanted = (...peers: readonly WireguardPeer[]) => ({ publicKey: 'own', port: 51_871, peers })
const none = new Map<string, string>()

test('what is in place needs no change', (t) => {
  t.same(planWireguard(wanted(peer()), state(['two', present()]), none), [])
  t.same(planWireguard(wanted(peer({ keepsAlive: true })), state(['two', present({ keepaliveSeconds: 25 })]), none), [])
  const learned = new Map([['two', '192.0.2.2:51871']])
  t.same(planWireguard(wanted(peer()), state(['two', present()]), learned), [])
  t.end()
})

test('a new interface gets its key, its port and its peers', (t) => {
  const empty: WireguardState = { publicKey: undefined, port: 41_000, peers: new Map() }
  t.same(
    planWireguard(
      wanted(peer(), peer({ publicKey: 'three', endpoint: undefined })),
      empty,
      new Map([['two', '192.0.2.2:51871']]),
    ),
    [
      { change: 'setDevice', port: 51_871 },
      {
        change: 'setPeer',
        publicKey: 'two',
        endpoint: '192.0.2.2:51871',
        ranges: ['10.244.2.0/24'],
        keepaliveSeconds: 25,
      },
      { change: 'setPeer', publicKey: 'three', ranges: ['10.244.2.0/24'] },
    ],
  )
  t.same(planWireguard(wanted(), { ...state(), publicKey: 'old' }, none), [{ change: 'setDevice', port: 51_871 }])
  t.same(planWireguard({ ...wanted(), port: 443 }, state(), none), [{ change: 'setDevice', port: 443 }])
  t.end()
})

test('of a peer that differs only the difference is set, and others are left alone', (t) => {
  const before = state(['two', present()], ['three', present()])
  const ranges = ['10.244.2.0/24', '10.244.4.0/24']
  t.same(planWireguard(wanted(peer({ ranges }), peer({ publicKey: 'three' })), before, none), [
    { change: 'setPeer', publicKey: 'two', ranges },
  ])
  t.same(planWireguard(wanted(peer(), peer({ publicKey: 'three', keepsAlive: true })), before, none), [
    { change: 'setPeer', publicKey: 'three', keepaliveSeconds: 25 },
  ])
  t.same(planWireguard(wanted(peer()), before, new Map([['two', '192.0.2.9:51871']])), [
    { change: 'removePeer', publicKey: 'three' },
    { change: 'setPeer', publicKey: 'two', endpoint: '192.0.2.9:51871' },
  ])
  t.end()
})

test('until its first handshake a peer is tried, then it is left in peace', (t) => {
  const unproven = state(['two', present({ handshake: 0 })])
  t.match(planWireguard(wanted(peer()), unproven, none), [{ keepaliveSeconds: 25 }])
  t.match(planWireguard(wanted(peer()), state(['two', present({ keepaliveSeconds: 25 })]), none), [
    { keepaliveSeconds: 0 },
  ])
  t.same(planWireguard(wanted(peer({ endpoint: undefined })), unproven, none), [], 'it cannot be tried')
  t.end()
})

test('an endpoint is set for a new peer, a new setting, or a session that has ended', (t) => {
  const now = 1_100
  const known = state(['two', present()])
  const setting = 'home.example.org:51871'
  t.equal(needsEndpoint(peer(), setting, known, now), false, 'where its packets come from is where it is')
  t.equal(needsEndpoint(peer(), undefined, known, now), false, 'also for an agent that starts again')
  t.equal(needsEndpoint(peer(), undefined, state(), now), true)
  t.equal(needsEndpoint(peer(), setting, state(['two', present({ endpoint: undefined })]), now), true)
  t.equal(needsEndpoint(peer(), '192.0.2.1:1', known, now), true)
  t.equal(needsEndpoint(peer(), setting, known, 1_180), false)
  t.equal(needsEndpoint(peer(), setting, known, 1_181), true, 'its name may have another address')
  t.equal(needsEndpoint(peer({ endpoint: undefined }), setting, known, 9_999), false)
  t.end()
})

test('a peer is out of contact if there was none, or if keepalives have stopped', (t) => {
  t.equal(contactOf(peer(), undefined, 2_000), 'no contact yet')
  t.equal(contactOf(peer(), present({ handshake: 0 }), 2_000), 'no contact yet')
  t.equal(contactOf(peer(), present(), 9_999), 'in contact', 'it may have nothing to send')
  for (const kept of [peer({ keepsAlive: true }), peer({ endpoint: undefined })]) {
    t.equal(contactOf(kept, present(), 1_300), 'in contact')
    t.equal(contactOf(kept, present(), 1_301), 'contact lost')
    t.equal(contactOf(kept, present(), 0), 'in contact', 'a clock that was set back')
  }
  t.equal(noContactWith(peer()), 'node pi-2 has not answered WireGuard at home.example.org:51871 yet')
  t.equal(noContactWith(peer({ endpoint: undefined })), 'node pi-2 has not connected by WireGuard yet')
  t.end()
})
