/** A log that comes in pieces → its lines. */

/** A line without an end, as of a progress bar, would grow in the memory of the browser for as long as the page is open. */
const longestLine = 4_096

/** `rest`: what of the line under way has come, '' at first. Longer lines are cut. */
export function logLines(rest: string, piece: string): { readonly lines: readonly string[]; readonly rest: string } {
  const parts = (rest + piece).split('\n').map(cut)
  return { lines: parts.slice(0, -1), rest: parts.at(-1) ?? '' }
}

function cut(line: string): string {
  return line.length > longestLine ? `${line.slice(0, longestLine)}…` : line
}
