/** The pods of failed nodes are no longer ready: marks them when their node fails, and when they turn up there later. */
import { rfc3339 } from '../../../daemon/clock.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import type { Log } from '../../../daemon/log.ts'
import { podsByNode } from '../../store/pods-by-node.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import type { StoredPod } from '../../store/store.ts'
import type { NodeLifecycleEvents } from './node-events.ts'
import { notReadyPod } from './pod-readiness.ts'

export interface PodMarker {
  /** Takes a change of a pod. True when there is a pod to mark that came after its node failed. */
  observe(present: StoredPod | undefined, previous: StoredPod | undefined): boolean
  /** The node has just failed: its pods are to be marked. */
  failed(nodeName: string): void
  /** Marks what is to be marked there, unless the node is well again; rejects when it could not, and remembers. */
  markNode(nodeName: string): Promise<void>
  markLateComers(): Promise<void>
}

export type PodMarkerNeeds = RewriteNeeds & {
  readonly nodeEvents: NodeLifecycleEvents
  readonly log: Log
  /** Does the node exist with a Ready that is not True? */
  readonly isIll: (nodeName: string) => boolean
}

const writesAtOnce = 64

export function podMarker({ store, clock, nodeEvents, log, isIll }: PodMarkerNeeds): PodMarker {
  const byNode = podsByNode()
  const failedNodes = new Set<string>()
  const lateComers = new Map<string, StoredPod>()

  const mark = async ({ metadata: { name, namespace = '', uid } }: StoredPod) => {
    const change = (pod: StoredPod) => notReadyPod(pod, rfc3339(clock.wallMs()))
    const written = await rewrite({ store, clock }, 'pods', { key: { namespace, name }, uid, part: 'status', change })
    if (written !== undefined) await nodeEvents.podNotReady(written)
  }

  return {
    observe(present, previous) {
      byNode.update(present, previous)
      const nodeName = present?.spec.nodeName
      if (present === undefined || !nodeName || nodeName === previous?.spec.nodeName || !isIll(nodeName)) return false
      lateComers.set(present.metadata.uid, present)
      return true
    },
    failed: (nodeName) => void failedNodes.add(nodeName),
    async markNode(nodeName) {
      if (!failedNodes.has(nodeName)) return
      if (isIll(nodeName)) await inParallel(byNode.of(nodeName), writesAtOnce, mark)
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
