/** Equal texts, held once: keys of objects, which many loops keep for as long as their object is there. */

export type SharedTextLimits = {
  /** The most texts that are kept, of both generations. */
  readonly texts: number
  /** Characters of those texts. */
  readonly length: number
}

/** V8 holds single characters once by itself, and a long text is seldom the same elsewhere. */
const shortest = 2
const longest = 512

/**
 * Gives the text that was given first among equal ones, as long as it is kept: of two generations the older one is
 * dropped when the younger one has half of the limit, and a text that is found in the older one moves to the younger.
 */
export function sharedTexts(limits: SharedTextLimits): (text: string) => string {
  let young = new Map<string, string>()
  let old = new Map<string, string>()
  let length = 0
  return (text) => {
    if (text.length < shortest || text.length > longest) return text
    const recent = young.get(text)
    if (recent !== undefined) return recent
    const kept = old.get(text) ?? text
    if (young.size >= limits.texts / 2 || length + kept.length > limits.length / 2) {
      old = young
      young = new Map()
      length = 0
    }
    length += kept.length
    young.set(kept, kept)
    return kept
  }
}
