/** The types of table cells, and the texts that all tables share. */

/** null: there is no value. */
export type TableCell = string | number | boolean | null
export type Column = {
  readonly name: string
  /** Columns of definitions have `number` and `date` as well. */
  readonly type: string
  readonly format?: string
  readonly description?: string
  /** 0: always shown; others: only with `-o wide`. */
  readonly priority: number
}

/** What clients may hide a row by (meta/v1 TableRowCondition). */
export type RowCondition = {
  readonly type: 'Completed'
  readonly status: 'True'
  readonly reason: string
  readonly message: string
}

/** A kind's columns, and an object's cells in the same order (pkg/printers/internalversion/printers.go). */
export type TableOf<T> = {
  readonly columns: readonly Column[]
  cells(object: T, nowMs: number): readonly TableCell[]
  rowConditions?(object: T): readonly RowCondition[] | undefined
}

/** Columns by name; one with a star is shown with `-o wide` only, one with a hash has integers, one with a
 * question mark true or false. The first is the object's name. */
export function tableColumns(...names: readonly string[]): readonly Column[] {
  return names.map((name): Column => {
    const wide = name.endsWith('*')
    const plain = name.replace(/[*#?]$/, '')
    return {
      name: plain,
      type: name.endsWith('#') ? 'integer' : name.endsWith('?') ? 'boolean' : 'string',
      ...(plain === 'Name' ? { format: 'name' } : {}),
      priority: wide ? 1 : 0,
    }
  })
}

export function orNone(text: string | undefined): string {
  return text || '<none>'
}

export function orUnknown(text: string | undefined): string {
  return text || '<unknown>'
}

/** How long ago an instant of an object was: `5m3s`, `<unknown>` when it is absent. */
export function ageOf(time: string | undefined, nowMs: number): string {
  const at = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(at) ? '<unknown>' : humanDuration(nowMs - at)
}

const minute = 60
const hour = 60 * minute
const day = 24 * hour
const year = 365 * day

/** Two units at most, and fewer the longer it is: `90s`, `3m5s`, `45m`, `7h12m`, `3d4h`, `2y40d`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>' // more than a second ahead of our clock
  if (seconds < 2 * minute) return `${Math.max(0, seconds)}s`
  if (seconds < 10 * minute) return inUnits(seconds, minute, 'm', 1, 's')
  if (seconds < 3 * hour) return inUnits(seconds, minute, 'm')
  if (seconds < 8 * hour) return inUnits(seconds, hour, 'h', minute, 'm')
  if (seconds < 2 * day) return inUnits(seconds, hour, 'h')
  if (seconds < 8 * day) return inUnits(seconds, day, 'd', hour, 'h')
  if (seconds < 2 * year) return inUnits(seconds, day, 'd')
  if (seconds < 8 * year) return inUnits(seconds, year, 'y', day, 'd')
  return inUnits(seconds, year, 'y')
}

function inUnits(seconds: number, unit: number, name: string, smaller?: number, smallerName?: string): string {
  const whole = `${Math.floor(seconds / unit)}${name}`
  const rest = smaller === undefined ? 0 : Math.floor((seconds % unit) / smaller)
  return rest === 0 ? whole : `${whole}${rest}${smallerName}`
}
