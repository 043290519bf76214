/** Removing an object that someone else may have removed already. */
import { isApiError } from '../../api/api-error.ts'
import type { ResourceName } from '../../api/resources.ts'
import type { Store, StoredObject } from './store.ts'

/** Removes this very object, whatever its version; true when it was us who did. */
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
