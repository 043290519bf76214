/** Finds items that are in a list more than once, in one pass: lists may have thousands of items. */

/** The places of the items that equal an earlier one. */
export function repeatedPlaces(items: readonly unknown[]): ReadonlySet<number> {
  const seen = new Set<unknown>()
  const places = new Set<number>()
  for (const [place, item] of items.entries()) {
    if (seen.has(item)) places.add(place)
    seen.add(item)
  }
  return places
}
