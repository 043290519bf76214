/** The scheduler's cache of the cluster, its queue of pending pods, and the events that may let them fit. */
import { isDeepStrictEqual } from 'node:util'
import { hasEndedForGood } from '../../api/node/node-shutdown.ts'
import { mountAbilities } from '../../api/storage/node-claim.ts'
import { poolsAnnotation } from '../../api/storage/pools.ts'
import { keyText } from '../store/informer.ts'
import type { StoredObject, StoredPod } from '../store/store.ts'
import type { ClusterCache } from './cluster.ts'
import type { Decision } from './decision.ts'
import type { ClusterChange } from './hints.ts'
import { isOurs } from './scheduler-writes.ts'
import type { SchedulingQueue } from './scheduling-queue.ts'
import { type CsiObservers, csiObservers } from './volumes/csi-observers.ts'
import type { DirectedPods } from './volumes/directed-pods.ts'
import type { Reservations } from './volumes/reservations.ts'
import { isFullyBound, usesClaims } from './volumes/volume-cache.ts'

type Observe<T> = (present: T | undefined, previous: T | undefined) => void

export interface SchedulerCache extends CsiObservers {
  readonly observeNode: Observe<StoredObject<'nodes'>>
  readonly observeNamespace: Observe<StoredObject<'namespaces'>>
  readonly observePod: Observe<StoredPod>
  readonly observeClaim: Observe<StoredObject<'persistentvolumeclaims'>>
  readonly observeVolume: Observe<StoredObject<'persistentvolumes'>>
  readonly observeStorageClass: Observe<StoredObject<'storageclasses'>>
  /** The pod takes room by a decision that the watch has not delivered yet. */
  assume(key: string): void
  isAssumed(key: string): boolean
  /** Undoes a binding that was not written: the watch has delivered, or will deliver, what became of the pod instead. */
  undo(decision: Pick<Decision, 'key'>): void
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
  /** The pods that wait for their volumes. */
  readonly reserved: Pick<Reservations, 'remove' | 'claimChanged' | 'volumeChanged' | 'nodeChanged'>
  /** The pods that came with their node and whose claims may still need volumes there. */
  readonly directed: Pick<DirectedPods, 'add' | 'delete' | 'volumesChanged'>
}

export function schedulerCache(known: ClusterCache, queue: SchedulingQueue, needs: CacheNeeds): SchedulerCache {
  /** Decided, and not yet delivered by the watch. */
  const assumed = new Set<string>()

  const { notify, takeChanges } = helpfulChanges(queue, needs.wake)

  const dropNomination = (key: string, pod: StoredPod) => {
    const nodeName = known.nominationOf(key)
    if (nodeName === undefined) return
    known.nominate(key, pod, '')
    notify({ change: 'node', nodeName })
  }

  /** The pod no longer takes room by a decision. */
  const endAssumption = (key: string) => {
    needs.reserved.remove(key)
    known.volumes.release(key)
    return assumed.delete(key)
  }

  const undo = (key: string) => {
    const nodeName = known.nodeOf(key)
    if (!endAssumption(key)) return
    known.remove(key)
    if (nodeName !== undefined) notify({ change: 'node', nodeName })
  }

  const forget = (key: string, present: StoredPod | undefined, previous: StoredPod | undefined) => {
    queue.remove(key)
    undo(key)
    needs.directed.delete(key)
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
    else if (usesClaims(present)) {
      needs.directed.add(key)
      needs.wake()
    }
    notify({ change: 'pod placed', pod: present })
  }

  const followNomination = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    const nominated = present.status?.nominatedNodeName ?? ''
    if (nominated === (previous?.status?.nominatedNodeName ?? '')) return
    if (nominated === '') dropNomination(key, present)
    else known.nominate(key, present, nominated)
  }

  /** A pod without a node. */
  const offer = (key: string, present: StoredPod, previous: StoredPod | undefined) => {
    if (!isOurs(present) || needs.isHeld(present)) {
      undo(key)
      return queue.remove(key)
    }
    if (assumed.has(key)) return queue.update(key, present)
    if (previous !== undefined && queue.has(key) && !asksDifferently(present, previous)) return
    queue.add(key, present)
    needs.wake()
  }

  return {
    ...nodeObservers(known, needs, notify),
    observePod(present, previous) {
      const { metadata } = present ?? previous ?? {}
      if (metadata === undefined) return
      const key = keyText(metadata)
      if (present === undefined || hasEndedForGood(present)) return forget(key, present, previous)
      if (present.spec.nodeName) {
        queue.remove(key)
        endAssumption(key)
        if (previous === undefined || countsDifferently(present, previous)) settle(key, present, previous)
        return
      }
      followNomination(key, present, previous)
      offer(key, present, previous)
    },
    ...volumeObservers(known, needs, (key) => assumed.has(key), notify),
    ...csiObservers(known.volumes, notify),
    assume: (key) => void assumed.add(key),
    isAssumed: (key) => assumed.has(key),
    undo: ({ key }) => undo(key),
    dropNomination,
    takeChanges,
  }
}

