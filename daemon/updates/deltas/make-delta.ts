/** Makes the delta from one archive to another: bytes that only the other has are kept, and what both have is named by its place. For publishers only. */
import { brotliCompressSync, constants } from 'node:zlib'
import { type DeltaPart, deltaBytes } from './delta-steps.ts'

/** So many bytes find a place in the base that begins with them. A multiple of four. */
const keyBytes = 16
/** A shorter copy costs as much as its bytes: chosen by the deltas between releases of the agent 20, 100 and 300 commits apart. */
const shortestCopy = 24
/** A copy that continues after a small change needs no search, and its place takes a byte. */
const shortestContinuation = 8
/** So many places in the base are compared: text that is repeated everywhere has thousands of equal ones. */
const mostPlaces = 16
/** The decoder keeps a window of at most so many bytes, 2^22. */
const windowBits = 22
/** Above this size the best quality takes ten times the CPU time for 9 % less: 7 s for 3.8 MB on x86-64. */
const bestUpToBytes = 1024 * 1024
const usualQuality = 9

/** `base` may be empty: the delta is then the compressed archive. Takes about five times the size of `base` in memory, and twice that of `target`. */
export function makeDelta(base: Buffer, target: Buffer): Buffer {
  const plain = deltaBytes(partsOf(base, target))
  return brotliCompressSync(plain, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: plain.length > bestUpToBytes ? usualQuality : constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: windowBits,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    },
  })
}

type Copy = { readonly from: number; readonly length: number }

function partsOf(base: Buffer, target: Buffer): readonly DeltaPart[] {
  const places = placesOf(base)
  const parts: DeltaPart[] = []
  let done = 0
  let copyEnd = 0
  for (let at = 0; at + keyBytes <= target.length; ) {
    const found = longestCopy(places, base, target, at, copyEnd + at - done)
    if (found === undefined) {
      at++
      continue
    }
    // The bytes before were found nowhere by their key, and may be the same here.
    let back = 0
    while (at - back > done && found.from > back && base[found.from - back - 1] === target[at - back - 1]) back++
    const copy = { from: found.from - back, length: found.length + back }
    parts.push({ bytes: target.subarray(done, at - back), ...copy })
    copyEnd = copy.from + copy.length
    at += found.length
    done = at
  }
  return done === target.length ? parts : [...parts, { bytes: target.subarray(done), from: 0, length: 0 }]
}

/** `continued`: where the base continues if only bytes were replaced since the copy before. */
function longestCopy(places: Places, base: Buffer, target: Buffer, at: number, continued: number): Copy | undefined {
  const straight = continued < base.length ? commonLength(base, continued, target, at) : 0
  let best: Copy | undefined = straight < shortestContinuation ? undefined : { from: continued, length: straight }
  let from = places.first[keyOf(target, at)] ?? -1
  for (let tried = 0; from >= 0 && tried < mostPlaces; tried++) {
    const length = commonLength(base, from, target, at)
    if (length >= shortestCopy && length > (best?.length ?? 0)) best = { from, length }
    from = places.next[from] ?? -1
  }
  return best
}

/** The places of the base by the hash of the bytes there, the first place first. */
type Places = { readonly first: Int32Array; readonly next: Int32Array }

const keyBits = 20

function placesOf(base: Buffer): Places {
  const first = new Int32Array(2 ** keyBits).fill(-1)
  const next = new Int32Array(base.length)
  for (let from = base.length - keyBytes; from >= 0; from--) {
    const key = keyOf(base, from)
    next[from] = first[key] ?? -1
    first[key] = from
  }
  return { first, next }
}

/** A multiplicative hash: the constant is 2^32 divided by the golden ratio. */
function keyOf(bytes: Buffer, at: number): number {
  let hash = 0
  for (let i = 0; i < keyBytes; i += 4) {
    hash = Math.imul(hash ^ bytes.readInt32LE(at + i), 0x9e3779b1)
    hash ^= hash >>> 15
  }
  return hash & (2 ** keyBits - 1)
}

function commonLength(base: Buffer, from: number, target: Buffer, at: number): number {
  const most = Math.min(base.length - from, target.length - at)
  let length = 0
  while (length < most && base[from + length] === target[at + length]) length++
  return length
}
