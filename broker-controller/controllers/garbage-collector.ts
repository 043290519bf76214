/** Loop: what belongs to an object that is gone goes as well, or is set free where that was asked for. */

import { dependentsFinalizers } from '../../api/deletion/object-deletion.ts'
import type { OwnerReference } from '../../api/meta.ts'
import { isCustomName, type ResourceName } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import { inParallel } from '../../daemon/in-parallel.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { informer, keyFrom } from '../store/informer.ts'
import type { Store } from '../store/store.ts'
import { isVolatileLease } from '../store/volatile.ts'
import { type ChangingResources, watchedKinds } from './custom-kinds/watched-kinds.ts'
import { garbageCollectorWrites } from './garbage-collector-writes.ts'
import { type OwnerState, ownerResource, ownershipStep } from './ownership.ts'
import {
  type OwnedItem,
  ownedItemKey,
  ownershipGraph,
  ownersOf,
  releasesDependents,
  waitsForDependents,
} from './ownership-graph.ts'

export type GarbageCollectorNeeds = {
  readonly store: Store
  /** The kinds whose objects may own each other. */
  readonly resources: ChangingResources
  readonly clock: Clock
  readonly log: Log
}

/** Events come by the thousand and own nothing; nothing owns them here. */
const ignored: readonly ResourceName[] = ['events']

/** The store writes together what is written at the same time. */
const visitsAtOnce = 32

export function garbageCollector(needs: GarbageCollectorNeeds): Loop {
  return { name: 'garbage-collector', run: (signal) => runGarbageCollector(needs, signal) }
}

async function runGarbageCollector(
  { store, resources, clock, log }: GarbageCollectorNeeds,
  signal: AbortSignal,
): Promise<void> {
  const queue = workQueue(clock)
  const gone = recentOwners()
  const write = garbageCollectorWrites({ store, clock, log })
  const graph = ownershipGraph((item, afterMs) => queue.addAfter(ownedItemKey(item), afterMs))

  const reconcile = async (key: string, until: AbortSignal): Promise<undefined> => {
    const [name = '', place = ''] = key.split(' ')
    const kind = kinds.get(name)
    const object = kind?.objects.get(keyFrom(place))
    if (kind === undefined || object === undefined) return
    const item = { resource: kind.resource, object }
    if (releasesDependents(object)) await orphan(item, until)
    else if (waitsForDependents(object)) await removeBefore(item)
    else if (object.metadata.deletionTimestamp === undefined) await settle(item)
  }

  /** Sets what belongs to it free, then lets it go. */
  const orphan = async (owner: OwnedItem, until: AbortSignal) => {
    const { uid } = owner.object.metadata
    await inParallel(graph.dependentsOf(uid), visitsAtOnce, async (item) => {
      if (!until.aborted) await write.forget(item, [uid])
    })
    if (!until.aborted) await write.letGo(owner, dependentsFinalizers.Orphan)
  }

  /** Removes what belongs to it; the last of those that block it brings us here again. */
  const removeBefore = async (owner: OwnedItem) => {
    const { uid } = owner.object.metadata
    const items = graph.dependentsOf(uid)
    for (const item of items) if (item.object.metadata.deletionTimestamp === undefined) queue.add(ownedItemKey(item))
    const blocks = ({ object }: OwnedItem) =>
      ownersOf(object).some((reference) => reference.uid === uid && reference.blockOwnerDeletion === true)
    if (!items.some(blocks)) await write.letGo(owner, dependentsFinalizers.Foreground)
  }

  const settle = async (item: OwnedItem) => {
    const owners = ownersOf(item.object)
    if (owners.length === 0) return
    const states = new Map<string, OwnerState>()
    for (const owner of owners) states.set(owner.uid, await stateOf(owner, item.object.metadata.namespace))
    const step = ownershipStep(owners, ({ uid }) => states.get(uid) ?? 'there')
    switch (step.step) {
      case 'none':
        return
      case 'forget':
        return await write.forget(item, step.uids)
      case 'remove':
        return await remove(item, step.first)
    }
  }

  /**
   * Foreground reaches down: a Deployment waits for the pods of its ReplicaSets. In a circle each would wait for the next one, so
   * the one that closes it blocks its owners no longer (attemptToDeleteItem in garbagecollector.go).
   */
  const remove = async (item: OwnedItem, isAwaited: boolean) => {
    const dependents = isAwaited ? graph.dependentsOf(item.object.metadata.uid) : []
    if (dependents.some(({ object }) => waitsForDependents(object))) await write.unblock(item)
    await write.remove(item, dependents.length > 0)
  }

  /** An owner that the watch has not delivered is read from the store itself: the watch may be late. */
  const stateOf = async (owner: OwnerReference, namespace = ''): Promise<OwnerState> => {
    const known = graph.item(owner.uid)
    if (known !== undefined) {
      const isElsewhere = known.resource.namespaced && known.object.metadata.namespace !== namespace
      return isElsewhere ? 'gone' : waitsForDependents(known.object) ? 'waiting' : 'there'
    }
    if (gone.has(owner.uid)) return 'gone'
    const resource = ownerResource(owner, resources)
    if (resource === undefined) return 'there'
    const found = await store.get(resource.id, { namespace: resource.namespaced ? namespace : '', name: owner.name })
    return found?.metadata.uid === owner.uid ? 'there' : 'gone'
  }

  const kinds = watchedKinds(
    resources,
    ({ id }) => !ignored.includes(id),
    (resource) =>
      informer<ResourceName>({ store, clock, log }, resource.id, (present, previous) => {
        const { metadata } = present ?? previous ?? {}
        if (present === undefined && previous !== undefined && isCustomName(resource.id))
          gone.add(previous.metadata.uid)
        // Those of nodes are renewed by the thousand, and go with their Node.
        if (metadata === undefined || !isVolatileLease(resource.id, metadata))
          graph.observe(resource, present, previous)
      }),
  )
  const work = async () => {
    await kinds.listed
    if (!signal.aborted) await runController({ name: 'garbage-collector', reconcile }, queue, log, signal, visitsAtOnce)
  }
  await runLoops([...kinds.loops, { name: 'work', run: work }], signal, log)
}

const mostRecent = 10_000

/**
 * Owners that were deleted, the latest: when the definition of their kind goes after them, nothing else shows that they existed (as the
 * absentOwnerCache of Kubernetes).
 */
function recentOwners() {
  const uids = new Set<string>()
  return {
    add(uid: string) {
      uids.add(uid)
      const [oldest] = uids
      if (uids.size > mostRecent && oldest !== undefined) uids.delete(oldest)
    },
    has: (uid: string) => uids.has(uid),
  }
}
