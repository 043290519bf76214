/**
 * Equal texts, held once. A fleet repeats itself: nodes run the same images and report the same conditions, and each
 * parsed message brings its own copies of their names.
 */

export type SharedTextLimits = {
  /** The most texts that are kept, of both generations. */
  readonly texts: number
  /** Characters of those texts. */
  readonly length: number
}

/** About 4 MB: the distinct texts of some hundred nodes, of which those that are repeated stay. */
const defaultLimits: SharedTextLimits = { texts: 32_768, length: 2 * 1024 * 1024 }
/** V8 holds single characters once by itself, and a long text is seldom the same elsewhere. */
const shortest = 2
const longest = 512

/**
 * Gives the text that was given first among equal ones, as long as it is kept: of two generations the older one is
 * dropped when the younger one has half of the limit, and a text that is found in the older one moves to the younger.
 */
export function sharedTexts(limits: SharedTextLimits = defaultLimits): (text: string) => string {
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
