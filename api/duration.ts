/** Lengths of time as Kubernetes' configuration and command lines write them: `24h`, `1h30m`, `500ms`; days (`7d`) too. */

const unitMs: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3600_000,
  d: 24 * 3600_000,
}

/** Milliseconds; undefined when the text is no length of time. A bare number is none, but for 0. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)
  return [...parts].reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0), 0)
}

/** For people, in its two largest units: `23h59m`, `3d4h`, `12s`. */
export function formatDuration(ms: number): string {
  const units = ['d', 'h', 'm', 's'] as const
  let rest = Math.max(0, Math.floor(ms / 1000) * 1000)
  const counts = units.map((unit) => {
    const count = Math.floor(rest / (unitMs[unit] ?? 1))
    rest -= count * (unitMs[unit] ?? 1)
    return { unit, count }
  })
  const first = counts.findIndex(({ count }) => count > 0)
  if (first < 0) return '0s'
  return counts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count}${unit}`)
    .join('')
}
