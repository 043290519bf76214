/** Sets Ready to False on the pods of failed nodes: when their node fails, and when a pod is bound to it later. */
import { podCondition, withPodCondition } from '../../../api/pod/pod-conditions.ts'
import type { Pod } from '../../../api/pod.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredPod } from '../../store/store.ts'
import type { NodeLifecycleEvents } from './node-events.ts'

export interface PodMarker {
  /** Takes a change of a pod. True when there is a pod to mark that came after its node failed. */
  observe(present: StoredPod | undefined, previous: StoredPod | undefined): boolean
  /** The node has just failed: `markNode` will mark its pods. */
  failed(nodeName: string): void
  /** Marks the pods of a failed node, unless it is ready again. Rejects when it could not; the next call then repeats it. */
  markNode(nodeName: string): Promise<void>
  markLateComers(): Promise<void>
}

export type PodMarkerNeeds = RewriteNeeds & {
  readonly nodeEvents: NodeLifecycleEvents
  readonly log: Log
  /** The node exists, and its Ready is not True. */
  readonly hasFailed: (nodeName: string) => boolean
  /** The store no longer has what the node has published of the pod. */
  readonly overwritten?: ((nodeName: string, podUID: string) => void) | undefined
}

const writesAtOnce = 64

export function podMarker({ store, clock, nodeEvents, log, hasFailed, overwritten }: PodMarkerNeeds): PodMarker {
  const byNode = podsByNode()
  const failedNodes = new Set<string>()
  const lateComers = new Map<string, StoredPod>()

  const mark = async ({ metadata: { name, namespace = '', uid } }: StoredPod) => {
    const change = (pod: StoredPod) => notReadyPod(pod, rfc3339(clock.wallMs()))
    const written = await rewrite({ store, clock }, 'pods', { key: { namespace, name }, uid, part: 'status', change })
    if (written === undefined) return
    overwritten?.(written.spec.nodeName ?? '', uid)
    await nodeEvents.podNotReady(written)
  }

  return {
    observe(present, previous) {
      byNode.update(present, previous)
      const nodeName = present?.spec.nodeName
      if (present === undefined || !nodeName || nodeName === previous?.spec.nodeName || !hasFailed(nodeName))
        return false
      lateComers.set(present.metadata.uid, present)
      return true
    },
    failed: (nodeName) => void failedNodes.add(nodeName),
    async markNode(nodeName) {
      if (!failedNodes.has(nodeName)) return
      if (hasFailed(nodeName)) await inParallel(byNode.of(nodeName), writesAtOnce, mark)
      failedNodes.delete(nodeName)
    },
    async markLateComers() {
      const pods = [...lateComers.values()]
      lateComers.clear()
      await inParallel(pods, writesAtOnce, async (pod) => {
        try {
          await mark(pod)
        } catch (error) {
          log.warn('Pod of a failed node not marked', { pod: pod.metadata.name, node: pod.spec.nodeName, error })
        }
      })
    },
  }
}

/** The pod with Ready False; undefined when it was False or never reported. The phase is reported by the node only. */
function notReadyPod<P extends Pod>(pod: P, now: string): P | undefined {
  const ready = podCondition(pod, 'Ready')
  if (ready === undefined || ready.status === 'False') return undefined
  return withPodCondition(pod, { ...ready, status: 'False' }, now)
}
