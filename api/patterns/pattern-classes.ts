/** Sets of characters in patterns: what a class, an escape or a dot stands for. */

export type CharacterSet = {
  /** Whether a character, as a code point, is in the set. */
  has(code: number): boolean
  /** What that costs, in steps through a pattern. */
  readonly cost: number
}

type Range = readonly [first: number, last: number]

const digits: readonly Range[] = [[0x30, 0x39]]
const lower: Range = [0x61, 0x7a]
const upper: Range = [0x41, 0x5a]
const blanks: readonly Range[] = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
]
const word: readonly Range[] = [...digits, upper, [0x5f, 0x5f], lower]

/** `\d`, `\s`, `\w`. */
const perlClasses: ReadonlyMap<string, readonly Range[]> = new Map([
  ['d', digits],
  ['s', blanks],
  ['w', word],
])

/** `[[:alpha:]]`. */
const posixClasses: ReadonlyMap<string, readonly Range[]> = new Map<string, readonly Range[]>([
  ['alnum', [...digits, upper, lower]],
  ['alpha', [upper, lower]],
  ['ascii', [[0x00, 0x7f]]],
  [
    'blank',
    [
      [0x09, 0x09],
      [0x20, 0x20],
    ],
  ],
  [
    'cntrl',
    [
      [0x00, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ['digit', digits],
  ['graph', [[0x21, 0x7e]]],
  ['lower', [lower]],
  ['print', [[0x20, 0x7e]]],
  [
    'punct',
    [
      [0x21, 0x2f],
      [0x3a, 0x40],
      [0x5b, 0x60],
      [0x7b, 0x7e],
    ],
  ],
  [
    'space',
    [
      [0x09, 0x0d],
      [0x20, 0x20],
    ],
  ],
  ['upper', [upper]],
  ['word', word],
  ['xdigit', [...digits, [0x41, 0x46], [0x61, 0x66]]],
])

export const everyCharacter: CharacterSet = { has: () => true, cost: 1 }

export function rangeSet(ranges: readonly Range[]): CharacterSet {
  return { has: (code) => ranges.some(([first, last]) => code >= first && code <= last), cost: ranges.length }
}

export function oneCharacter(code: number): CharacterSet {
  return { has: (other) => other === code, cost: 1 }
}

export function anyOfSets(sets: readonly CharacterSet[]): CharacterSet {
  return { has: (code) => sets.some((set) => set.has(code)), cost: sets.reduce((sum, { cost }) => sum + cost, 1) }
}

export function otherThan(set: CharacterSet): CharacterSet {
  return { has: (code) => !set.has(code), cost: set.cost + 1 }
}

/** `d`, `D`, `s`, `S`, `w`, `W`; undefined: another letter. */
export function perlClass(letter: string): CharacterSet | undefined {
  const ranges = perlClasses.get(letter.toLowerCase())
  if (ranges === undefined) return undefined
  return letter === letter.toLowerCase() ? rangeSet(ranges) : otherThan(rangeSet(ranges))
}

/** `alpha`, `^alpha`; undefined: there is no such class. */
export function posixClass(name: string): CharacterSet | undefined {
  const isNegated = name.startsWith('^')
  const ranges = posixClasses.get(isNegated ? name.slice(1) : name)
  if (ranges === undefined) return undefined
  return isNegated ? otherThan(rangeSet(ranges)) : rangeSet(ranges)
}

const unicodeClasses = new Map<string, CharacterSet>([['Any', everyCharacter]])

/**
 * `L`, `Lu`, `Greek`: a general category or a script of Unicode; undefined: there is none of this name. There are some hundreds, and each is
 * made once: a pattern may name them thousands of times.
 */
export function unicodeClass(name: string): CharacterSet | undefined {
  if (!/^[A-Za-z_]+$/.test(name)) return undefined
  const known = unicodeClasses.get(name)
  if (known !== undefined) return known
  for (const property of [`General_Category=${name}`, `Script=${name}`]) {
    try {
      const one = new RegExp(`^\\p{${property}}$`, 'u')
      const made: CharacterSet = { has: (code) => one.test(String.fromCodePoint(code)), cost: 8 }
      unicodeClasses.set(name, made)
      return made
    } catch {
      // No property of this kind has the name.
    }
  }
  return undefined
}

/** The set without a difference between upper and lower case. */
export function foldedSet(set: CharacterSet): CharacterSet {
  return {
    cost: 3 * set.cost + 8,
    has(code) {
      if (set.has(code)) return true
      const text = String.fromCodePoint(code)
      return [text.toLowerCase(), text.toUpperCase()].some((other) => {
        const [first, second] = other
        return first !== undefined && second === undefined && set.has(first.codePointAt(0) ?? code)
      })
    },
  }
}

const wordSet = rangeSet(word)

export function isWordCharacter(code: number): boolean {
  return wordSet.has(code)
}
