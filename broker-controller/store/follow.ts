/** A kind, followed: every object there is, then every change, each told once and in order, whatever the watch goes through. */
import { isApiError } from '../../api/api-error.ts'
import type { ResourceName } from '../../api/resources.ts'
import { aborted } from '../../daemon/aborted.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { beginOperation } from '../../daemon/watchdog/event-loop.ts'
import { sharedTexts } from './shared-texts.ts'
import type { ObjectKey, Store, StoredObject } from './store.ts'

/** `present` undefined: it is gone. `previous` undefined: it is new to us. */
export type Told<R extends ResourceName> = (
  present: StoredObject<R> | undefined,
  previous: StoredObject<R> | undefined,
) => void

export interface Followed<R extends ResourceName> {
  get(key: ObjectKey): StoredObject<R> | undefined
  all(): Iterable<StoredObject<R>>
  /** Resolves when everything that was there at the start has been told, or when the following is called off before. */
  readonly listed: Promise<void>
  /** Lists, then watches, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

export type FollowNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }
const retry = { firstMs: 200, maxMs: 30_000 }

/**
 * Follows `resource` and tells `told` of each change. A watch that fell too far behind is made good by listing again:
 * what happened in between is then told as one change per object. Errors of the store that are no answers end `run`.
 */
export function follow<R extends ResourceName>(
  { store, clock, log }: FollowNeeds,
  resource: R,
  told: Told<R>,
): Followed<R> {
  const objects = new Map<string, StoredObject<R>>()
  let ready: () => void = () => undefined
  const listed = new Promise<void>((resolve) => {
    ready = resolve
  })

  const take = (present: StoredObject<R>) => {
    const key = keyText(present.metadata)
    const previous = objects.get(key)
    if (previous !== undefined && previous.metadata.resourceVersion === present.metadata.resourceVersion) return
    objects.set(key, present)
    told(present, previous)
  }

  const drop = (key: string) => {
    const previous = objects.get(key)
    if (previous === undefined) return
    objects.delete(key)
    told(undefined, previous)
  }

  const listAgain = async () => {
    const { items, resourceVersion } = await store.list(resource)
    beginOperation('watch', resource)
    const keys = new Set(items.map(({ metadata }) => keyText(metadata)))
    for (const key of [...objects.keys()]) if (!keys.has(key)) drop(key)
    for (const item of items) {
      const key = keyText(item.metadata)
      if (objects.get(key)?.metadata.uid !== item.metadata.uid) drop(key)
      take(item)
    }
    ready()
    return resourceVersion
  }

  return {
    get: (key) => objects.get(keyText(key)),
    all: () => objects.values(),
    listed,
    async run(signal) {
      void aborted(signal).then(ready)
      for (let failures = 0; !signal.aborted; ) {
        try {
          const from = await listAgain()
          failures = 0
          for await (const { type, object } of store.watch(resource, from, signal)) {
            beginOperation('watch', resource)
            if (type === 'DELETED') drop(keyText(object.metadata))
            else take(object)
          }
          if (!signal.aborted) throw new Error(`The watch of ${resource} ended: the store was closed`)
        } catch (error) {
          if (!isApiError(error)) throw error
          if (isApiError(error, 'Expired')) continue
          const retryInMs = backoffMs(failures++, retry, Math.random)
          log.warn('Watch failed', { resource, retryInMs: Math.round(retryInMs), error })
          await clock.sleep(retryInMs, signal)
        }
      }
    },
  }
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
