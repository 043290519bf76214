/** A store on etcd whose connection breaks during a write: it is answered 504, and has happened, or has not. */
import { ApiError } from '../../api/api-error.ts'
import type { Store } from '../store/store.ts'

export interface UncertainStore {
  readonly store: Store
  /** How many writes were answered 504. */
  unanswered(): number
}

/** The first attempt to write each object is answered 504. `happens`: it was written. */
export function uncertainStore(inner: Store, happens: boolean): UncertainStore {
  const tried = new Set<string>()
  const uncertain = async <T>(name: string, write: () => Promise<T>): Promise<T> => {
    if (tried.has(name)) return write()
    tried.add(name)
    if (happens) await write()
    throw new ApiError('Timeout', 'etcd did not answer: the write may have happened (read ECONNRESET)')
  }
  const nameOf = (resource: string, { metadata }: { metadata: { namespace?: string; name?: string } }) =>
    `${resource}/${metadata.namespace ?? ''}/${metadata.name ?? ''}`
  return {
    store: {
      ...inner,
      create: (resource, object) => uncertain(nameOf(resource, object), () => inner.create(resource, object)),
      update: (resource, object) => uncertain(nameOf(resource, object), () => inner.update(resource, object)),
      updateStatus: (resource, object) =>
        uncertain(nameOf(resource, object), () => inner.updateStatus(resource, object)),
      delete: (resource, { namespace, name }, preconditions) =>
        uncertain(nameOf(resource, { metadata: { namespace, name } }), () =>
          inner.delete(resource, { namespace, name }, preconditions),
        ),
    },
    unanswered: () => tried.size,
  }
}
