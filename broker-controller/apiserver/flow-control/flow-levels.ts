/** The priority level and the flow of a request. As Kubernetes' API priority and fairness, with fixed levels. */
import { ownerOf, serviceAccountOf } from '../../../api/access/service-account-names.ts'
import {
  anonymous,
  bootstrappersGroup,
  type Identity,
  lapsedNodesGroup,
  mastersGroup,
  nodeOf,
} from '../../../api/identity.ts'
import type { Rate } from '../../../daemon/limits/token-bucket.ts'
import { addressKey } from '../authentication/peer-address.ts'

/** Kubernetes' names where it has one; `bootstrap` is for joining machines. `workload-low` is for service accounts, as there. */
export type Level =
  | 'exempt'
  | 'leader-election'
  | 'system'
  | 'bootstrap'
  | 'workload-low'
  | 'global-default'
  | 'catch-all'

export type Flow = {
  readonly level: Level
  /** Flows of one level do not take from one another. */
  readonly key: string
  /** Whose fair share of the level it takes from, together with the other flows of this owner; undefined: its own. */
  readonly owner?: string
}

/**
 * A request costs one token, and one more for each 16 KiB of its body and each 64 KiB of its answer. Seats are requests
 * that run at one time. Streams are answers that last, by their memory (`streamWeights`).
 */
export type FlowShare = { readonly rate: Rate; readonly seats: number; readonly streams: number }
export type LevelLimits = {
  /** Limits of one flow. */
  readonly flow: FlowShare
  /** Limits of all flows of the level together, whose owners share it fairly (`daemon/limits/fair-share.ts`). */
  readonly level: FlowShare
  /** Requests that have no token or seat yet wait this long for one; undefined: they are refused at once. */
  readonly queue?: { readonly longestMs: number; readonly perFlow: number; readonly inLevel: number }
}

/**
 * What a lasting answer holds in memory while it waits, in units of about 64 KiB (1,500 watches and logs held 82 MiB): a watch its connection and its place in the history;
 * a log, a shell or a proxied answer two connections, one of them to the node; a page of the dashboard the changes that wait for it.
 * Its weight keeps the pages of a level below the number that the dashboard serves, which leaves some to administrators.
 */
export const streamWeights = { watch: 1, connection: 2, dashboard: 8 } as const

/** The levels that have limits. */
export type LimitedLevel = Exclude<Level, 'exempt'>
export type FlowLimits = { readonly [L in LimitedLevel]: LevelLimits }

const streamUnitBytes = 64 * 1024
/** Watches of service accounts may hold this part of the memory. */
const memoryOfStreams = 1 / 16
const [fewestStreams, mostStreams] = [400, 4_000]

/**
 * A node renews a lease each 10 s and otherwise asks when it starts, joins or runs static pods; a kubelet's own default
 * is 50 requests a second with a burst of 100. A token may serve a thousand machines behind one address, of three requests each.
 */
export const defaultFlowLimits: FlowLimits = {
  'leader-election': {
    flow: { rate: { perSecond: 2, burst: 20 }, seats: 4, streams: 0 },
    level: { rate: { perSecond: 4_000, burst: 20_000 }, seats: 2_000, streams: 0 },
  },
  system: {
    flow: { rate: { perSecond: 50, burst: 500 }, seats: 10, streams: 20 },
    level: { rate: { perSecond: 1_000, burst: 20_000 }, seats: 200, streams: 2_000 },
  },
  bootstrap: {
    flow: { rate: { perSecond: 50, burst: 500 }, seats: 50, streams: 0 },
    level: { rate: { perSecond: 200, burst: 2_000 }, seats: 100, streams: 0 },
  },
  'workload-low': serviceAccountLimits(2 ** 30),
  // Streams of the level hold 50 MiB.
  'global-default': {
    flow: { rate: { perSecond: 50, burst: 200 }, seats: 20, streams: 400 },
    level: { rate: { perSecond: 100, burst: 500 }, seats: 40, streams: 800 },
  },
  // Streams are those of sessions of the dashboard that the leader identifies.
  'catch-all': {
    flow: { rate: { perSecond: 10, burst: 100 }, seats: 10, streams: 80 },
    level: { rate: { perSecond: 100, burst: 500 }, seats: 40, streams: 400 },
  },
}

/**
 * The limits of service accounts on a machine with so much memory. Operators open 15 to 60 watches, and client libraries of today
 * send without a limit of their own and rely on the server's queues (controller-runtime 0.21): a request waits for its turn. Who may
 * create one account in a namespace may create any number, so the accounts of a namespace share the level as one owner.
 */
export function serviceAccountLimits(memoryBytes: number): LevelLimits {
  const affordable = Math.floor((memoryBytes * memoryOfStreams) / streamUnitBytes)
  const streams = Math.min(mostStreams, Math.max(fewestStreams, affordable))
  return {
    flow: { rate: { perSecond: 50, burst: 500 }, seats: 20, streams: 200 },
    level: { rate: { perSecond: 300, burst: 3_000 }, seats: 80, streams },
    queue: { longestMs: 5_000, perFlow: 100, inLevel: 500 },
  }
}

/** Administrators are exempt from rates and seats; only their watches are bounded, for each of them holds memory. */
export const mostExemptWatches = 2_000

/** What of a route decides about its share. */
type Routed = {
  readonly kind: string
  readonly path?: string
  readonly verb?: string
  readonly resource?: string | { readonly name: string }
}

/**
 * The share of this identity's request. `identity`: as authenticated, for an impersonated user needs not exist, and a client could
 * choose any number of them. `address`: the other end of its connection.
 */
export function flowOf(identity: Identity, route: Routed, address: string | undefined): Flow {
  const { user, groups } = identity
  if (isProbe(route)) return { level: 'exempt', key: 'probes' }
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
  return serviceAccountOf(user) === undefined
    ? { level: 'global-default', key: user }
    : { level: 'workload-low', key: user, owner: ownerOf(user) }
}

/**
 * As Kubernetes' FlowSchema `probes`: behind a load balancer all clients have its address. A stranger that uses up the rate of that address
 * must not make it take this controller away from everyone. These answers cost no more than a refusal (`sharedCheck`).
 */
function isProbe({ kind, verb, path = '' }: Routed): boolean {
  return kind === 'path' && verb === 'get' && ['/healthz', '/livez', '/readyz'].includes(path)
}

/**
 * Whose streams a request opens on nodes: its sender's, as for its share of the API. An administrator has the shares of all whom it
 * impersonates.
 */
export function streamOwner(authenticated: Identity, acting: Identity): string {
  return ownerOf((authenticated.groups.includes(mastersGroup) ? acting : authenticated).user)
}

/**
 * Whose connections one with these credentials belongs to; undefined: a stranger's. Machines that join have short connections, and
 * the holder of their token may be anywhere.
 */
export function connectionOwner({ user, groups }: Identity): string | undefined {
  const isStranger = user === anonymous.user || groups.includes(bootstrappersGroup) || groups.includes(lapsedNodesGroup)
  return isStranger ? undefined : ownerOf(user)
}

/** Flow of a client with no credentials or with invalid ones. */
export function strangersFlow(address: string | undefined): Flow {
  return { level: 'catch-all', key: addressKey(address) }
}
