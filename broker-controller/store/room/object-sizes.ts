/** How many bytes of JSON the objects of a store have, in total and by namespace: a sum that follows each change. */

export interface ObjectSizes {
  readonly total: number
  /** '': the objects without a namespace. */
  of(namespace: string): number
  /** The namespace with the most; undefined: no object has a namespace. */
  largest(): { readonly namespace: string; readonly bytes: number } | undefined
}

export function objectSizes(): ObjectSizes & { add(namespace: string, bytes: number): void } {
  const byNamespace = new Map<string, number>()
  let total = 0
  return {
    get total() {
      return total
    },
    of: (namespace) => byNamespace.get(namespace) ?? 0,
    largest() {
      let most: { readonly namespace: string; readonly bytes: number } | undefined
      for (const [namespace, bytes] of byNamespace) {
        if (namespace !== '' && bytes > (most?.bytes ?? 0)) most = { namespace, bytes }
      }
      return most
    },
    add(namespace, bytes) {
      total += bytes
      const sum = (byNamespace.get(namespace) ?? 0) + bytes
      if (sum > 0) byNamespace.set(namespace, sum)
      else byNamespace.delete(namespace)
    },
  }
}
