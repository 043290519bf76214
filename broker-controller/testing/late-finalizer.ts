/** Another client that adds a finalizer to an object after its removal was decided, and before it is removed. */
import type { ResourceName, ResourceTypes } from '../../api/resources.ts'
import type { Store } from '../store/store.ts'

export const lateFinalizer = 'example.com/late'

/** From now on each object of this kind gets the finalizer just before it would be removed. */
export function holdLate<R extends ResourceName>(store: Store, held: R): void {
  const remove = store.delete
  const hold = async (key: Parameters<Store['delete']>[1]) => {
    const present = await store.get(held, key)
    if (present === undefined || present.metadata.finalizers?.includes(lateFinalizer)) return
    const metadata = { ...present.metadata, finalizers: [lateFinalizer] }
    await store.update(held, { ...present, metadata } as ResourceTypes[R])
  }
  const deleteHeld: Store['delete'] = async (resource, key, preconditions) => {
    if (resource === (held as ResourceName)) await hold(key)
    return await remove(resource, key, preconditions)
  }
  Object.assign(store, { delete: deleteHeld })
}
