/** A store that stops taking writes, as it is for a process that is killed between two of them. */
import { ApiError } from '../../api/api-error.ts'
import type { Store } from '../store/store.ts'

export interface CrashingStore {
  readonly store: Store
  /** From now on this many writes succeed, and all after them fail. Events do not count: no decision is made from them. */
  allow(writes: number): void
  /** Whether a write has failed since `allow`. */
  crashed(): boolean
  /** How many writes have succeeded since `allow`. */
  written(): number
}

export function crashingStore(inner: Store): CrashingStore {
  let left = Number.POSITIVE_INFINITY
  let hasCrashed = false
  let written = 0
  const admit = (resource: string) => {
    if (resource === 'events') return
    if (left <= 0) {
      hasCrashed = true
      throw new ApiError('InternalError', 'the process was killed')
    }
    left--
    written++
  }
  const store: Store = {
    ...inner,
    async create(resource, object) {
      admit(resource)
      return await inner.create(resource, object)
    },
    async update(resource, object) {
      admit(resource)
      return await inner.update(resource, object)
    },
    async updateStatus(resource, object) {
      admit(resource)
      return await inner.updateStatus(resource, object)
    },
    async delete(resource, key, preconditions) {
      admit(resource)
      return await inner.delete(resource, key, preconditions)
    },
  }
  return {
    store,
    allow(writes) {
      left = writes
      hasCrashed = false
      written = 0
    },
    crashed: () => hasCrashed,
    written: () => written,
  }
}
