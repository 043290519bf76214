/** Writes that others may race with: read, decide, write, and again after a conflict; removal of what may be gone already. */
import { isApiError } from '../../api/api-error.ts'
import { withoutFinalizer } from '../../api/deletion/finalizers.ts'
import { isReleased } from '../../api/deletion/object-deletion.ts'
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

export type ObjectIdentity = { readonly name: string; readonly namespace?: string; readonly uid: string }

/** Readers see a write only once it is kept, so trying again at once would meet the same conflict. */
const waitsMs = [20, 40, 80, 160]

/** The object as written; undefined when it is gone or was left as it is. The fifth conflict in a row is thrown. */
export function rewrite<R extends ResourceName>(
  needs: RewriteNeeds,
  resource: R,
  { key, uid, part = 'whole', change }: Rewriting<R>,
): Promise<StoredObject<R> | undefined> {
  const { store } = needs
  return onNewest(needs, resource, { key, ...(uid !== undefined && { uid }) }, (object) => {
    const wanted = change(object)
    if (wanted === undefined) return undefined
    return () => (part === 'status' ? store.updateStatus(resource, wanted) : store.update(resource, wanted))
  })
}

/**
 * Removes the finalizer of this very object. An object that nothing else holds goes in the same write: between two of them a process may
 * end, and then nothing would remove it. `beforeRemoval`: what has to be written before the object is gone.
 */
export async function removeFinalizer<R extends ResourceName>(
  needs: RewriteNeeds,
  resource: R,
  { metadata: { name, namespace = '', uid } }: { readonly metadata: ObjectIdentity },
  finalizer: string,
  beforeRemoval: () => Promise<void> = async () => {},
): Promise<void> {
  const { store } = needs
  const key = { namespace, name }
  await onNewest(needs, resource, { key, uid }, (object) => {
    const wanted = withoutFinalizer<StoredObject<R>>(object, finalizer)
    if (wanted === undefined) return undefined
    return async () => {
      if (!isReleased(wanted)) return await store.update(resource, wanted)
      await beforeRemoval()
      return await store.delete(resource, key, { uid, resourceVersion: object.metadata.resourceVersion })
    }
  })
}

export type Removing<R extends ResourceName> = Pick<Rewriting<R>, 'key' | 'uid'> & {
  /** What becomes of the newest version; an object: it is written. undefined: it is left as it is. */
  readonly plan: (object: StoredObject<R>) => 'remove' | ResourceTypes[R] | undefined
  /** What has to be written before the object is gone. */
  readonly beforeRemoval?: () => Promise<void>
}

/**
 * True when the object was removed or written. It is removed in the version that was decided on: a finalizer that was added since holds
 * it. The fifth conflict in a row is thrown.
 */
export async function removeOrRewrite<R extends ResourceName>(
  needs: RewriteNeeds,
  resource: R,
  { key, uid, plan, beforeRemoval }: Removing<R>,
): Promise<boolean> {
  const { store } = needs
  const written = await onNewest(needs, resource, { key, ...(uid !== undefined && { uid }) }, (object) => {
    const wanted = plan(object)
    if (wanted === undefined) return undefined
    return async () => {
      if (wanted !== 'remove') return await store.update(resource, wanted)
      await beforeRemoval?.()
      const { uid: present, resourceVersion } = object.metadata
      return await store.delete(resource, key, { uid: present, resourceVersion })
    }
  })
  return written !== undefined
}

/**
 * Tries again on the newest version after a conflict, but not when the object is gone. `decide` gives the write, or undefined for none; what it
 * throws itself is not tried again.
 */
async function onNewest<R extends ResourceName>(
  { store, clock }: RewriteNeeds,
  resource: R,
  { key, uid }: Pick<Rewriting<R>, 'key' | 'uid'>,
  decide: (object: StoredObject<R>) => (() => Promise<StoredObject<R> | undefined>) | undefined,
): Promise<StoredObject<R> | undefined> {
  for (let failures = 0; ; failures++) {
    const object = await store.get(resource, key)
    if (object === undefined || (uid !== undefined && object.metadata.uid !== uid)) return undefined
    const write = decide(object)
    if (write === undefined) return undefined
    try {
      return await write()
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined
      await clock.sleep(waitAfter(error, failures))
    }
  }
}

/** Removes this very object, whatever its version and its finalizers; true when this call removed it. */
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

/** Until the next attempt. Throws the error where there is none. */
function waitAfter(error: unknown, failures: number): number {
  const waitMs = waitsMs[failures]
  if (waitMs === undefined || !isApiError(error, 'Conflict')) throw error
  return waitMs
}
