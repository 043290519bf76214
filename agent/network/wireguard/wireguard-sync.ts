/** Brings the peers of WireGuard in line with those that are wanted, and keeps in mind which of them never answered. */
import { noEndpoint, parseWireguardEndpoint } from '../../../api/network/wireguard.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { WireguardTunnel } from '../peers/tunnels.ts'
import {
  contactOf,
  needsEndpoint,
  noContactWith,
  planWireguard,
  type WireguardChange,
  type WireguardState,
} from './wireguard-plan.ts'

/** WireGuard on this machine. */
export interface WireguardLink {
  /** Public key of this node. Creates the key if it is missing. Rejects with the reason and a remedy. */
  publicKey(): Promise<string>
  /** undefined: there is no interface. */
  read(): Promise<WireguardState | undefined>
  apply(changes: readonly WireguardChange[]): Promise<void>
  /** The address of a host, one of IPv6 in brackets; undefined: it has none now. */
  resolve(host: string): Promise<string | undefined>
}

export interface WireguardSync {
  /** Takes the changes that are missing. Without an interface it does nothing. */
  sync(wanted: WireguardTunnel | undefined): Promise<void>
  /** A sentence for each peer that was set up some time ago and never answered. */
  silent(): readonly string[]
}

/** For the first handshake, which WireGuard tries every 5 s. */
const patienceMs = 20_000

export type WireguardSyncNeeds = {
  readonly link: WireguardLink
  readonly clock: Pick<Clock, 'monotonicMs' | 'wallMs'>
  readonly log: Log
}

export function wireguardSync({ link, clock, log }: WireguardSyncNeeds): WireguardSync {
  /** By public key: the endpoint as it is wanted, when it was resolved last, or `none`. */
  const applied = new Map<string, string>()
  /** By public key: since when it is a peer, in monotonic milliseconds. */
  const since = new Map<string, number>()
  let silent: readonly string[] = []

  /** `ADDRESS:PORT` by public key, of the peers that need it; undefined: its name has none now. */
  const resolved = async ({ peers }: WireguardTunnel, state: WireguardState) => {
    const nowSeconds = clock.wallMs() / 1000
    const needed = peers.flatMap((peer) => {
      const { publicKey, endpoint = '' } = peer
      const parsed = parseWireguardEndpoint(endpoint)
      const isNeeded = needsEndpoint(peer, applied.get(publicKey), state, nowSeconds)
      return parsed === undefined || !isNeeded ? [] : [{ publicKey, ...parsed }]
    })
    const found = needed.map(async ({ publicKey, host, port }): Promise<[string, string | undefined]> => {
      const address = await link.resolve(host)
      return [publicKey, address && `${address}:${port}`]
    })
    return new Map(await Promise.all(found))
  }

  const remember = ({ peers }: WireguardTunnel, endpoints: ReadonlyMap<string, string | undefined>) => {
    const keys = new Set(peers.map(({ publicKey }) => publicKey))
    for (const key of since.keys()) {
      if (keys.has(key)) continue
      since.delete(key)
      applied.delete(key)
    }
    for (const { publicKey, endpoint } of peers) {
      if (!since.has(publicKey)) since.set(publicKey, clock.monotonicMs())
      // Includes peers that an earlier agent set up.
      const isApplied = !endpoints.has(publicKey) || endpoints.get(publicKey) !== undefined
      if (isApplied) applied.set(publicKey, endpoint ?? noEndpoint)
    }
  }

  return {
    async sync(wanted) {
      silent = []
      if (wanted === undefined) {
        since.clear()
        applied.clear()
        return
      }
      const publicKey = await link.publicKey()
      const state = await link.read()
      if (state === undefined) return
      const endpoints = await resolved(wanted, state)
      const changes = planWireguard({ ...wanted, publicKey }, state, endpoints)
      if (changes.length > 0) {
        await link.apply(changes)
        log.info('WireGuard changed', { changes: changes.length, peers: wanted.peers.length })
      }
      remember(wanted, endpoints)
      const before = clock.monotonicMs() - patienceMs
      silent = wanted.peers.flatMap((peer) => {
        const isNew = (since.get(peer.publicKey) ?? 0) > before
        const contact = contactOf(peer, state.peers.get(peer.publicKey), clock.wallMs() / 1000)
        return isNew || contact !== 'no contact yet' ? [] : [noContactWith(peer)]
      })
    },
    silent: () => silent,
  }
}
