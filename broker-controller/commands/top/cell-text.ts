/** Text of a fleet → cells of a terminal: what each character takes of the line, and nothing that controls the terminal. */
import { printable } from '../printable.ts'

const plain = /^[\x20-\x7e]*$/

/**
 * Without control characters. Of combining marks two stay after a character, as more would be drawn over the lines around it;
 * variation selectors, which terminals measure differently, are removed.
 */
export function cellText(text: string): string {
  if (plain.test(text)) return text
  return printable(text)
    .replace(/[\ufe00-\ufe0f]|[\u{e0100}-\u{e01ef}]/gu, '')
    .replace(/^\p{M}+/u, '')
    .replace(/(\p{M}{2})\p{M}+/gu, '$1')
}

/** Columns that a text without control characters takes. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

/** Marks that combine take no column, wide characters of East Asia and emoji two (Unicode, UAX #11 and UTS #51). */
function characterWidth(character: string): 0 | 1 | 2 {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x300) return 1
  if (/[\p{Mn}\p{Me}]/u.test(character) || (code >= 0x1160 && code <= 0x11ff)) return 0
  return /\p{Emoji_Presentation}/u.test(character) || wide.some(([first, last]) => code >= first && code <= last)
    ? 2
    : 1
}

const wide: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x1b2ff],
  [0x20000, 0x3fffd],
]

/** Exactly so many columns: padded with spaces, or cut with `…` at its end. */
export function fitted(text: string, columns: number, isRight = false): string {
  if (columns <= 0) return ''
  const width = widthOf(text)
  if (width <= columns) {
    const space = ' '.repeat(columns - width)
    return isRight ? space + text : text + space
  }
  const cut = firstColumns(text, columns - 1)
  return `${cut}…${' '.repeat(columns - 1 - widthOf(cut))}`
}

/** Without its first columns; a wide character that is cut in two is left out. */
export function withoutFirst(text: string, columns: number): string {
  const cut = firstColumns(text, columns)
  const rest = text.slice(cut.length)
  return columns > widthOf(cut) && rest !== '' ? [...rest].slice(1).join('') : rest
}

function firstColumns(text: string, columns: number): string {
  if (plain.test(text)) return text.slice(0, columns)
  let width = 0
  let cut = ''
  for (const character of text) {
    width += characterWidth(character)
    if (width > columns) break
    cut += character
  }
  return cut
}
