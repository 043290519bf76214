/**
 * The loop of a controller of workloads: one queue of owners, which their own changes and those of their dependents fill.
 *
 * Kubernetes keeps expectations, so that a controller whose cache is late creates nothing twice. Here a visit begins with
 * `catchUp`: the store is in this process, a write that it has answered is visible, and a visit ends only when its writes are
 * answered. So each visit decides on everything that the visits before it have written, also those before a restart: what a
 * visit did not get to is missing from the store, and the next one does it.
 */
import type { BuiltInName } from '../../../api/resources.ts'
import type { LabelMatcher } from '../../../api/selectors.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Reconciled, runController } from '../../../daemon/controller.ts'
import { eachInTurns, yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { RestoreHold } from '../../store/checkpoints/restore-hold.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { informer, keyFrom, keyText } from '../../store/informer.ts'
import type { AnyStored, Store, StoredObject } from '../../store/store.ts'
import { controllerOf } from './controller-ref.ts'
import type { OwnedObjects } from './owned-objects.ts'

export type OwnerLoopNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  /** After a restore no owner is visited while it holds workloads; undefined: the store was not restored. */
  readonly hold?: RestoreHold
}

export type OwnerLoop<R extends BuiltInName, D extends BuiltInName> = {
  readonly name: string
  readonly owners: R
  readonly dependents: OwnedObjects<D>
  /** Which objects without a controller the owner adopts; undefined: none. */
  readonly selects: (owner: StoredObject<R>) => LabelMatcher | undefined
  /** Whether the owner is to be visited after this change of one of its dependents; undefined: after each. */
  readonly concerns?: (present: StoredObject<D>, previous: StoredObject<D>) => boolean
  /** `found`: its dependents, and those without a controller that it selects. Throws to be called again later. */
  readonly reconcile: (
    owner: StoredObject<R>,
    found: readonly StoredObject<D>[],
    signal: AbortSignal,
  ) => Promise<Reconciled>
  /** Called when the owner is deleted. */
  readonly removed?: (owner: StoredObject<R>) => void
  /** Nothing follows from a change of the status alone, which the visits write: it is visited a second later. */
  readonly ownStatus?: true
  /** Called once, before the loop: what else makes a visit necessary. */
  readonly connect?: (owners: OwnersInQueue<R>) => void
}

export interface OwnersInQueue<R extends BuiltInName> {
  get(key: { readonly namespace: string; readonly name: string }): StoredObject<R> | undefined
  all(): Iterable<StoredObject<R>>
  enqueue(owner: StoredObject<R>): void
  /** Without waiting for more changes. */
  enqueueNow(owner: StoredObject<R>): void
}

/** Changes of many dependents within moments are one visit. */
const debounceMs = 20
/**
 * A visit reads all dependents of its owner. With more than 200 of them the changes of a longer time are one visit, so that
 * what N changes cost does not grow with the square of N: at 30,000 dependents those of 3 s.
 */
const dependentsPerMs = 10
/** A change of the status by somebody else is put right this much later. */
const statusMs = 1000
/** --concurrent-replicaset-syncs and its like: one owner that waits for a webhook does not hold up the others. */
const visitsAtOnce = 5

