/**
 * One of several controllers. The one that leads answers everything; the others answer reads and watches of what the store has, and
 * pass everything else on: admission, addresses of Services, quotas, leases and the sessions of nodes have state in the leader.
 */
import { ApiError, isApiError } from '../../../api/api-error.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Freshness } from '../../store/election/election.ts'
import { type ResourceRoute, subresourceOf } from '../handlers/strategy.ts'

/** All PEM. */
export type ControllerCredentials = { readonly ca: string; readonly certificate: string; readonly key: string }

export interface Replica {
  isLeading(): boolean
  /** `https://HOST:PORT` of the other controller that leads; undefined: none is known. */
  leader(): string | undefined
  readonly freshness: Freshness
  /** Whether another controller of the fleet has the key of this certificate (SHA-256, hexadecimal). */
  isController(fingerprint: string): Promise<boolean>
  /** What this controller shows to the leader, and the authorities that it accepts. */
  credentials(): ControllerCredentials
}

/** What of a route decides about its controller. */
type Routed =
  | ResourceRoute
  | {
      readonly kind:
        | 'path'
        | 'review'
        | 'not-allowed'
        | 'session'
        | 'release'
        | 'usage'
        | 'component'
        | 'dashboard'
        | 'aggregated'
    }

/** Whether every controller answers this: it reads what the store has, or this process. */
export function isAnsweredHere(route: Routed): boolean {
  switch (route.kind) {
    case 'path':
    case 'review':
    case 'not-allowed':
      return true
    case 'session':
    case 'release':
    case 'usage':
    case 'component':
    case 'dashboard':
    case 'aggregated':
      return false
    case 'resource': {
      const { verb, resource, subresource } = route
      // Only the leader has those of nodes, and gives the versions of all.
      if (resource.id === 'leases') return false
      // The webhook between its versions is reached through nodes, whose sessions the leader has.
      if (resource.defined?.conversion?.client.service !== undefined) return false
      const access = subresourceOf(resource, subresource)?.access
      if (access === 'get' || access === 'connect' || access === 'proxy' || access === 'create') return false
      return verb === 'get' || verb === 'list' || verb === 'watch'
    }
  }
}

/**
 * Waits until this controller has what the read may expect: version N, or, without a version, everything that was written before. As
 * the watch cache of kube-apiserver. Where the store does not answer, what is in memory is answered; `/readyz` fails then.
 */
export async function waitUntilReadable(
  route: Routed,
  query: URLSearchParams,
  { freshness }: Pick<Replica, 'freshness'>,
  log: Pick<Log, 'debug'>,
): Promise<void> {
  if (route.kind !== 'resource' && route.kind !== 'review') return
  const version = query.get('resourceVersion') ?? ''
  if (version === '0') return
  const known = Number(version)
  try {
    if (version === '') await freshness.latest()
    else if (Number.isSafeInteger(known) && !(await freshness.until(known))) throw tooLarge(version)
  } catch (error) {
    if (isApiError(error)) throw error
    log.debug('Objects in memory may be behind the store', { error })
  }
}

/** Waits until this controller has what was written before the call. Where the store does not answer, what is in memory counts. */
export async function waitUntilLatest(
  { freshness }: Pick<Replica, 'freshness'>,
  log: Pick<Log, 'debug'>,
): Promise<void> {
  await freshness.latest().catch((error: unknown) => log.debug('Objects in memory may be behind the store', { error }))
}

/** Clients that have seen a version are not led back behind it (storage.NewTooLargeResourceVersionError). */
function tooLarge(version: string): ApiError {
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }]
  return new ApiError('Timeout', `Too large resource version: ${version}`, { retryAfterSeconds: 1, causes })
}

/** Throws ServiceUnavailable while there is none. */
export function leaderAddress(replica: Pick<Replica, 'leader'>): string {
  const leader = replica.leader()
  if (leader === undefined) throw noLeader()
  return leader
}

/** Throws ServiceUnavailable where this controller may be behind: its sender's rights to log in may have ended since. */
export async function refuseStale({ freshness }: Pick<Replica, 'freshness'>): Promise<void> {
  if (await freshness.latest().catch(() => false)) return
  const message = 'This controller cannot reach etcd and forwards no requests: try again'
  throw new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 })
}

export function strangeController(): ApiError {
  const message = 'The controller that forwarded the request is not registered yet: try again'
  return new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 })
}

export function noLeader(): ApiError {
  const message =
    'No controller leads at the moment, for example because etcd cannot be reached: reads are answered; try writes again later'
  return new ApiError('ServiceUnavailable', message, { retryAfterSeconds: 1 })
}
