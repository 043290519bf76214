/** Decides which texts are left out of a message that would be too long for its readers. */

/**
 * `kept`: in their order, `most` characters together at the most. The longest are left out first: one user with large objects does not
 * take the place of the others.
 */
export function fittingTexts(
  texts: ReadonlyMap<string, string>,
  most: number,
): { readonly kept: readonly string[]; readonly leftOut: readonly string[] } {
  let length = [...texts.values()].reduce((sum, text) => sum + text.length + 1, 0)
  if (length <= most) return { kept: [...texts.values()], leftOut: [] }
  const leftOut = new Set<string>()
  for (const [key, text] of [...texts].sort(([, a], [, b]) => b.length - a.length)) {
    if (length <= most) break
    length -= text.length + 1
    leftOut.add(key)
  }
  const kept = [...texts].flatMap(([key, text]) => (leftOut.has(key) ? [] : [text]))
  return { kept, leftOut: [...leftOut] }
}