/** The index of the dependents runs beside it, in a loop of its own. */
export function ownerLoop<R extends BuiltInName, D extends BuiltInName>(
  { store, clock, log, hold }: OwnerLoopNeeds,
  { name, owners: resource, dependents, selects, concerns, reconcile, removed, ownStatus, connect }: OwnerLoop<R, D>,
): Loop {
  const queue = workQueue(clock)
  const byNamespace = new Map<string, Set<string>>()
  const enqueueSoon = (owner: StoredObject<R>) => {
    const waitMs = Math.max(debounceMs, dependents.countOf(owner) / dependentsPerMs)
    queue.addAfter(keyText(owner.metadata), waitMs)
  }

  const owners = informer({ store, clock, log }, resource, (present, previous) => {
    const { namespace = '', name: ownName } = (present ?? previous)?.metadata ?? {}
    const key = keyText({ namespace, ...(ownName !== undefined && { name: ownName }) })
    const keys = byNamespace.get(namespace) ?? new Set<string>()
    if (present === undefined) keys.delete(key)
    else byNamespace.set(namespace, keys.add(key))
    if (keys.size === 0) byNamespace.delete(namespace)
    if (present === undefined && previous !== undefined) removed?.(previous)
    const isOwn = ownStatus && present !== undefined && previous !== undefined && isOnlyStatus(present, previous)
    if (isOwn) queue.addAfter(key, statusMs)
    else queue.add(key)
  })

  const controllerIn = (object: StoredObject<D> | undefined): StoredObject<R> | undefined => {
    const reference = object && controllerOf(object)
    if (object === undefined || reference === undefined) return undefined
    const owner = owners.get({ namespace: object.metadata.namespace ?? '', name: reference.name })
    return owner?.metadata.uid === reference.uid ? owner : undefined
  }
  /** Selectors may be large, and many owners may be there: orphans are compared with them after the change that made them. */
  const orphans = new Map<string, StoredObject<D>>()
  let isSelecting = false
  const enqueueSelecting = async () => {
    if (isSelecting) return
    isSelecting = true
    try {
      for (const [orphanKey, orphan] of orphans) {
        orphans.delete(orphanKey)
        await eachInTurns([...(byNamespace.get(orphan.metadata.namespace ?? '') ?? [])], (key) => {
          const owner = owners.get(keyFrom(key))
          if (owner !== undefined && selects(owner)?.(orphan.metadata.labels)) enqueueSoon(owner)
        })
      }
    } catch (error) {
      log.error('Objects without an owner not compared with selectors', { controller: name, error })
    } finally {
      isSelecting = false
    }
  }
  dependents.onChange((present, previous) => {
    const [before, after] = [controllerIn(previous), controllerIn(present)]
    if (before !== undefined && before !== after) enqueueSoon(before)
    if (after !== undefined) {
      const isQuiet = present && previous && before === after && concerns?.(present, previous) === false
      if (!isQuiet) enqueueSoon(after)
    } else if (present !== undefined && isOrphaned(present, previous)) {
      orphans.set(keyText(present.metadata), present)
      void enqueueSelecting()
    }
  })
  const enqueueNow = (owner: StoredObject<R>) => queue.add(keyText(owner.metadata))
  connect?.({ get: owners.get, all: owners.all, enqueue: enqueueSoon, enqueueNow })
  hold?.onRelease(() => {
    for (const owner of owners.all()) enqueueNow(owner)
  })

  const visit = async (key: string, signal: AbortSignal) => {
    if (hold?.holds('workloads')) return undefined
    owners.catchUp()
    dependents.catchUp()
    const owner = owners.get(keyFrom(key))
    if (owner === undefined) return undefined
    return await reconcile(owner, await foundFor(dependents, owner, selects(owner)), signal)
  }
  const work = async (signal: AbortSignal) => {
    await Promise.all([owners.listed, dependents.listed])
    if (!signal.aborted) await runController({ name, reconcile: visit }, queue, log, signal, visitsAtOnce)
  }
  return {
    name,
    run: (signal) =>
      runLoops(
        [
          { name: resource, run: owners.run },
          { name: 'work', run: work },
        ],
        signal,
        log,
      ),
  }
}

/** Its dependents, and those without a controller that it selects. */
async function foundFor<D extends BuiltInName>(
  dependents: OwnedObjects<D>,
  owner: AnyStored,
  select: LabelMatcher | undefined,
): Promise<readonly StoredObject<D>[]> {
  const found = [...dependents.ofController(owner)]
  await eachInTurns([...dependents.orphansOf(owner.metadata.namespace ?? '')], (orphan) => {
    if (select?.(orphan.metadata.labels)) found.push(orphan)
  })
  await yieldTurn()
  return found
}

function isOnlyStatus({ metadata: now }: AnyStored, { metadata: before }: AnyStored): boolean {
  const { resourceVersion: _, managedFields: __, ...rest } = now
  const { resourceVersion: ___, managedFields: ____, ...earlier } = before
  return equalJSON(rest, earlier)
}

/** It has become an orphan, or is one with other labels: a selector may choose it now. */
function isOrphaned<D extends BuiltInName>(present: StoredObject<D>, previous: StoredObject<D> | undefined): boolean {
  if (controllerOf(present) !== undefined) return false
  if (previous === undefined || controllerOf(previous) !== undefined) return true
  return previous.metadata.labels !== present.metadata.labels
}
