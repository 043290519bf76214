/** The priority level and the flow of a request. As Kubernetes' API priority and fairness, with fixed levels. */
import {
  anonymous,
  bootstrappersGroup,
  type Identity,
  lapsedNodesGroup,
  mastersGroup,
  nodeOf,
} from '../../../api/identity.ts'
import type { Rate } from '../../../daemon/limits/token-bucket.ts'
import { addressKey } from './peer-address.ts'

/** Kubernetes' names where it has one; `bootstrap` is for joining machines. */
export type Level = 'exempt' | 'leader-election' | 'system' | 'bootstrap' | 'global-default' | 'catch-all'

export type Flow = {
  readonly level: Level
  /** Flows of one level do not take from one another. */
  readonly key: string
}

/**
 * A request costs one token, and one more for each 16 KiB of its body and each 64 KiB of its answer. Seats are requests
 * that run at one time.
 */
export type FlowShare = { readonly rate: Rate; readonly seats: number; readonly watches: number }
export type LevelLimits = {
  /** Of one flow. */
  readonly flow: FlowShare
  /** Of all flows of the level together. */
  readonly level: FlowShare
}

/** The levels that have limits. */
export type LimitedLevel = Exclude<Level, 'exempt'>
export type FlowLimits = { readonly [L in LimitedLevel]: LevelLimits }

/**
 * A node renews a lease each 10 s and otherwise asks when it starts, joins or runs static pods; a kubelet's own default
 * is 50 requests a second with a burst of 100. A token may serve a thousand machines behind one address, of three requests each.
 */
export const defaultFlowLimits: FlowLimits = {
  'leader-election': {
    flow: { rate: { perSecond: 2, burst: 20 }, seats: 4, watches: 0 },
    level: { rate: { perSecond: 4_000, burst: 20_000 }, seats: 2_000, watches: 0 },
  },
  system: {
    flow: { rate: { perSecond: 50, burst: 500 }, seats: 10, watches: 20 },
    level: { rate: { perSecond: 1_000, burst: 20_000 }, seats: 200, watches: 2_000 },
  },
  bootstrap: {
    flow: { rate: { perSecond: 50, burst: 500 }, seats: 50, watches: 0 },
    level: { rate: { perSecond: 200, burst: 2_000 }, seats: 100, watches: 0 },
  },
  'global-default': {
    flow: { rate: { perSecond: 20, burst: 100 }, seats: 10, watches: 10 },
    level: { rate: { perSecond: 100, burst: 500 }, seats: 40, watches: 40 },
  },
  'catch-all': {
    flow: { rate: { perSecond: 10, burst: 100 }, seats: 10, watches: 0 },
    level: { rate: { perSecond: 100, burst: 500 }, seats: 40, watches: 0 },
  },
}

/** Administrators are exempt from rates and seats; only their watches are bounded, for each of them holds memory. */
export const mostExemptWatches = 2_000

/** What of a route decides about its share. */
type Routed = {
  readonly kind: string
  readonly verb?: string
  readonly resource?: string | { readonly name: string }
}

/** The share of this identity's request. `address`: the other end of its connection. */
export function flowOf(identity: Identity, route: Routed, address: string | undefined): Flow {
  const { user, groups } = identity
  if (groups.includes(mastersGroup)) return { level: 'exempt', key: user }
  if (nodeOf(identity) !== undefined) {
    const { kind, resource, verb } = route
    const name = typeof resource === 'object' ? resource.name : undefined
    const isLease = kind === 'resource' && name === 'leases' && verb !== 'watch'
    return { level: isLease ? 'leader-election' : 'system', key: user }
  }
  if (groups.includes(bootstrappersGroup)) return { level: 'bootstrap', key: `${user} ${addressKey(address)}` }
  if (groups.includes(lapsedNodesGroup)) return { level: 'bootstrap', key: user }
  if (user === anonymous.user) return strangersFlow(address)
  return { level: 'global-default', key: user }
}

/** Of a client without credentials, or with invalid ones. */
export function strangersFlow(address: string | undefined): Flow {
  return { level: 'catch-all', key: addressKey(address) }
}
