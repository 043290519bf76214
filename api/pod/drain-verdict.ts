/** Which pods of a machine a drain evicts, as `kubectl drain --ignore-daemonsets --delete-emptydir-data` chooses them. */
import type { Pod } from '../pod.ts'

export type DrainVerdict =
  | { readonly verdict: 'evict' }
  /** It stays, and does not hinder the drain. */
  | { readonly verdict: 'stay'; readonly because: string }
  /** Nothing would create it again: it is evicted only if the person agrees. */
  | { readonly verdict: 'ask'; readonly because: string }

/** What a drain does with this pod. */
export function drainVerdict({ metadata, status }: Pod): DrainVerdict {
  if (metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined)
    return { verdict: 'stay', because: 'static pod of the machine' }
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner?.kind === 'DaemonSet') return { verdict: 'stay', because: 'pod of a DaemonSet' }
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed'
  if (owner === undefined && !isOver) return { verdict: 'ask', because: 'no controller creates it again' }
  return { verdict: 'evict' }
}
