/** Numbers and times as people read them, and what a search finds. */

/** `45 s`, `3 min`, `2 h`, `5 d`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min`
  if (whole < 48 * 3600) return `${Math.floor(whole / 3600)} h`
  return `${Math.floor(whole / 86_400)} d`
}

/** Age of an instant in seconds since 1970; '' if it is not known. */
export function ago(at: number | undefined, now: number): string {
  return at === undefined ? '' : `${duration(now - at)} ago`
}

/** `1 machine`, `2 machines` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Every word of the search is in one of the texts, in any case. */
export function isFound(search: string, texts: readonly (string | undefined)[]): boolean {
  const all = texts.join(' ').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word))
}
