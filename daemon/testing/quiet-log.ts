/** A log that keeps its lines for the test, and fails it on an unexpected error. */
import { type Facts, type Log, type LogLevel, storyOf } from '../log.ts'

export type LogLine = { readonly level: LogLevel; readonly message: string; readonly facts: Facts }

export interface QuietLog extends Log {
  readonly lines: readonly LogLine[]
  /** The messages of one level, in order. */
  messages(level: LogLevel): readonly string[]
}

/** `expected`: the messages of errors that belong to what is tested. */
export function quietLog(t: { fail(message: string): unknown }, ...expected: readonly string[]): QuietLog {
  const lines: LogLine[] = []
  const write = (level: LogLevel, message: string, facts: Facts) => {
    lines.push({ level, message, facts })
    if (level === 'error' && !expected.includes(message)) t.fail(`Unexpected error logged: ${lineOf(message, facts)}`)
  }
  return {
    ...faceWith(write, {}),
    lines,
    messages: (level) => lines.filter((line) => line.level === level).map(({ message }) => message),
  }
}

function faceWith(write: (level: LogLevel, message: string, facts: Facts) => void, always: Facts): Log {
  const at =
    (level: LogLevel) =>
    (message: string, facts: Facts = {}) =>
      write(level, message, { ...always, ...facts })
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    with: (facts) => faceWith(write, { ...always, ...facts }),
  }
}

function lineOf(message: string, facts: Facts): string {
  const fields = Object.entries(facts).map(([name, fact]) => `${name}=${storyOf(fact)}`)
  return [message, ...fields].join(' ')
}
