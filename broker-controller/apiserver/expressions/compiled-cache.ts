/** Compiled expressions that are kept: the ones used last, in bounded memory. */

/** Characters of all kept expressions, which take about 10 MB. */
const mostCharacters = 100_000
const leastCharacters = 100

export type CompiledCache<T> = {
  /** `make` is called where nothing is kept under the key; `characters`: of the sources of what it makes. */
  get(key: string, characters: number, make: () => T): T
}

export function compiledCache<T>(most = mostCharacters): CompiledCache<T> {
  const kept = new Map<string, { readonly value: T; readonly characters: number }>()
  let total = 0
  return {
    get(key, characters, make) {
      const known = kept.get(key)
      // The one that was used last is the last of the map.
      kept.delete(key)
      const entry = known ?? { value: make(), characters: Math.max(leastCharacters, characters) }
      kept.set(key, entry)
      if (known === undefined) total += entry.characters
      for (const [oldest, { characters: freed }] of kept) {
        if (total <= most || oldest === key) break
        kept.delete(oldest)
        total -= freed
      }
      return entry.value
    },
  }
}
