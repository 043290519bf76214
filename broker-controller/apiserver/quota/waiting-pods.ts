/**
 * Bounds the pods that wait: those that have not ended, and that no node runs yet. One Deployment may want 2,000,000,000 pods, and each
 * pod that exists costs memory and the time of every controller, whether a node has room for it or not.
 */
import { isApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { Node } from '../../../api/node.ts'
import { isFinished } from '../../../api/pod/pod-deletion.ts'
import type { Pod } from '../../../api/pod.ts'
import { resources } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { keyText } from '../../store/informer.ts'
import type { ChangeCursor, Store, WatchEvent } from '../../store/store.ts'
import { forbid } from '../handlers/resource-request.ts'

export type WaitingPodsNeeds = { readonly store: Store; readonly clock: Pick<Clock, 'monotonicMs'> }

export interface WaitingPods {
  /** Puts a new pod unless too many wait already; what others are putting at the same time counts. Throws Forbidden. */
  admit<T>(pod: AnyObject, put: () => Promise<T>): Promise<T>
}

/** How many pods may wait. */
export type WaitingLimits = { readonly namespace: number; readonly fleet: number }

/** Its pods are needed to repair a fleet in which too many others wait: only the limit of a namespace applies. */
const systemNamespace = 'kube-system'
/** A node states itself how many pods it can hold. */
const mostOfNode = 1000
const capacityMs = 1000

/** By how many pods the nodes can hold together. One namespace never takes all that the fleet has. */
export function waitingLimits(capacity: number): WaitingLimits {
  return { namespace: Math.max(500, 2 * capacity), fleet: Math.max(2000, 5 * capacity) }
}

/** Whether the pod counts: it may be bound, also to a node that does not exist. */
export function isWaiting(pod: Pod): boolean {
  const isRunning = pod.status?.phase === 'Running' && (pod.spec.nodeName ?? '') !== ''
  return !isFinished(pod) && !isRunning
}

/** Why one more pod must not wait in the namespace; undefined: it may. */
export function waitingProblem(
  namespace: string,
  waiting: { readonly namespace: number; readonly fleet: number },
  limits: WaitingLimits,
): string | undefined {
  const remedy = 'Delete pods that cannot start, scale down what creates them, or add nodes'
  if (waiting.namespace >= limits.namespace) {
    return `too many pods wait to start: ${waiting.namespace} in namespace ${namespace}, limited to ${limits.namespace}. ${remedy}`
  }
  if (namespace === systemNamespace || waiting.fleet < limits.fleet) return undefined
  return `too many pods wait to start: ${waiting.fleet} in the fleet, limited to ${limits.fleet}. ${remedy}`
}

/** Counts when it is first asked, and follows the changes from then on: the cost of a question does not grow with the pods. */
export function waitingPodsBound({ store, clock }: WaitingPodsNeeds): WaitingPods {
  const counts = waitingCounts()
  const nodes = nodeCapacity({ store, clock })
  let cursor: ChangeCursor<WatchEvent<'pods'>> | undefined

  const read = () => {
    try {
      for (let change = cursor?.next(); change !== undefined; change = cursor?.next()) counts.apply(change)
    } catch (error) {
      // Too far behind: all are counted again when the next pod is created.
      if (!isApiError(error, 'Expired')) throw error
      cursor = undefined
    }
  }
  const follow = (followed: ChangeCursor<WatchEvent<'pods'>>) => {
    followed.onReady(() =>
      setImmediate(() => {
        if (followed !== cursor || followed.ended) return
        read()
        if (followed === cursor) follow(followed)
      }),
    )
  }
  const refresh = async () => {
    read()
    while (cursor === undefined) {
      const { items, resourceVersion } = await store.list('pods')
      counts.restart(items)
      cursor = store.changes('pods', resourceVersion)
      follow(cursor)
      read()
    }
  }

  return {
    async admit(pod, put) {
      await refresh()
      const { namespace = '', name = '' } = pod.metadata
      const waiting = () => ({ namespace: counts.of(namespace), fleet: counts.all() })
      const floor = waitingProblem(namespace, waiting(), waitingLimits(0))
      const capacity = floor === undefined ? 0 : await nodes.pods()
      const because = floor && waitingProblem(namespace, waiting(), waitingLimits(capacity))
      if (because !== undefined) throw forbid(resources.pods, name, because)
      const letGo = counts.hold(pod)
      try {
        return await put()
      } finally {
        read()
        letGo()
      }
    },
  }
}

function waitingCounts() {
  const byNamespace = new Map<string, number>()
  /** Pods that are being written; they count already. */
  const held = new Map<string, string>()
  let all = 0
  const add = (namespace: string, count: number) => {
    const sum = (byNamespace.get(namespace) ?? 0) + count
    all += count
    if (sum === 0) byNamespace.delete(namespace)
    else byNamespace.set(namespace, sum)
  }
  const addPod = (pod: Pod | undefined, count: number) => {
    if (pod !== undefined && isWaiting(pod)) add(pod.metadata.namespace ?? '', count)
  }
  /** Ends the hold of a pod whose creation was read. */
  const release = (key: string) => {
    const namespace = held.get(key)
    if (namespace === undefined) return
    held.delete(key)
    add(namespace, -1)
  }
  return {
    of: (namespace: string) => byNamespace.get(namespace) ?? 0,
    all: () => all,
    apply({ type, object, previous }: WatchEvent<'pods'>) {
      release(keyText(object.metadata))
      addPod(previous, -1)
      if (type !== 'DELETED') addPod(object, 1)
    },
    restart(pods: readonly Pod[]) {
      byNamespace.clear()
      all = 0
      for (const namespace of held.values()) add(namespace, 1)
      for (const pod of pods) {
        if (held.size > 0) release(keyText(pod.metadata))
        addPod(pod, 1)
      }
    },
    /** Returns what ends it, if its creation was not read by then. Another pod of its name is not created. */
    hold({ metadata }: AnyObject): () => void {
      const key = keyText(metadata)
      if (held.has(key)) return () => undefined
      held.set(key, metadata.namespace ?? '')
      add(metadata.namespace ?? '', 1)
      return () => release(key)
    },
  }
}

/** How many pods the nodes can hold together; nodes come and go rarely, so it is not counted for each pod. */
function nodeCapacity({ store, clock }: WaitingPodsNeeds) {
  let known: { readonly pods: number; readonly atMs: number } | undefined
  return {
    async pods(): Promise<number> {
      if (known !== undefined && clock.monotonicMs() - known.atMs < capacityMs) return known.pods
      const { items } = await store.list('nodes')
      known = { pods: items.reduce((sum, node) => sum + podsOf(node), 0), atMs: clock.monotonicMs() }
      return known.pods
    },
  }
}

function podsOf({ status }: Node): number {
  const pods = Number(status?.allocatable?.['pods'] ?? 0)
  return Number.isFinite(pods) ? Math.min(Math.max(0, pods), mostOfNode) : 0
}
