/**
 * A log for lines that others can cause: at most this many per key and in total in a period, long values cut, and one line
 * at the period's end with the number that was left out. What must be counted exactly belongs into a metric beside it.
 */
import type { Clock } from './clock.ts'
import { type Facts, type Log, type LogLevel, storyOf } from './log.ts'

export type LogLimitSettings = {
  /** Lines of one key in a period. */
  readonly linesPerKey?: number
  /** Lines of all keys together in a period. It also bounds the keys that are kept in memory. */
  readonly linesInTotal?: number
  readonly periodMs?: number
  /** Longer text is cut to this many characters. */
  readonly longestText?: number
}

/** The key groups lines of one kind and one cause, as `node-1/ForeignTopic`; it is not written. */
type WriteLimited = (key: string, message: string, facts?: Facts) => void

export interface LimitedLog {
  readonly error: WriteLimited
  readonly warn: WriteLimited
  readonly info: WriteLimited
  readonly debug: WriteLimited
  /** Writes the count of what was suppressed in the period under way, and ends its timer. */
  close(): void
}

const defaults = { linesPerKey: 5, linesInTotal: 100, periodMs: 60_000, longestText: 200 }
/** Keys that the summary names, the most suppressed first. */
const namedKeys = 5

type Key = { written: number; suppressed: number }
type Period = { readonly sinceMs: number; readonly keys: Map<string, Key>; written: number; suppressed: number }

/** `linesPerKey` 5, `linesInTotal` 100, `periodMs` one minute and `longestText` 200 unless given. */
export function limitLog(log: Log, clock: Clock, settings: LogLimitSettings = {}): LimitedLog {
  const { linesPerKey, linesInTotal, periodMs, longestText } = { ...defaults, ...settings }
  let period: Period | undefined
  let timer = new AbortController()

  const endPeriod = () => {
    const ended = period
    period = undefined
    timer.abort()
    if (ended === undefined || ended.suppressed === 0) return
    const seconds = Math.round((clock.monotonicMs() - ended.sinceMs) / 1000)
    const facts = { suppressed: ended.suppressed, seconds, most: mostSuppressed(ended.keys, longestText) }
    log.warn('Log lines suppressed', facts)
  }

  const currentPeriod = (): Period => {
    if (period !== undefined && clock.monotonicMs() - period.sinceMs >= periodMs) endPeriod()
    period ??= { sinceMs: clock.monotonicMs(), keys: new Map(), written: 0, suppressed: 0 }
    return period
  }

  const suppress = (now: Period, key: Key | undefined) => {
    if (key !== undefined) key.suppressed += 1
    now.suppressed += 1
    if (now.suppressed > 1) return
    timer = new AbortController()
    void clock.sleep(periodMs - (clock.monotonicMs() - now.sinceMs), timer.signal).then(() => {
      if (period === now) endPeriod()
    })
  }

  const at =
    (level: LogLevel): WriteLimited =>
    (name, message, facts = {}) => {
      const now = currentPeriod()
      const key = now.keys.get(name)
      if (now.written >= linesInTotal || (key?.written ?? 0) >= linesPerKey) return suppress(now, key)
      now.written += 1
      if (key === undefined) now.keys.set(name, { written: 1, suppressed: 0 })
      else key.written += 1
      log[level](message, cutFacts(facts, longestText))
    }

  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), close: endPeriod }
}

/** `text` with at most `longest` characters of it, and how many there were. */
export function cutText(text: string, longest: number = defaults.longestText): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length} characters)`
}

function cutFacts(facts: Facts, longest: number): Facts {
  return Object.fromEntries(Object.entries(facts).map(([name, fact]) => [name, cutFact(fact, longest)]))
}

/** Lists keep ten items; objects are cut as the text they are written as. */
function cutFact(fact: unknown, longest: number): unknown {
  if (typeof fact === 'string') return cutText(fact, longest)
  if (fact instanceof Error) return cutText(storyOf(fact), longest)
  if (Array.isArray(fact)) return fact.slice(0, listItems).map((item) => cutFact(item, longest))
  if (typeof fact !== 'object' || fact === null) return fact
  const text = JSON.stringify(fact)
  return text.length <= longest ? fact : cutText(text, longest)
}

const listItems = 10

/** `node-1/ForeignTopic: 812`. */
function mostSuppressed(keys: Period['keys'], longest: number): readonly string[] {
  return [...keys]
    .filter(([, { suppressed }]) => suppressed > 0)
    .toSorted(([, a], [, b]) => b.suppressed - a.suppressed)
    .slice(0, namedKeys)
    .map(([name, { suppressed }]) => `${cutText(name, longest)}: ${suppressed}`)
}
