/** The pods of a disruption budget, counted as they change: to count them again costs the same however many there are. */
import type { OwnerReference } from '../../../api/meta.ts'
import type { StoredPod } from '../../store/store.ts'
import { type CountedPods, countsAsHealthy } from './disruption.ts'
import { controllerReferenceOf, type PodsByController } from './owner-scale.ts'

export interface BudgetPods extends CountedPods, PodsByController {
  get(name: string): StoredPod | undefined
  set(pod: StoredPod): void
  delete(name: string): boolean
}

/** All of one namespace. */
export function budgetPods(): BudgetPods {
  const pods = new Map<string, StoredPod>()
  /** By uid. */
  const controllers = new Map<string, { readonly reference: OwnerReference; readonly count: number }>()
  let [healthy, uncontrolled] = [0, 0]

  const count = (pod: StoredPod, change: 1 | -1) => {
    if (countsAsHealthy(pod)) healthy += change
    const reference = controllerReferenceOf(pod)
    if (reference === undefined) {
      uncontrolled += change
      return
    }
    const before = controllers.get(reference.uid)?.count ?? 0
    if (before + change > 0) controllers.set(reference.uid, { reference, count: before + change })
    else controllers.delete(reference.uid)
  }
  const remove = (name: string): boolean => {
    const pod = pods.get(name)
    if (pod !== undefined) count(pod, -1)
    return pods.delete(name)
  }
  return {
    get size() {
      return pods.size
    },
    get healthy() {
      return healthy
    },
    get uncontrolled() {
      return uncontrolled
    },
    controllers: () => controllers.values(),
    get: (name) => pods.get(name),
    set(pod) {
      remove(pod.metadata.name)
      pods.set(pod.metadata.name, pod)
      count(pod, 1)
    },
    delete: remove,
  }
}
