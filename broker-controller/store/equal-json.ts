/**
 * Compares two JSON values. As `isDeepStrictEqual`, in a fifth of its time (7 and 36 µs for the status of a node with 50
 * images), because neither prototypes nor keys that are not text are compared. `ignored`: a field that may differ, wherever it is.
 */
export function equalJSON(a: unknown, b: unknown, ignored?: string): boolean {
  if (a === b) return true
  if (!isObject(a) || !isObject(b)) return false
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => equalJSON(item, b[i], ignored))
  }
  const names = Object.keys(a)
  if (Array.isArray(b) || names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && (name === ignored || equalJSON(a[name], b[name], ignored)))
}

function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}
