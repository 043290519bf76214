/**
 * A log line is constant words plus facts: one JSON object a line, or readable text on a terminal, or the same text for
 * systemd's journal, which adds the time itself and takes the priority in the form of sd-daemon(3).
 */
import { inspect } from 'node:util'
import { withCauses } from './errors.ts'

/** Without the names that each line has itself: a fact of that name would be lost. */
export type Facts = {
  readonly [name: string]: unknown
  readonly level?: never
  readonly time?: never
  readonly message?: never
}

export interface Log {
  /** Someone must look. */
  error(message: string, facts?: Facts): void
  /** We are coping. */
  warn(message: string, facts?: Facts): void
  /** The state changed. */
  info(message: string, facts?: Facts): void
  debug(message: string, facts?: Facts): void
  /** The same log with these facts on every line. */
  with(facts: Facts): Log
}

export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

export const logFormats = ['json', 'text', 'journal'] as const
export type LogFormat = (typeof logFormats)[number]

export type LogSettings = {
  readonly level: LogLevel
  readonly format: LogFormat
  readonly write: (line: string) => void
}

/** A log that writes to `settings.write`, one call a line, each with its ending. Errors are written with their causes. */
export function openLog(settings: LogSettings): Log {
  const { write } = settings
  const shown = { json: (line: string) => `${line}\n`, text: readable, journal: forJournal }[settings.format]
  const isShown = (level: LogLevel) => levels.indexOf(level) <= levels.indexOf(settings.level)
  const withFacts = (bound: Facts): Log => {
    const writer =
      (level: LogLevel) =>
      (message: string, facts: Facts = {}) => {
        if (!isShown(level)) return
        write(shown(serialized({ level, time: new Date().toISOString(), ...bound, ...withStories(facts), message })))
      }
    return {
      error: writer('error'),
      warn: writer('warn'),
      info: writer('info'),
      debug: writer('debug'),
      with: (facts) => withFacts({ ...bound, ...withStories(facts) }),
    }
  }
  return withFacts({})
}

/** A level shows itself and those before it. */
const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug']

/** Never throws: a fact that JSON has no form for, such as an object that contains itself, is written as Node.js prints it. */
function serialized(record: { readonly [name: string]: unknown }): string {
  const plain = (_: string, fact: unknown) => (typeof fact === 'bigint' ? String(fact) : fact)
  try {
    return JSON.stringify(record, plain)
  } catch {
    const printed = Object.entries(record).map(([name, fact]) => [
      name,
      typeof fact === 'object' ? inspect(fact, { depth: 2 }) : fact,
    ])
    return JSON.stringify(Object.fromEntries(printed), plain)
  }
}

/** An error becomes its story: what failed, because of what. The stack is kept for errors of our own making. */
function withStories(facts: Facts): Facts {
  if (!Object.values(facts).some((fact) => fact instanceof Error)) return facts
  return Object.fromEntries(
    Object.entries(facts).map(([name, fact]) => [name, fact instanceof Error ? storyOf(fact) : fact]),
  )
}

/** `Cannot stop container x: connect ECONNREFUSED`. Causes that form a cycle are written once. */
export function storyOf(error: unknown): string {
  return withCauses(error).map(ownStory).join(': ')
}

function ownStory(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const ours = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError
  return ours ? (error.stack ?? error.message) : error.message || error.name
}

function readable(line: string): string {
  const { time, level, message, ...facts } = JSON.parse(line) as { [name: string]: unknown }
  return `${[String(time).slice(11, 23), String(level).toUpperCase().padEnd(5), message, ...worded(facts)].join(' ')}\n`
}

/** As in syslog: err, warning, info, debug. */
const priorities: { readonly [level: string]: number } = { error: 3, warn: 4, info: 6, debug: 7 }

/** A line of the journal ends where the text does, so an error's stack stays on it. */
function forJournal(line: string): string {
  const { time: _time, level, message, ...facts } = JSON.parse(line) as { [name: string]: unknown }
  const text = [message, ...worded(facts)]
    .join(' ')
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' | ')
  return `<${priorities[String(level)] ?? 6}>${text}\n`
}

function worded(facts: { readonly [name: string]: unknown }): readonly string[] {
  return Object.entries(facts).map(
    ([name, fact]) => `${name}=${typeof fact === 'string' ? fact : JSON.stringify(fact)}`,
  )
}
