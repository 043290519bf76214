/** A double of WireGuard on a machine: it keeps what it is given, as the kernel does. */
import type { WireguardChange, WireguardPeerState, WireguardState } from '../wireguard/wireguard-plan.ts'
import type { WireguardLink } from '../wireguard/wireguard-sync.ts'

export const ownKey = 'Sd0W8cOi4DoBtBPwLJ1V/EWyOhB4qDSLs7ro0dCuUDw='

export type FakeWireguard = WireguardLink & {
  readonly changes: WireguardChange[]
  readonly names: Map<string, string>
  state: WireguardState | undefined
  problem: string | undefined
  /** What the kernel learns when packets of this peer arrive. */
  contact(publicKey: string, learned: Partial<WireguardPeerState>): void
}

export function fakeWireguard(): FakeWireguard {
  const changed = (state: WireguardState, change: WireguardChange): WireguardState => {
    const peers = new Map(state.peers)
    if (change.change === 'setDevice') return { ...state, publicKey: ownKey, port: change.port }
    if (change.change === 'removePeer') peers.delete(change.publicKey)
    else {
      const { change: _, publicKey, ...given } = change
      const before = peers.get(publicKey) ?? { endpoint: undefined, ranges: [], handshake: 0, keepaliveSeconds: 0 }
      peers.set(publicKey, { ...before, ...given })
    }
    return { ...state, peers }
  }
  const fake: FakeWireguard = {
    changes: [],
    names: new Map(),
    state: { publicKey: undefined, port: 0, peers: new Map() },
    problem: undefined,
    async publicKey() {
      if (fake.problem !== undefined) throw new Error(fake.problem)
      return ownKey
    },
    read: async () => fake.state,
    async apply(changes) {
      fake.changes.push(...changes)
      for (const change of changes) fake.state = fake.state && changed(fake.state, change)
    },
    resolve: async (host) => (/^[\d.]+$/.test(host) ? host : fake.names.get(host)),
    contact(publicKey, learned) {
      const before = fake.state?.peers.get(publicKey)
      if (fake.state === undefined || before === undefined) throw new Error(`No peer ${publicKey}`)
      fake.state = { ...fake.state, peers: new Map([...fake.state.peers, [publicKey, { ...before, ...learned }]]) }
    },
  }
  return fake
}
