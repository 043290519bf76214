/**
 * Equal texts of stored objects, held once. A fleet repeats itself: nodes run the same images and report the same conditions, and each
 * parsed message brings its own copies of their names.
 */

export type CommonTextsLimits = {
  /** Places for texts: twice as many texts are kept at most. A power of two. */
  readonly places: number
  /** Characters of the texts that are kept. */
  readonly length: number
}

/** About 4 MB: the distinct texts of some hundred nodes, of which those that are repeated stay. */
const defaultLimits: CommonTextsLimits = { places: 8192, length: 2 * 1024 * 1024 }
/** V8 holds single characters once by itself, and a long text is seldom the same elsewhere. */
const shortest = 2
const longest = 512
/** What differs between names, digests and dates is mostly at their end. */
const hashedEnd = 20

/**
 * Gives the text that was given first among equal ones, as long as it is kept: of the texts with one place the two that were used last
 * stay. A store opens with millions of texts, so no Map is used: it would hash the whole of each, and `sharedTexts` looks into two.
 */
export function commonTexts({
  places,
  length: mostLength,
}: CommonTextsLimits = defaultLimits): (text: string) => string {
  const latest = Array.from({ length: places }, () => '')
  const earlier = Array.from({ length: places }, () => '')
  let length = 0
  const dropSome = () => {
    earlier.fill('')
    length = latest.reduce((sum, text) => sum + text.length, 0)
    if (length <= mostLength / 2) return
    latest.fill('')
    length = 0
  }
  return (text) => {
    if (text.length < shortest || text.length > longest) return text
    const place = hashOf(text) & (places - 1)
    const first = latest[place] ?? ''
    const second = earlier[place] ?? ''
    if (first === text) return first
    const isSecond = second === text
    const kept = isSecond ? second : text
    earlier[place] = first
    latest[place] = kept
    if (isSecond) return kept
    length += text.length - second.length
    if (length > mostLength) dropSome()
    return kept
  }
}

/**
 * Hash of the length, the end, and two characters before it: hashing the whole name of an image takes longer than the
 * rest of the search.
 */
function hashOf(text: string): number {
  const { length } = text
  let hash = length
  for (let i = Math.max(0, length - hashedEnd); i < length; i++) hash = mixed(hash, text.charCodeAt(i))
  if (length > hashedEnd) hash = mixed(mixed(hash, text.charCodeAt(length >>> 1)), text.charCodeAt(length >>> 2))
  return hash ^ (hash >>> 15)
}

function mixed(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) | 0
}
