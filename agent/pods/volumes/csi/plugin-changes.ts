/** The folder in which plugins register → what has changed since it was read last. Pure. */

/** Enough for the drivers of a machine. It bounds what a folder full of sockets can take. */
export const mostPlugins = 64

/**
 * `known`, `present`: by name, what identifies the socket. A driver that has made another one at the same path is `gone` and `added`. More
 * than `mostPlugins` are not added, the first of `present` before others.
 */
export function pluginChanges(
  known: ReadonlyMap<string, string>,
  present: ReadonlyMap<string, string>,
): { readonly gone: readonly string[]; readonly added: readonly (readonly [name: string, id: string])[] } {
  const isKept = (name: string) => known.has(name) && known.get(name) === present.get(name)
  const gone = [...known.keys()].filter((name) => !isKept(name))
  const room = mostPlugins - (known.size - gone.length)
  return { gone, added: [...present].filter(([name]) => !isKept(name)).slice(0, Math.max(0, room)) }
}
