/** Sets of characters in patterns: what a class, an escape or a dot stands for. */

/** Whether a character, as a code point, is in the set. */
export type CharacterSet = (code: number) => boolean

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

export function rangeSet(ranges: readonly Range[]): CharacterSet {
  return (code) => ranges.some(([first, last]) => code >= first && code <= last)
}

export function oneCharacter(code: number): CharacterSet {
  return (other) => other === code
}

export function anyOfSets(sets: readonly CharacterSet[]): CharacterSet {
  return (code) => sets.some((set) => set(code))
}

export function otherThan(set: CharacterSet): CharacterSet {
  return (code) => !set(code)
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

/** `L`, `Lu`, `Greek`: a general category or a script of Unicode; undefined: there is none of this name. */
export function unicodeClass(name: string): CharacterSet | undefined {
  if (!/^[A-Za-z_]+$/.test(name)) return undefined
  if (name === 'Any') return () => true
  for (const property of [`General_Category=${name}`, `Script=${name}`]) {
    try {
      const one = new RegExp(`^\\p{${property}}$`, 'u')
      return (code) => one.test(String.fromCodePoint(code))
    } catch {
      // No property of this kind has the name.
    }
  }
  return undefined
}

/** The set without a difference between upper and lower case. */
export function foldedSet(set: CharacterSet): CharacterSet {
  return (code) => {
    if (set(code)) return true
    const text = String.fromCodePoint(code)
    return [text.toLowerCase(), text.toUpperCase()].some((other) => {
      const [first, second] = other
      return first !== undefined && second === undefined && set(first.codePointAt(0) ?? code)
    })
  }
}

export function isWordCharacter(code: number): boolean {
  return rangeSet(word)(code)
}
