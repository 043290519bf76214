/** Sets of keys by the key of a group, as an index in memory has them. A group without keys takes no memory. */
export interface KeySets {
  of(group: string): ReadonlySet<string>
  groups(): Iterable<string>
  add(group: string, key: string): void
  delete(group: string, key: string): void
}

const none: ReadonlySet<string> = new Set()

export function keySets(): KeySets {
  const sets = new Map<string, Set<string>>()
  return {
    of: (group) => sets.get(group) ?? none,
    groups: () => sets.keys(),
    add(group, key) {
      const keys = sets.get(group)
      if (keys === undefined) sets.set(group, new Set([key]))
      else keys.add(key)
    },
    delete(group, key) {
      const keys = sets.get(group)
      if (keys?.delete(key) && keys.size === 0) sets.delete(group)
    },
  }
}
