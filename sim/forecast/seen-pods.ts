/** The pods of a fleet as they are stored, with the containers of them that run on machines. */
import type { Pod } from '../../api/pod.ts'
import { isPodCompleted, isPodOver, isPodReady, unplacedBecause, type WorkloadState } from './pod-changes.ts'
import { textOfWorkload, type WorkloadName } from './workload-owners.ts'

export interface SeenPods {
  /** `name`: `namespace/name`. */
  keep(name: string, pod: Pod, workload: WorkloadName): void
  /** The pod that had this name. */
  drop(name: string): Pod | undefined
  dropAll(): void
  ran(podUID: string, containerID: string, isRunning: boolean): void
  get(uid: string): Pod | undefined
  has(workload: WorkloadName): boolean
  count(workload: WorkloadName): Pick<WorkloadState, 'ready' | 'running'>
  problemsOf(workload: WorkloadName): readonly string[]
  byMachine(): ReadonlyMap<string, number>
}

export function seenPods(): SeenPods {
  const pods = new Map<string, { readonly pod: Pod; readonly workload: string }>()
  const uids = new Map<string, string>()
  /** Ids of the containers that run, by the uid of their pod. */
  const running = new Map<string, Set<string>>()
  const of = (workload: WorkloadName) => [...pods.values()].filter((one) => one.workload === textOfWorkload(workload))
  return {
    keep(name, pod, workload) {
      const { uid = '' } = pod.metadata
      uids.set(name, uid)
      pods.set(uid, { pod, workload: textOfWorkload(workload) })
    },
    drop(name) {
      const uid = uids.get(name) ?? ''
      const dropped = pods.get(uid)?.pod
      pods.delete(uid)
      uids.delete(name)
      return dropped
    },
    dropAll() {
      pods.clear()
      uids.clear()
    },
    ran(podUID, containerID, isRunning) {
      const ids = running.get(podUID) ?? new Set()
      running.set(podUID, ids)
      if (isRunning) ids.add(containerID)
      else ids.delete(containerID)
    },
    get: (uid) => pods.get(uid)?.pod,
    has: (workload) => of(workload).length > 0,
    count(workload) {
      const own = of(workload)
      const counts = own.filter(({ pod }) => (workload.kind === 'Job' ? isPodCompleted(pod) : isPodReady(pod)))
      const runs = own.filter(({ pod }) => (running.get(pod.metadata.uid ?? '')?.size ?? 0) > 0)
      return { ready: counts.length, running: runs.length }
    },
    problemsOf: (workload) => [...new Set(of(workload).flatMap(({ pod }) => unplacedBecause(pod) ?? []))],
    byMachine() {
      const counts = new Map<string, number>()
      for (const { pod } of pods.values()) {
        const { nodeName } = pod.spec
        if (nodeName !== undefined && !isPodOver(pod)) counts.set(nodeName, (counts.get(nodeName) ?? 0) + 1)
      }
      return counts
    },
  }
}
