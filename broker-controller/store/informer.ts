/** An informer, as in client-go: all objects of a kind, then each change once and in order, also after the watch was interrupted. */
import { isApiError } from '../../api/api-error.ts'
import type { ResourceName } from '../../api/resources.ts'
import { aborted } from '../../daemon/aborted.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import { eachInTurns } from '../../daemon/limits/turn-limit.ts'
import type { Log } from '../../daemon/log.ts'
import { beginOperation } from '../../daemon/watchdog/event-loop.ts'
import { cursorWait } from './each-change.ts'
import { objectsByKey } from './objects-by-key.ts'
import { sharedTexts } from './shared-texts.ts'
import type { ChangeCursor, ObjectKey, Store, StoredObject, WatchEvent } from './store.ts'

/** `present` undefined: deleted. `previous` undefined: new. */
export type ChangeListener<R extends ResourceName> = (
  present: StoredObject<R> | undefined,
  previous: StoredObject<R> | undefined,
) => void

export interface Informer<R extends ResourceName> {
  get(key: ObjectKey): StoredObject<R> | undefined
  all(): Iterable<StoredObject<R>>
  /**
   * Calls the listener for each change that the store has made so far: what this process has written and was answered is then
   * in `get` and `all`. Throws ApiError Expired while the informer is too far behind and lists again.
   */
  catchUp(): void
  /** Resolves when the listener was called for all objects of the first list, or when `signal` of `run` aborts before. */
  readonly listed: Promise<void>
  /** Lists, then watches, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

export type InformerNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }
const retry = { firstMs: 200, maxMs: 30_000 }

/**
 * Calls `listener` for each change of `resource`. A watch that fell too far behind is replaced by a new list: the changes in
 * between are then one change for each object. Errors of the store other than ApiError end `run`. What the listener throws is logged, and
 * the next change follows: the object stays in the store, so a controller that ended by it would end at each start.
 */
export function informer<R extends ResourceName>(
  { store, clock, log }: InformerNeeds,
  resource: R,
  listener: ChangeListener<R>,
): Informer<R> {
  const objects = objectsByKey<StoredObject<R>>()
  let ready: () => void = () => undefined
  const listed = new Promise<void>((resolve) => {
    ready = resolve
  })

  const call: ChangeListener<R> = (present, previous) => {
    try {
      listener(present, previous)
    } catch (error) {
      const { metadata = {} } = present ?? previous ?? {}
      log.error('Change of an object not handled', { resource, object: keyText(metadata), error })
    }
  }

  const add = (present: StoredObject<R>, previous: StoredObject<R> | undefined) => {
    objects.set(present.metadata, present)
    call(present, previous)
  }

  const take = (present: StoredObject<R>) => {
    const previous = objects.get(present.metadata)
    if (previous !== undefined && previous.metadata.resourceVersion === present.metadata.resourceVersion) return
    add(present, previous)
  }

  const drop = (key: Partial<ObjectKey>) => {
    const previous = objects.get(key)
    if (previous === undefined) return
    objects.delete(key)
    call(undefined, previous)
  }

  const apply = ({ type, object }: WatchEvent<R>) => {
    if (type === 'DELETED') drop(object.metadata)
    else take(object)
  }
  let catchUp = () => {}

  const listAgain = async () => {
    const { items, resourceVersion } = await store.list(resource)
    beginOperation('watch', resource)
    // At the start there is nothing to compare with, in a dozen loops with all nodes and pods of the fleet.
    if (objects.isEmpty()) await eachInTurns(items, (item) => add(item, undefined))
    else await takeList(items, { objects, drop, take })
    ready()
    return resourceVersion
  }

  const pause = async (failures: number, error: unknown, signal: AbortSignal) => {
    const retryInMs = backoffMs(failures, retry, clock.random ?? Math.random)
    log.warn('Watch failed', { resource, retryInMs: Math.round(retryInMs), error })
    await clock.sleep(retryInMs, signal)
  }
  const follow = async (
    changes: ChangeCursor<WatchEvent<R>>,
    wait: ReturnType<typeof cursorWait>,
    signal: AbortSignal,
  ) => {
    // A change is taken from the cursor and applied in one go: `catchUp` may come between two turns of this loop.
    catchUp = () => {
      for (let change = changes.next(); change !== undefined; change = changes.next()) apply(change)
    }
    while (!signal.aborted && !changes.ended) {
      beginOperation('watch', resource)
      catchUp()
      await wait.ready(changes)
    }
    if (!signal.aborted) throw new Error(`The watch of ${resource} ended: the store was closed`)
  }

  return {
    get: objects.get,
    all: () => objects.values(),
    catchUp: () => catchUp(),
    listed,
    async run(signal) {
      void aborted(signal).then(ready)
      const wait = cursorWait(signal)
      for (let failures = 0; !signal.aborted; ) {
        try {
          const from = await listAgain()
          failures = 0
          const changes = store.changes(resource, from)
          await follow(changes, wait, signal)
        } catch (error) {
          if (!isApiError(error)) throw error
          if (!isApiError(error, 'Expired')) await pause(failures++, error, signal)
        }
      }
    },
  }
}

type ListTaker<R extends ResourceName> = {
  readonly objects: ReturnType<typeof objectsByKey<StoredObject<R>>>
  readonly drop: (key: Partial<ObjectKey>) => void
  readonly take: (present: StoredObject<R>) => void
}

/** Meanwhile `catchUp` throws: the cursor that it reads is the one that fell behind. */
async function takeList<R extends ResourceName>(
  items: readonly StoredObject<R>[],
  { objects, drop, take }: ListTaker<R>,
): Promise<void> {
  const present = objectsByKey<StoredObject<R>>()
  for (const item of items) present.set(item.metadata, item)
  await eachInTurns([...objects.values()], ({ metadata }) => {
    if (present.get(metadata) === undefined) drop(metadata)
  })
  await eachInTurns(items, (item) => {
    const { metadata } = item
    if (objects.get(metadata)?.metadata.uid !== metadata.uid) drop(metadata)
    take(item)
  })
}

/** `namespace/name`, or `/name`. A dozen loops keep a map by it, so they share one text. */
export function keyText({ namespace = '', name = '' }: Partial<ObjectKey>): string {
  return sharedKey(`${namespace}/${name}`)
}

/** The nodes and pods of a fleet of 10,000. */
const sharedKey = sharedTexts({ texts: 131_072, length: 8 * 1024 * 1024 })

export function keyFrom(text: string): ObjectKey {
  const slash = text.indexOf('/')
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
