/** Objects by namespace and name. No text of both is made for a look-up: a fleet of 10,000 nodes renews a thousand leases a second. */
import type { ObjectKey } from './store.ts'

export interface ObjectsByKey<Value> {
  /** What is missing in the key counts as ''. */
  get(key: Partial<ObjectKey>): Value | undefined
  set(key: Partial<ObjectKey>, value: Value): void
  delete(key: Partial<ObjectKey>): void
  /** Namespace by namespace. */
  values(): Iterable<Value>
  isEmpty(): boolean
}

export function objectsByKey<Value>(): ObjectsByKey<Value> {
  const namespaces = new Map<string, Map<string, Value>>()
  return {
    get: ({ namespace = '', name = '' }) => namespaces.get(namespace)?.get(name),
    set({ namespace = '', name = '' }, value) {
      const found = namespaces.get(namespace)
      if (found === undefined) namespaces.set(namespace, new Map([[name, value]]))
      else found.set(name, value)
    },
    delete({ namespace = '', name = '' }) {
      const found = namespaces.get(namespace)
      if (found?.delete(name) && found.size === 0) namespaces.delete(namespace)
    },
    *values() {
      for (const found of namespaces.values()) yield* found.values()
    },
    isEmpty: () => namespaces.size === 0,
  }
}
