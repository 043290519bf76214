/** The pods by the claims that they use: the controllers of volumes share one index. */
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import { claimsOfPod } from '../../../api/storage/pod-claims.ts'
import { type InformerNeeds, informer, keyText } from '../../store/informer.ts'
import type { ObjectKey, StoredPod } from '../../store/store.ts'

export interface ClaimPods {
  /** In no order. */
  podsOf(claim: ObjectKey): Iterable<StoredPod>
  get(key: ObjectKey): StoredPod | undefined
  catchUp(): void
  /** Calls the listener for each pod that uses claims, after each change of it; `claims`: their keys, as text. */
  onChange(listener: PodOfClaimsListener): void
  readonly listed: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

export type PodOfClaimsListener = (
  claims: readonly string[],
  present: StoredPod | undefined,
  previous: StoredPod | undefined,
) => void

export function claimPods(needs: InformerNeeds): ClaimPods {
  const byClaim: PodsByClaim = new Map()
  const listeners: PodOfClaimsListener[] = []
  const pods = informer(needs, 'pods', (present, previous) => {
    const before = previous === undefined ? [] : removeUser(byClaim, previous)
    const after = present === undefined ? [] : addUser(byClaim, present)
    const claims = [...new Set([...before, ...after])]
    if (claims.length > 0) for (const listener of listeners) listener(claims, present, previous)
  })
  return {
    podsOf: (claim) => byClaim.get(keyText(claim))?.values() ?? [],
    get: pods.get,
    catchUp: pods.catchUp,
    onChange: (listener) => void listeners.push(listener),
    listed: pods.listed,
    run: pods.run,
  }
}

type PodsByClaim = Map<string, Map<string, StoredPod>>

/** Gives the keys of its claims. */
function removeUser(byClaim: PodsByClaim, pod: StoredPod): readonly string[] {
  const claims = claimKeysOf(pod)
  for (const claim of claims) {
    const users = byClaim.get(claim)
    users?.delete(keyText(pod.metadata))
    if (users?.size === 0) byClaim.delete(claim)
  }
  return claims
}

/** Gives the keys of its claims. */
function addUser(byClaim: PodsByClaim, pod: StoredPod): readonly string[] {
  const claims = claimKeysOf(pod)
  for (const claim of claims) {
    const users = byClaim.get(claim) ?? new Map<string, StoredPod>()
    byClaim.set(claim, users.set(keyText(pod.metadata), pod))
  }
  return claims
}

/** It uses its volumes no longer: it has ended, or it is being deleted and none of its containers runs (IsPodTerminated). */
export function hasLetGo(pod: StoredPod): boolean {
  if (isFinished(pod)) return true
  const { containerStatuses = [] } = pod.status ?? {}
  return (
    pod.metadata.deletionTimestamp !== undefined && containerStatuses.every(({ state }) => state?.running === undefined)
  )
}

function claimKeysOf(pod: StoredPod): readonly string[] {
  const { namespace = '' } = pod.metadata
  return claimsOfPod(pod).map(({ name }) => keyText({ namespace, name }))
}
