/** Durations as Go writes them: `1h30m`, `1.5s`, `300ms`. */

const units: { readonly [unit: string]: number } = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
/** int64 nanoseconds. */
const longestMs = 2 ** 63 / 1e6

/** Milliseconds; undefined when it is no duration (time.ParseDuration). */
export function parseDurationMs(text: string): number | undefined {
  const isNegative = text.startsWith('-')
  const rest = text.replace(/^[+-]/, '')
  if (rest === '0') return 0
  if (rest.length > 64 || !/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined
  let ms = 0
  for (const [, number = '', unit = ''] of rest.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    ms += Number(number) * (units[unit] ?? 0)
  }
  if (ms >= longestMs) return undefined
  return isNegative ? -ms : ms
}
