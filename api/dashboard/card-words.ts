/** Short forms that all cards of the dashboard use. */

/** Whole seconds since 1970; undefined: it is not a time. */
export function secondsOf(instant: string | undefined): number | undefined {
  const ms = instant === undefined ? Number.NaN : Date.parse(instant)
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000)
}

const longestSentence = 240

/** With a capital letter, a full stop, and on one line. A name such as `wlan0` stays as it is. */
export function sentence(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const short = line.length <= longestSentence ? line : `${line.slice(0, longestSentence - 1)}…`
  if (short === '') return ''
  const isName = /^\S*[\d/._]/.test(short)
  return `${isName ? short[0] : short[0]?.toUpperCase()}${short.slice(1)}${/[.!?…]$/.test(short) ? '' : '.'}`
}