/** What may let pods fit that did not: nodes once each, the rest as it came. */
function helpfulChanges(queue: Pick<SchedulingQueue, 'isWaiting'>, wake: () => void) {
  const betterNodes = new Set<string>()
  const changes: ClusterChange[] = []
  return {
    notify(change: ClusterChange) {
      if (!queue.isWaiting) return
      if (change.change === 'node') betterNodes.add(change.nodeName)
      else changes.push(change)
      wake()
    },
    takeChanges(): readonly ClusterChange[] {
      const nodes = [...betterNodes].map((nodeName): ClusterChange => ({ change: 'node', nodeName }))
      betterNodes.clear()
      return [...nodes, ...changes.splice(0)]
    },
  }
}

function nodeObservers(
  known: ClusterCache,
  { reserved, wake }: CacheNeeds,
  notify: (change: ClusterChange) => void,
): Pick<SchedulerCache, 'observeNode' | 'observeNamespace'> {
  return {
    observeNode(present, previous) {
      if (present === undefined) {
        if (previous === undefined) return
        known.deleteNode(previous.metadata.name)
        reserved.nodeChanged(previous.metadata.name)
        wake()
        return notify({ change: 'node gone' })
      }
      known.putNode(present)
      const nodeName = present.metadata.name
      if (previous !== undefined && !decidesDifferently(present, previous)) return
      reserved.nodeChanged(nodeName)
      wake()
      notify({ change: 'node', nodeName })
    },
    observeNamespace(present, previous) {
      const name = (present ?? previous)?.metadata.name
      if (name === undefined) return
      known.putNamespace(name, present && (present.metadata.labels ?? {}))
      if (!isDeepStrictEqual(present?.metadata.labels, previous?.metadata.labels)) notify({ change: 'namespace' })
    },
  }
}

/** Each change may end the wait of pods that are reserved, and lets pods fit that were refused. */
function volumeObservers(
  { volumes }: ClusterCache,
  { reserved, directed, wake }: CacheNeeds,
  isAssumed: (key: string) => boolean,
  notify: (change: ClusterChange) => void,
): Pick<SchedulerCache, 'observeClaim' | 'observeVolume' | 'observeStorageClass'> {
  return {
    observeClaim(present, previous) {
      const claim = present ?? previous
      if (claim === undefined) return
      const key = keyText(claim.metadata)
      volumes.putClaim(key, present)
      reserved.claimChanged(claim)
      if (present !== undefined && !isFullyBound(present)) {
        for (const podKey of volumes.usersOf(key)) if (!isAssumed(podKey)) directed.add(podKey)
      }
      if (present !== undefined) notify({ change: 'claim', claim: present })
      wake()
    },
    observeVolume(present, previous) {
      const volume = present ?? previous
      if (volume === undefined) return
      volumes.putVolume(volume.metadata.name, present)
      reserved.volumeChanged(volume)
      directed.volumesChanged()
      if (present !== undefined) notify({ change: 'volume', volume: present })
      wake()
    },
    observeStorageClass(present, previous) {
      const name = (present ?? previous)?.metadata.name
      if (name === undefined) return
      volumes.putStorageClass(name, present)
      directed.volumesChanged()
      wake()
      if (present === undefined) return
      const isOther = !isDeepStrictEqual(present.allowedTopologies, previous?.allowedTopologies)
      if (previous === undefined || isOther) notify({ change: 'storage class', storageClass: present })
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
export function decidesDifferently(a: StoredObject<'nodes'>, b: StoredObject<'nodes'>): boolean {
  const relevant = ({ metadata, spec, status }: StoredObject<'nodes'>) => [
    ...[metadata.labels, metadata.annotations?.[poolsAnnotation], spec, status?.allocatable],
  ]
  return !isDeepStrictEqual(mountAbilities(a), mountAbilities(b)) || !isDeepStrictEqual(relevant(a), relevant(b))
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
