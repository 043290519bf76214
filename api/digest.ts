/**
 * What a lease carries so that a lost message is noticed: a fingerprint of everything the node has reported of itself and
 * its pods. Not a security measure. Both sides fold in the same texts, one at a time and in any order, so a change
 * costs one text and not the whole state.
 */

/** An empty state. */
export const emptyDigest = '0000000000000000'

/** The fingerprint of one message: its topic and its body, as sent. FNV-1a, 32 bits twice with two offsets, in one pass. */
export function digestText(topic: string, body: string): string {
  let first = 0x811c9dc5
  let second = 0x050c5d1f
  for (const part of [topic, '\n', body]) {
    for (let i = 0; i < part.length; i++) {
      const code = part.charCodeAt(i)
      first = Math.imul(first ^ code, 0x01000193)
      second = Math.imul(second ^ code, 0x01000193)
    }
  }
  return hex(first) + hex(second)
}

/** `digest` with one text's fingerprint put in, or, called a second time with it, taken out again. */
export function foldDigest(digest: string, text: string): string {
  return fold(digest, text, 0) + fold(digest, text, 8)
}

function fold(a: string, b: string, at: number): string {
  return hex(Number.parseInt(a.slice(at, at + 8), 16) ^ Number.parseInt(b.slice(at, at + 8), 16))
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}
