/** Lines → what a terminal is sent for them (ECMA-48; the private modes are xterm's). */
import type { Line, Style } from './top-screen.ts'

const codes: { readonly [S in Style]: string } = {
  bad: '1;31',
  warn: '33',
  idle: '2',
  good: '',
  strong: '1',
  faint: '2',
}
/** Without colours: https://no-color.org */
const plainCodes: { readonly [S in Style]: string } = { ...codes, bad: '1', warn: '1' }

/** The alternate screen, no cursor, and no wrapping: a character that the terminal measures in another way stays on its line. */
export const enterText = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
/** What the terminal showed before. */
export const leaveText = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'

/** One line with its styles. */
export function styledText(line: Line, isColoured: boolean): string {
  return line
    .map(({ text, style }) => {
      const code = style === undefined ? '' : (isColoured ? codes : plainCodes)[style]
      return code === '' ? text : `\x1b[${code}m${text}\x1b[0m`
    })
    .join('')
}

/** What turns the lines `before` into `after`: only those that differ are written. Undefined `before`: all. */
export function frameText(before: readonly string[] | undefined, after: readonly string[]): string {
  const parts = before === undefined ? ['\x1b[2J'] : []
  for (let row = 0; row < Math.max(after.length, before?.length ?? 0); row++) {
    const line = after[row] ?? ''
    if (line !== (before?.[row] ?? '')) parts.push(`\x1b[${row + 1};1H\x1b[2K${line}`)
  }
  return parts.join('')
}
