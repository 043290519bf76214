/** How much of very many pods a decision reads in one of its steps. */
import type { Pod } from '../../api/pod.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'

/** The most reads of the metadata of a pod in one step of the decision. */
export function mostReadInStep<P extends Pod, T>(pods: readonly P[], decide: (pods: readonly P[]) => Steps<T>): number {
  let [read, most] = [0, 0]
  const counting = pods.map((pod) => ({
    ...pod,
    get metadata() {
      read++
      return pod.metadata
    },
  }))
  for (const steps = decide(counting); steps.next().done !== true; read = 0) most = Math.max(most, read)
  return Math.max(most, read)
}
