/** Inputs that no honest sender makes: the same ones in each run, by a seed that a failing test prints. */
import { seededRandom } from './seeded-random.ts'

/** `BRAMBLE_FUZZ_SEED` chooses other inputs. */
export const fuzzSeed = Number(process.env['BRAMBLE_FUZZ_SEED'] ?? 20261122)

/** Gives whole numbers below 2^32. */
export type RandomNumbers = () => number

export function randomNumbers(from: number = fuzzSeed): RandomNumbers {
  const random = seededRandom(from)
  return () => random() * 2 ** 32
}

/** A few bytes are changed, removed or repeated, or the end is cut. */
export function mutatedBytes(bytes: Buffer, random: RandomNumbers): Buffer {
  let result = Buffer.from(bytes)
  for (let count = random() % 6; count > 0 && result.length > 0; count--) {
    const at = random() % result.length
    switch (random() % 5) {
      case 0:
        result.writeUInt8(random() % 256, at)
        break
      case 1:
        result.writeUInt8([0, 1, 0x7f, 0x80, 0xff][random() % 5] ?? 0, at)
        break
      case 2:
        result = Buffer.concat([result.subarray(0, at), result.subarray(at + 1 + (random() % 8))])
        break
      case 3:
        result = Buffer.concat([result.subarray(0, at), result.subarray(Math.max(0, at - 20))])
        break
      default:
        result = result.subarray(0, at)
    }
  }
  return result
}

/** The bytes in pieces of at most this many. */
export function* randomPieces(bytes: Buffer, most: number, random: RandomNumbers): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + (random() % most)
    yield bytes.subarray(at, end)
    at = end
  }
}

const strange: readonly unknown[] = [null, '', 'x', 0, -1, 1e308, 2 ** 53, true, [], {}, [null], [[]], { a: null }]
const strangeNames = ['name', '__proto__', 'constructor', 'toString', '$patch', '', 'a/b', '~1', '-']

/** The value with some of its parts replaced, removed, repeated or renamed. */
export function mutatedValue(value: unknown, random: RandomNumbers): unknown {
  if (random() % 16 === 0) return strange[random() % strange.length]
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((item) => mutatedValue(item, random))
    return random() % 10 === 0 ? [...items, ...items] : items
  }
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    if (random() % 24 === 0) return []
    const other = strangeNames[random() % strangeNames.length] ?? ''
    return [[random() % 32 === 0 ? other : name, mutatedValue(inner, random)]]
  })
  // Unlike Object.assign it makes a field of the name __proto__, as JSON.parse does.
  return Object.fromEntries(fields)
}
