/** Which lines of the programs ran in the worlds, by the counters of V8. */

/** As `Profiler.takePreciseCoverage` gives it with `detailed`: outer functions and ranges first. */
export type ScriptCoverage = {
  readonly url: string
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[]
  }[]
}

export type LinesNeeds = {
  /** The compiled text of a script. */
  readonly textOf: (url: string) => string
  /** The line of the source (from 1) of a place in the compiled text (from 0). */
  readonly sourceLineOf: (url: string, line: number, column: number) => number | undefined
}

export type FileLines = {
  readonly url: string
  /** Number of lines of the source that have code. */
  readonly lines: number
  /** Those of which a part never ran. */
  readonly missed: readonly number[]
}

/** Gives a row for each script that one of these processes has loaded. What ran in one of them has run. */
export function linesRun(
  processes: readonly (readonly ScriptCoverage[])[],
  wanted: (url: string) => boolean,
  needs: LinesNeeds,
): readonly FileLines[] {
  const byUrl = new Map<string, ScriptCoverage[]>()
  for (const script of processes.flat()) {
    if (wanted(script.url)) byUrl.set(script.url, [...(byUrl.get(script.url) ?? []), script])
  }
  return [...byUrl].sort(([a], [b]) => (a < b ? -1 : 1)).map(([url, scripts]) => fileLines(url, scripts, needs))
}

function fileLines(url: string, scripts: readonly ScriptCoverage[], { textOf, sourceLineOf }: LinesNeeds): FileLines {
  const text = textOf(url)
  const parts = scripts.map((script) => ran(script, text.length))
  const hasRun = (offset: number) => parts.some((part) => part[offset] === 1)
  const [lines, missed] = [new Set<number>(), new Set<number>()]
  let begin = 0
  for (const [number, line] of text.split('\n').entries()) {
    for (const column of codeColumns(line)) {
      const source = sourceLineOf(url, number, column)
      if (source === undefined) continue
      lines.add(source)
      if (!hasRun(begin + column)) missed.add(source)
    }
    begin += line.length + 1
  }
  return { url, lines: lines.size, missed: [...missed].sort((a, b) => a - b) }
}

/** 1 where it ran, by the innermost range. */
function ran({ functions }: ScriptCoverage, length: number): Uint8Array {
  const all = new Uint8Array(length).fill(1)
  for (const { ranges } of functions) {
    for (const { startOffset, endOffset, count } of ranges) all.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  }
  return all
}

/** Where a word begins; not in comments, which stand in lines of their own in compiled text. */
function codeColumns(line: string): readonly number[] {
  if (/^\s*(\/\/|\/\*|\*)/.test(line)) return []
  return [...line.matchAll(/[\w$]+/g)].map(({ index }) => index)
}

/** A line for each file with lines that were missed, and a sum. `nameOf`: of the source. */
export function linesText(files: readonly FileLines[], nameOf: (url: string) => string): readonly string[] {
  const whole = files.reduce((sum, { lines }) => sum + lines, 0)
  const missed = files.reduce((sum, file) => sum + file.missed.length, 0)
  return [
    'Lines of which a part never ran:',
    ...files.flatMap(({ url, missed: some }) => (some.length > 0 ? [`  ${nameOf(url)}: ${spans(some)}`] : [])),
    `${whole - missed} of ${whole} lines ran as a whole, in ${files.length} files`,
  ]
}

/** `1-3 7` of 1, 2, 3 and 7. */
function spans(numbers: readonly number[]): string {
  const found: [number, number][] = []
  for (const number of numbers) {
    const last = found.at(-1)
    if (last !== undefined && last[1] === number - 1) last[1] = number
    else found.push([number, number])
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(' ')
}
