/** The vocabulary of the rules of Services: what one of them adds to the table, and the names that the chains share. */
import type { RuleChain, RuleElements } from '../rule-set.ts'

/** The sets and maps that all Services share. */
export const sharedNames = [
  'service-ips',
  'service-nodeports',
  'no-endpoint-services',
  'no-endpoint-nodeports',
  'firewall-ips',
  'cluster-ips',
  'hairpin-ips',
] as const
export type SharedElements = (typeof sharedNames)[number]

export type ServicePiece = {
  readonly chains: readonly (readonly [name: string, RuleChain])[]
  /** The clients of each endpoint; packets fill them. */
  readonly affinitySets: readonly (readonly [name: string, RuleElements])[]
  /** The value is '' in sets. Services may add the same element: it stands while one of them does. */
  readonly elements: readonly (readonly [SharedElements, key: string, value: string])[]
}

export const noPiece: ServicePiece = { chains: [], affinitySets: [], elements: [] }

/** By `concat`, whose arrays have room for what is in them only: a node keeps three of them for each Service. */
export function joinPieces(pieces: readonly ServicePiece[]): ServicePiece {
  return {
    chains: noPiece.chains.concat(...pieces.map(({ chains }) => chains)),
    affinitySets: noPiece.affinitySets.concat(...pieces.map(({ affinitySets }) => affinitySets)),
    elements: noPiece.elements.concat(...pieces.map(({ elements }) => elements)),
  }
}

/** `cluster` and `local` choose among endpoints, `external` decides between those two, `endpoint` keeps clients. */
export type ChainKind = 'cluster' | 'local' | 'external' | 'firewall' | 'endpoint'

/** `name`: of a Service's port (`shop/web/tcp/80`), or of an endpoint of it. A slash sets these chains apart from fixed ones. */
export function chainOf(kind: ChainKind, name: string): string {
  return `${kind}-${name}`
}

/** kube-proxy's bit too (`--iptables-masquerade-bit`). */
const masqueradeBit = '0x4000'
export const masqueradeLater = `meta mark set meta mark or ${masqueradeBit}`
/** NAT chains see only the first packet of a connection. */
export const isMasqueraded = `meta mark and ${masqueradeBit} != 0`
/** `fully-random`: two clients that take the same port at once would lose a packet (kubernetes/kubernetes#56903). */
export const masqueradeMarked = `${isMasqueraded} meta mark set meta mark xor ${masqueradeBit} masquerade fully-random`

export const rejectChain = 'service-reject'
