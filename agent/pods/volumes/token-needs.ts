/** Which tokens of service accounts the volumes of a pod contain, and when another one is due. Pure. */
import { createHash } from 'node:crypto'
import type { Container, Pod, Volume } from '../../../api/pod.ts'
import { isObject, parseJson } from '../../../api/text/json.ts'

/** `audience` '': the API itself. */
export type TokenNeed = { readonly audience: string; readonly expirationSeconds: number }

/** By `tokenId`. Absent: it was not requested yet. */
export type PodTokens = ReadonlyMap<string, { readonly value: string } | { readonly missing: string }>

const hourSeconds = 3600
const shortestMs = 30_000

/** The same for all volumes of a pod that need the same token. Also the name of a file. */
export function tokenId({ audience, expirationSeconds }: TokenNeed): string {
  return createHash('sha256')
    .update(JSON.stringify([audience, expirationSeconds]))
    .digest('hex')
    .slice(0, 16)
}

export type TokenProjection = { readonly audience?: string; readonly expirationSeconds?: number }

export function tokenNeed({ audience = '', expirationSeconds = hourSeconds }: TokenProjection): TokenNeed {
  return { audience, expirationSeconds }
}

/** What the driver of a volume asks for (`driver-tokens.ts`). */
export type DriverTokensOf = (pod: Pod, volume: Volume) => readonly TokenProjection[]

/** By `tokenId`: of all volumes that a container of the pod mounts, or only of those that `container` mounts. */
export function tokenNeeds(
  pod: Pod,
  driverTokens: DriverTokensOf,
  container?: Container,
): ReadonlyMap<string, TokenNeed> {
  const { spec } = pod
  const containers = container ? [container] : [...(spec.initContainers ?? []), ...spec.containers]
  const mounted = new Set(containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)))
  const needs = (spec.volumes ?? [])
    .filter(({ name }) => mounted.has(name))
    .flatMap((volume) => [...needsOf(volume), ...driverTokens(pod, volume).map(tokenNeed)])
  return new Map(needs.map((need) => [tokenId(need), need]))
}

function needsOf({ projected }: Volume): readonly TokenNeed[] {
  return (projected?.sources ?? []).flatMap(({ serviceAccountToken: token }) => (token ? [tokenNeed(token)] : []))
}

/**
 * The time until another token is requested: 80 % of its life, and `mostMs` at most (requiresRefresh in
 * pkg/kubelet/token/token_manager.go); up to a tenth earlier, so that the nodes of a fleet do not all ask at one moment. Its life
 * is what the token itself states: the controller issues those of the API for longer than they are requested for.
 */
export function renewalInMs(
  token: string,
  { expirationSeconds }: TokenNeed,
  { mostMs, random }: { readonly mostMs: number; readonly random: () => number },
): number {
  const [, claims = ''] = token.split('.')
  const stated = parseJson(Buffer.from(claims, 'base64url').toString('utf8'))
  const { iat, exp } = isObject(stated) ? stated : {}
  const statedSeconds = typeof iat === 'number' && typeof exp === 'number' ? exp - iat : 0
  const lifeMs = (statedSeconds > 0 ? statedSeconds : expirationSeconds) * 1000
  const dueMs = Math.min(0.8 * lifeMs, mostMs)
  return Math.max(shortestMs, dueMs * (1 - random() / 10))
}
