/** What CSI drivers ask for the mounts of a pod's volumes: tokens of its service account, and to be asked again. Pure. */
import type { Pod, Volume } from '../../../api/pod.ts'
import type { NodeClaim, NodeCsiDriver, NodeCsiVolume } from '../../../api/storage/node-claim.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { isObject, parseJson } from '../../../api/text/json.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { type PodTokens, type TokenProjection, tokenId, tokenNeed } from './token-needs.ts'

export type DriverSources = {
  readonly claims?: readonly NodeClaim[]
  readonly csiDrivers?: readonly NodeCsiDriver[]
}

export function driverTokens(pod: Pod, volume: Volume, sources: DriverSources): readonly TokenProjection[] {
  return factsOf(pod, volume, sources)?.tokens ?? []
}

/** A driver of its volumes is called while the pod runs: it mounts them again, or may have to expand them. */
export function callsDriver(pod: Pod, sources: DriverSources): boolean {
  return (pod.spec.volumes ?? []).some((volume) => isCalled(factsOf(pod, volume, sources)))
}

export function isCalled(facts: DriverFacts | undefined): boolean {
  return facts?.republish === true || facts?.size !== undefined
}

type DriverFacts = Pick<NodeCsiDriver, 'tokens' | 'republish'> & Pick<NodeCsiVolume, 'size'>

function factsOf({ metadata, spec }: Pod, volume: Volume, sources: DriverSources): DriverFacts | undefined {
  const { claims = [], csiDrivers = [] } = sources
  if (volume.csi !== undefined) return csiDrivers.find(({ name }) => name === volume.csi?.driver)
  const { namespace = 'default' } = metadata
  const [named] = claimsOfPod({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...spec, volumes: [volume] } })
  if (named === undefined) return undefined
  return claims.find((one) => one.name === named.name && one.namespace === namespace)?.volume?.csi
}

/** The attribute with which the driver receives them (podServiceAccountTokenAttrs in pkg/volume/csi/csi_mounter.go). */
export function tokenAttributes(
  asked: readonly TokenProjection[] = [],
  tokens: PodTokens = new Map(),
): { readonly texts: { readonly [key: string]: string } } | { readonly missing: string } {
  if (asked.length === 0) return { texts: {} }
  const statuses: [string, { readonly token: string; readonly expirationTimestamp: string }][] = []
  for (const one of asked) {
    const found = tokens.get(tokenId(tokenNeed(one))) ?? { missing: 'failed to fetch token: it was not requested' }
    if ('missing' in found) return found
    statuses.push([one.audience ?? '', { token: found.value, expirationTimestamp: expiryOf(found.value) }])
  }
  return { texts: { 'csi.storage.k8s.io/serviceAccount.tokens': JSON.stringify(Object.fromEntries(statuses)) } }
}

function expiryOf(token: string): string {
  const [, claims = ''] = token.split('.')
  const stated = parseJson(Buffer.from(claims, 'base64url').toString('utf8'))
  const seconds = isObject(stated) && typeof stated['exp'] === 'number' ? stated['exp'] : 0
  return rfc3339(seconds * 1000)
}
