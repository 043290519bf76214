/** Counts by name, without those that are nought. */
export function addTo<Name>(counts: Map<Name, number>, name: Name | undefined, change: number): void {
  if (name === undefined) return
  const next = (counts.get(name) ?? 0) + change
  if (next === 0) counts.delete(name)
  else counts.set(name, next)
}
