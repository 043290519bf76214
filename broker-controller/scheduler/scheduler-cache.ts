/** The scheduler's cache of the cluster, its queue of pending pods, and the events that may let them fit. */
import { isDeepStrictEqual } from 'node:util'
import { hasEndedForGood } from '../../api/node/node-shutdown.ts'
import { keyText } from '../store/informer.ts'
import type { StoredObject, StoredPod } from '../store/store.ts'
import type { ClusterCache } from './cluster.ts'
import type { Decision } from './decision.ts'
import type { ClusterChange } from './hints.ts'
import { isOurs } from './scheduler-writes.ts'
import type { SchedulingQueue } from './scheduling-queue.ts'

type Observe<T> = (present: T | undefined, previous: T | undefined) => void

export interface SchedulerCache {
  readonly observeNode: Observe<StoredObject<'nodes'>>
  readonly observeNamespace: Observe<StoredObject<'namespaces'>>
  readonly observePod: Observe<StoredPod>
  /** The pod takes room by a decision that the watch has not delivered yet. */
  assume(key: string): void
  /** Undoes a binding that was not written: the watch has delivered, or will deliver, what became of the pod instead. */
  undo(decision: Decision): void
  /** The pod is nominated to no node any more. */
  dropNomination(key: string, pod: StoredPod): void
  /** What may let waiting pods fit since the last call. */
  takeChanges(): readonly ClusterChange[]
}

export type CacheNeeds = {
  /** Called when a decision may be possible. */
  readonly wake: () => void
  /** Pods that are not to be placed for now: they are observed again later. */
  readonly isHeld: (pod: StoredPod) => boolean
}

export function schedulerCache(known: ClusterCache, queue: SchedulingQueue, needs: CacheNeeds): SchedulerCache {
  /** What may let pods fit that did not: nodes once each, the rest as it came. */
  const betterNodes = new Set<string>()
  const changes: ClusterChange[] = []
  /** Decided, and not yet delivered by the watch. */
  const assumed = new Set<string>()

  const notify = (change: ClusterChange) => {
    if (!queue.isWaiting) return
    if (change.change === 'node') betterNodes.add(change.nodeName)
    else changes.push(change)
    needs.wake()
  }

  const dropNomination = (key: string, pod: StoredPod) => {
    const nodeName = known.nominationOf(key)
    if (nodeName === undefined) return
    known.nominate(key, pod, '')
    notify({ change: 'node', nodeName })
  }

  const forget = (key: string, present: StoredPod | undefined, previous: StoredPod | undefined) => {
    queue.remove(key)
    assumed.delete(key)
    known.remove(key)
    const gone = previous ?? present
    if (gone === undefined) return
    dropNomination(key, gone)
    const wasThere = previous !== undefined && !hasEndedForGood(previous)
    if (wasThere && gone.spec.nodeName) notify({ change: 'pod gone', pod: gone, nodeName: gone.spec.nodeName })
  }

  const settle = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    const nodeName = present.spec.nodeName ?? ''
    dropNomination(key, present)
    known.place(key, present, nodeName)
    const isNew = !previous?.spec.nodeName
    if (!isNew && !meansOther(present, previous)) return
    if (!isNew) notify({ change: 'pod gone', pod: previous })
    notify({ change: 'pod placed', pod: present })
  }

  const followNomination = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    const nominated = present.status?.nominatedNodeName ?? ''
    if (nominated === (previous?.status?.nominatedNodeName ?? '')) return
    if (nominated === '') dropNomination(key, present)
    else known.nominate(key, present, nominated)
  }

  return {
    observeNode(present, previous) {
      if (present === undefined) {
        if (previous === undefined) return
        known.deleteNode(previous.metadata.name)
        return notify({ change: 'node gone' })
      }
      known.putNode(present)
      const nodeName = present.metadata.name
      if (previous === undefined || decidesDifferently(present, previous)) notify({ change: 'node', nodeName })
    },
    observeNamespace(present, previous) {
      const name = (present ?? previous)?.metadata.name
      if (name === undefined) return
      known.putNamespace(name, present && (present.metadata.labels ?? {}))
      if (!isDeepStrictEqual(present?.metadata.labels, previous?.metadata.labels)) notify({ change: 'namespace' })
    },
    observePod(present, previous) {
      const { metadata } = present ?? previous ?? {}
      if (metadata === undefined) return
      const key = keyText(metadata)
      if (present === undefined || hasEndedForGood(present)) return forget(key, present, previous)
      if (present.spec.nodeName) {
        queue.remove(key)
        assumed.delete(key)
        if (previous === undefined || countsDifferently(present, previous)) settle(key, present, previous)
        return
      }
      followNomination(key, present, previous)
      if (!isOurs(present) || needs.isHeld(present)) return queue.remove(key)
      if (previous !== undefined && queue.has(key) && !asksDifferently(present, previous)) return
      queue.add(key, present)
      needs.wake()
    },
    assume: (key) => void assumed.add(key),
    undo(decision) {
      if (decision.decided !== 'bind' || !assumed.delete(decision.key)) return
      known.remove(decision.key)
      notify({ change: 'node', nodeName: decision.nodeName })
    },
    dropNomination,
    takeChanges() {
      const nodes = [...betterNodes].map((nodeName): ClusterChange => ({ change: 'node', nodeName }))
      betterNodes.clear()
      return [...nodes, ...changes.splice(0)]
    },
  }
}

/** Keeps what the watches deliver away from the cache while a decision that reads it pauses. */
export interface ObservationGate {
  /** Calls `observe` at once, or when the gate opens, in the order of the calls. */
  through<T>(observe: Observe<T>): Observe<T>
  closedDuring<T>(act: () => Promise<T>): Promise<T>
}

export function observationGate(): ObservationGate {
  let isClosed = false
  const waiting: (() => void)[] = []
  return {
    through: (observe) => (present, previous) => {
      if (isClosed) waiting.push(() => observe(present, previous))
      else observe(present, previous)
    },
    async closedDuring(act) {
      isClosed = true
      try {
        return await act()
      } finally {
        isClosed = false
        for (const observe of waiting.splice(0)) observe()
      }
    },
  }
}

/** Heartbeats and the like make no pod fit. */
function decidesDifferently(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  const relevant = ({ metadata, spec, status }: StoredObject<'nodes'>) => [metadata.labels, spec, status?.allocatable]
  return !isDeepStrictEqual(relevant(a), relevant(b))
}

function asksDifferently(a: StoredPod, b: StoredPod): boolean {
  return !isDeepStrictEqual([a.spec, a.metadata.labels], [b.spec, b.metadata.labels])
}

/** Whether a bound pod changed what it uses, or what affinity and preemption read: its labels and its deletion. */
function countsDifferently(a: StoredPod, b: StoredPod): boolean {
  return a.spec !== b.spec || a.status?.startTime !== b.status?.startTime || meansOther(a, b)
}

function meansOther(a: StoredPod, b: StoredPod): boolean {
  return (
    !isDeepStrictEqual(a.metadata.labels, b.metadata.labels) ||
    a.metadata.deletionTimestamp !== b.metadata.deletionTimestamp
  )
}
