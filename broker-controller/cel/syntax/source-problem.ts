/** What is wrong with an expression, as cel-go prints it: with the line of the source and a mark below. */

export type SourceProblem = { readonly at: number; readonly message: string }

/** Thrown while an expression is read. */
export class SourceError extends Error {
  readonly problem: SourceProblem

  constructor(at: number, message: string) {
    super(message)
    this.problem = { at, message }
  }
}

const mostProblems = 10
const longestLine = 512

/** `ERROR: <input>:1:4: Syntax error: …`, for each problem. */
export function problemsText(source: string, problems: readonly SourceProblem[]): string {
  return [...problems]
    .sort((a, b) => a.at - b.at)
    .slice(0, mostProblems)
    .map(({ at, message }) => {
      const before = source.slice(0, at)
      const lineStart = before.lastIndexOf('\n') + 1
      const line = source.slice(lineStart).split('\n', 1)[0] ?? ''
      const column = at - lineStart
      const place = `${before.split('\n').length}:${column + 1}`
      const head = `ERROR: <input>:${place}: ${message}`
      return line.length > longestLine ? head : `${head}\n | ${line}\n | ${'.'.repeat(column)}^`
    })
    .join('\n')
}
