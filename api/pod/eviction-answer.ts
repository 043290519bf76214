/** What becomes of a request to evict a pod. */

export type EvictedPod = { readonly namespace: string; readonly name: string; readonly uid: string }

export type EvictionAnswer = {
  /** `held`: it may be evicted later. `refused`: the reason is not one of time, as far as the code shows. */
  readonly outcome: 'evicted' | 'held' | 'refused'
  /** The status of HTTP. */
  readonly code: number
}

/** 404: the pod is gone already. 429: a disruption budget does not allow it yet. 409: it is another pod, or was changed. */
export function evictionAnswer(code: number): EvictionAnswer {
  if (code === 201 || code === 404) return { outcome: 'evicted', code }
  return { outcome: code === 429 || code === 409 ? 'held' : 'refused', code }
}
