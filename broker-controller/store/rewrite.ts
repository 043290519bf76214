/** Writes that others may race with: read, decide, write, and again after a conflict; removal of what may be gone already. */
import { isApiError } from '../../api/api-error.ts'
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { ObjectKey, Store, StoredObject } from './store.ts'

export type Rewriting<R extends ResourceName> = {
  readonly key: ObjectKey
  /** Only this very object; another one of its name is left alone. */
  readonly uid?: string
  /** What is written: the object whole (by default), or its status only. */
  readonly part?: 'whole' | 'status'
  /** The object as it should be; undefined: leave it as it is. Called again on the newest one after a conflict. */
  readonly change: (object: StoredObject<R>) => ResourceTypes[R] | undefined
}

export type RewriteNeeds = { readonly store: Store; readonly clock: Clock }

/** Readers see a write only once it is kept, so trying again at once would meet the same conflict. */
const waitsMs = [20, 40, 80, 160]

/** The object as written; undefined when it is gone or was left as it is. The fifth conflict in a row is thrown. */
export async function rewrite<R extends ResourceName>(
  { store, clock }: RewriteNeeds,
  resource: R,
  { key, uid, part = 'whole', change }: Rewriting<R>,
): Promise<StoredObject<R> | undefined> {
  for (let failures = 0; ; failures++) {
    const object = await store.get(resource, key)
    if (object === undefined || (uid !== undefined && object.metadata.uid !== uid)) return undefined
    const wanted = change(object)
    if (wanted === undefined) return undefined
    try {
      return await (part === 'status' ? store.updateStatus(resource, wanted) : store.update(resource, wanted))
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined
      const waitMs = waitsMs[failures]
      if (waitMs === undefined || !isApiError(error, 'Conflict')) throw error
      await clock.sleep(waitMs)
    }
  }
}

/** Removes this very object, whatever its version; true when this call removed it. */
export async function removeIfThere<R extends ResourceName>(
  store: Store,
  resource: R,
  { metadata: { name, namespace = '', uid } }: StoredObject<R>,
): Promise<boolean> {
  try {
    await store.delete(resource, { namespace, name }, { uid })
    return true
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return false
    throw error
  }
}
