/** Loop: what belongs to an object that is gone goes as well, or is set free where that was asked for. */

import { dependentsFinalizers } from '../../../api/deletion/object-deletion.ts'
import type { OwnerReference } from '../../../api/meta.ts'
import { isCustomName, type ResourceName } from '../../../api/resources.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Controller, runController } from '../../../daemon/controller.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { eachInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { informer, keyFrom } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import { isVolatileLease } from '../../store/volatile.ts'
import { type ChangingResources, watchedKinds } from '../custom-kinds/watched-kinds.ts'
import { extensionInformers } from './extension-informers.ts'
import type { ExtensionObjects } from './extension-objects.ts'
import { extensionOwnerState } from './extension-owners.ts'
import { type GarbageCollectorWrites, garbageCollectorWrites } from './garbage-collector-writes.ts'
import { garbageLanes } from './garbage-lanes.ts'
import { ownerReports } from './owner-reports.ts'
import { type OwnerState, ownerResource, ownershipStep } from './ownership.ts'
import {
  type OwnedItem,
  type OwnershipGraph,
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
  /** Objects of extension servers; undefined: there are none. */
  readonly extensionObjects?: ExtensionObjects
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}

/** Events come by the thousand and own nothing; nothing owns them here. */
const ignored: readonly ResourceName[] = ['events']

/** The store writes together what is written at the same time. */
const visitsAtOnce = 32
/** Dependents of one owner that an extension server is asked to change together. */
const extensionWritesAtOnce = 4

export function garbageCollector(needs: GarbageCollectorNeeds): Loop {
  return { name: 'garbage-collector', run: (signal) => runGarbageCollector(needs, signal) }
}

async function runGarbageCollector(needs: GarbageCollectorNeeds, signal: AbortSignal): Promise<void> {
  const { store, resources, extensionObjects, clock, log } = needs
  const queue = workQueue(clock)
  const gone = recentOwners()
  const graph = ownershipGraph((item, afterMs) => queue.addAfter(ownedItemKey(item), afterMs))
  const extensions = extensionObjects && extensionInformers({ extensionObjects, clock, log }, graph)
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
  const itemOf = (key: string): OwnedItem | undefined => {
    const [id = '', place = ''] = key.split(' ')
    const kind = kinds.get(id)
    if (kind === undefined) return extensions?.item(id, keyFrom(place))
    const object = kind.objects.get(keyFrom(place))
    return object && { resource: kind.resource, object }
  }
  const collector = visits({ ...needs, graph, gone, enqueue: (item) => queue.add(ownedItemKey(item)) })
  const visit: Controller['reconcile'] = async (key, until) => {
    const item = itemOf(key)
    if (item !== undefined) await collector.visit(item, until)
    return undefined
  }
  const lanes = garbageLanes(visit, { clock, log })
  const reconcile: Controller['reconcile'] = async (key, until) => {
    const item = itemOf(key)
    const group = item && collector.extensionGroupOf(item)
    if (group === undefined) return await visit(key, until)
    lanes.add(group, key)
    return undefined
  }
  const work = async () => {
    await kinds.listed
    if (!signal.aborted) await runController({ name: 'garbage-collector', reconcile }, queue, log, signal, visitsAtOnce)
  }
  const ofExtensions = extensions ? [extensions, { name: 'extension-garbage', run: lanes.run }] : []
  await runLoops([...kinds.loops, ...ofExtensions, { name: 'work', run: work }], signal, log)
}

type VisitNeeds = GarbageCollectorNeeds & {
  readonly graph: OwnershipGraph
  readonly gone: ReturnType<typeof recentOwners>
  readonly enqueue: (item: OwnedItem) => void
}

function visits(needs: VisitNeeds) {
  const { graph, enqueue, extensionObjects } = needs
  const write: GarbageCollectorWrites = garbageCollectorWrites(needs)
  const report = ownerReports(needs)

  /** Sets what belongs to it free, then lets it go. */
  const orphan = async (owner: OwnedItem, until: AbortSignal) => {
    const { uid } = owner.object.metadata
    const items = graph.dependentsOf(owner)
    const atOnce = items.some(({ resource }) => resource.extension !== undefined) ? extensionWritesAtOnce : visitsAtOnce
    await inParallel(items, atOnce, async (item) => {
      if (!until.aborted) await write.forget(item, [uid], until)
    })
    if (!until.aborted) await write.letGo(owner, dependentsFinalizers.Orphan, until)
  }

  /** Removes what belongs to it; the last of those that block it brings us here again. */
  const removeBefore = async (owner: OwnedItem, until: AbortSignal) => {
    const { uid } = owner.object.metadata
    await eachInTurns(graph.dependentsOf(owner), (item) => {
      if (item.object.metadata.deletionTimestamp === undefined) enqueue(item)
    })
    await yieldTurn()
    const blocks = ({ object }: OwnedItem) =>
      ownersOf(object).some((reference) => reference.uid === uid && reference.blockOwnerDeletion === true)
    // What belongs to it now: the turns before may have changed that.
    if (!graph.dependentsOf(owner).some(blocks)) await write.letGo(owner, dependentsFinalizers.Foreground, until)
  }

  const settle = async (item: OwnedItem, until: AbortSignal) => {
    const owners = await ownersNow(item, extensionObjects, until)
    if (owners.length === 0) return
    const namespace = item.object.metadata.namespace || undefined
    const states = new Map<string, OwnerState>()
    for (const owner of owners) {
      if (isElsewhere(graph.item(owner.uid), namespace)) await report.ownerElsewhere(item, owner)
      const state = await ownerStateNow(owner, namespace, needs, until)
      if (state === 'unreachable') return
      states.set(owner.uid, state)
    }
    const step = ownershipStep(owners, ({ uid }) => states.get(uid) ?? 'there')
    switch (step.step) {
      case 'none':
        return
      case 'forget':
        return await write.forget(item, step.uids, until)
      case 'remove':
        return await remove(item, step.first, until)
    }
  }

  /**
   * Foreground reaches down: a Deployment waits for the pods of its ReplicaSets. In a circle each would wait for the next one, so
   * the one that closes it blocks its owners no longer (attemptToDeleteItem in garbagecollector.go).
   */
  const remove = async (item: OwnedItem, isAwaited: boolean, until: AbortSignal) => {
    const dependents = isAwaited ? graph.dependentsOf(item) : []
    if (dependents.some(({ object }) => waitsForDependents(object))) await write.unblock(item, until)
    await write.remove(item, dependents.length > 0, until)
  }

  return {
    async visit(item: OwnedItem, until: AbortSignal): Promise<void> {
      if (releasesDependents(item.object)) await orphan(item, until)
      else if (waitsForDependents(item.object)) await removeBefore(item, until)
      else if (item.object.metadata.deletionTimestamp === undefined) await settle(item, until)
    },
    /** The group of the extension server that a visit has to ask. */
    extensionGroupOf(item: OwnedItem): string | undefined {
      if (extensionObjects === undefined) return undefined
      const { resource, object } = item
      if (resource.extension !== undefined) return resource.extension.group
      const owner = ownersOf(object).find(({ apiVersion }) => extensionObjects.serves(apiVersion))
      if (owner !== undefined) return owner.apiVersion.split('/')[0]
      if (!releasesDependents(object)) return undefined
      return graph.dependentsOf(item).find((one) => one.resource.extension !== undefined)?.resource.extension?.group
    },
  }
}

/**
 * An owner that the watch has not delivered is read from the store itself: the watch may be late. 'unreachable': the owner is in a namespace
 * and its dependent is not, which Kubernetes leaves alone.
 */
async function ownerStateNow(
  owner: OwnerReference,
  namespace: string | undefined,
  { store, resources, extensionObjects, graph, gone }: VisitNeeds,
  until: AbortSignal,
): Promise<OwnerState | 'unreachable'> {
  if (extensionObjects?.serves(owner.apiVersion)) {
    return await extensionOwnerState({ owner, namespace, graph, objects: extensionObjects }, until)
  }
  const known = graph.item(owner.uid)
  if (known !== undefined) return knownOwnerState(known, namespace)
  if (gone.has(owner.uid)) return 'gone'
  const resource = ownerResource(owner, resources)
  if (resource === undefined) return 'there'
  if (resource.namespaced && namespace === undefined) return 'unreachable'
  const place = resource.namespaced ? (namespace ?? '') : ''
  const found = await store.get(resource.id, { namespace: place, name: owner.name })
  return found?.metadata.uid === owner.uid ? 'there' : 'gone'
}

/** A cluster-scoped object may own objects of any namespace. */
function isElsewhere(owner: OwnedItem | undefined, namespace: string | undefined): boolean {
  return owner?.resource.namespaced === true && owner.object.metadata.namespace !== namespace
}

function knownOwnerState(
  { resource: { namespaced }, object }: OwnedItem,
  namespace: string | undefined,
): OwnerState | 'unreachable' {
  if (namespaced && namespace === undefined) return 'unreachable'
  if (namespaced && object.metadata.namespace !== namespace) return 'gone'
  return waitsForDependents(object) ? 'waiting' : 'there'
}

/** Those of an extension server as it has the object now: its watch may be late. */
async function ownersNow(
  { resource: { extension }, object }: OwnedItem,
  objects: ExtensionObjects | undefined,
  until: AbortSignal,
): Promise<readonly OwnerReference[]> {
  if (extension === undefined || ownersOf(object).length === 0) return ownersOf(object)
  const { namespace = '', name, uid } = object.metadata
  const live = await objects?.get(extension, { namespace, name }, until)
  return live?.metadata.uid === uid && live.metadata.deletionTimestamp === undefined ? ownersOf(live) : []
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
