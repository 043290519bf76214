/** From what WireGuard has to what is wanted: changes that leave what it learned as it is. */
import type { WireguardPeer, WireguardTunnel } from '../peers/tunnels.ts'

/** As `wg show` prints it. */
export type WireguardState = {
  /** Public key of this node; undefined: it has no key yet. */
  readonly publicKey: string | undefined
  readonly port: number
  /** By their public keys. */
  readonly peers: ReadonlyMap<string, WireguardPeerState>
}

export type WireguardPeerState = {
  /** `ADDRESS:PORT` that packets for it are sent to: as it was set, or where its last packet came from. */
  readonly endpoint: string | undefined
  /** Sorted. */
  readonly ranges: readonly string[]
  /** Seconds since 1970; 0: there was none. */
  readonly handshake: number
  readonly keepaliveSeconds: number
}

export type WireguardChange =
  /** Its private key, and the port. */
  | { readonly change: 'setDevice'; readonly port: number }
  | {
      readonly change: 'setPeer'
      readonly publicKey: string
      /** undefined: unchanged. */
      readonly endpoint?: string
      readonly ranges?: readonly string[]
      readonly keepaliveSeconds?: number
    }
  | { readonly change: 'removePeer'; readonly publicKey: string }

/** Interval of WireGuard keepalives: NATs keep a UDP mapping open for at least 30 s. */
const keepaliveSeconds = 25
/** Life of a session without a handshake (WireGuard's protocol, REJECT_AFTER_TIME). */
const sessionSeconds = 180
/** With keepalives there is a handshake every two minutes. */
const silentSeconds = 300

/**
 * Is the endpoint of this peer to be resolved and set? Of one that answers only after its setting has changed: WireGuard follows a peer to
 * the address that its packets come from. `applied`: the setting that was used last; undefined: it is not known.
 */
export function needsEndpoint(
  { publicKey, endpoint }: WireguardPeer,
  applied: string | undefined,
  { peers }: WireguardState,
  nowSeconds: number,
): boolean {
  if (endpoint === undefined) return false
  const present = peers.get(publicKey)
  if (present?.endpoint === undefined || (applied !== undefined && applied !== endpoint)) return true
  return nowSeconds - present.handshake > sessionSeconds
}

export type WantedWireguard = Pick<WireguardTunnel, 'port' | 'peers'> & { readonly publicKey: string }

/** `endpoints`: `ADDRESS:PORT` by public key, of the peers that need it; undefined where the name has no address. */
export function planWireguard(
  wanted: WantedWireguard,
  state: WireguardState,
  endpoints: ReadonlyMap<string, string | undefined>,
): readonly WireguardChange[] {
  const { publicKey, port, peers } = wanted
  const isDevice = state.publicKey === publicKey && state.port === port
  const kept = new Set(peers.map((peer) => peer.publicKey))
  const gone = [...state.peers.keys()].filter((key) => !kept.has(key))
  return [
    ...(isDevice ? [] : [{ change: 'setDevice', port } as const]),
    ...gone.map((key) => ({ change: 'removePeer', publicKey: key }) as const),
    ...peers.flatMap((peer) => peerChange(peer, state.peers.get(peer.publicKey), endpoints.get(peer.publicKey))),
  ]
}

function peerChange(
  peer: WireguardPeer,
  present: WireguardPeerState | undefined,
  endpoint: string | undefined,
): readonly WireguardChange[] {
  const keepalive = keepaliveOf(peer, present)
  const change = {
    ...(endpoint !== undefined && endpoint !== present?.endpoint && { endpoint }),
    ...(present?.ranges.join() !== peer.ranges.join() && { ranges: peer.ranges }),
    ...((present?.keepaliveSeconds ?? 0) !== keepalive && { keepaliveSeconds: keepalive }),
  }
  if (present !== undefined && Object.keys(change).length === 0) return []
  return [{ change: 'setPeer', publicKey: peer.publicKey, ...change }]
}

/** Until the first handshake too: it makes WireGuard begin one, and so shows whether the peer can be reached. */
function keepaliveOf(peer: WireguardPeer, present: WireguardPeerState | undefined): number {
  const isUnproven = peer.endpoint !== undefined && (present?.handshake ?? 0) === 0
  return peer.keepsAlive || isUnproven ? keepaliveSeconds : 0
}

export type PeerContact = 'in contact' | 'no contact yet' | 'contact lost'

/** A peer without keepalives at either end has no handshake while there are no packets. */
export function contactOf(
  peer: WireguardPeer,
  present: WireguardPeerState | undefined,
  nowSeconds: number,
): PeerContact {
  const handshake = present?.handshake ?? 0
  if (handshake === 0) return 'no contact yet'
  const isKept = peer.keepsAlive || peer.endpoint === undefined
  return isKept && nowSeconds - handshake > silentSeconds ? 'contact lost' : 'in contact'
}

/** Why pods behind a peer may not be reached, as a sentence. */
export function noContactWith({ name, endpoint }: WireguardPeer): string {
  return endpoint === undefined
    ? `node ${name} has not connected by WireGuard yet`
    : `node ${name} has not answered WireGuard at ${endpoint} yet`
}
