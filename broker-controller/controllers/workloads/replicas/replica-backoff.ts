/** When pods are created in place of those that failed soon after their creation: nodes may reject each of them. Pure. */
import type { Pod } from '../../../../api/pod.ts'
import { longestBackoffMs } from '../../../../daemon/backoff.ts'
import { eachInTurns } from '../../../../daemon/limits/turn-limit.ts'

/** Pods that were created earlier do not count: a pod that ran for long is replaced at once. */
const windowMs = 30 * 60_000
/** The longest wait is that between the starts of a container that crashes. */
const waits = { firstMs: 1_000, maxMs: 5 * 60_000 }

/**
 * In how many ms pods may be created; 0: now. Kubernetes does not wait: the pods of a ReplicaSet that tolerates the taint of a full
 * disk fail several times a second, and each one is an object in the store. Here as many failures as there are replicas are one
 * round; the first is free, and the wait doubles with each further one. Failed pods that are deleted no longer count.
 */
export async function replacementWaitMs(failed: readonly Pod[], replicas: number, nowMs: number): Promise<number> {
  let [count, newestMs] = [0, 0]
  await eachInTurns(failed, ({ metadata }) => {
    const createdMs = Date.parse(metadata.creationTimestamp ?? '')
    // A pod of the future is from before the date was set back: how long ago is not known.
    if (createdMs > nowMs || !(createdMs > nowMs - windowMs)) return
    count += 1
    newestMs = Math.max(newestMs, createdMs)
  })
  const rounds = Math.ceil(count / Math.max(1, replicas))
  if (rounds < 2) return 0
  const delayMs = longestBackoffMs(rounds - 2, waits)
  return Math.max(0, newestMs + delayMs - nowMs)
}
