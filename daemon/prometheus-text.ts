/** Figures in the text form that Prometheus reads (version 0.0.4), in pieces: a fleet's are too many for one string. */

export type MetricFamily = {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** Undefined: no sample, but a good place to let others work, as after many objects without a sample. */
  readonly samples: Iterable<MetricSample | undefined>
}

/** A label that is undefined is left out. */
export type MetricSample = {
  /** What follows the name of the family: those of a histogram have one. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
  readonly labels?: { readonly [name: string]: string | undefined }
  readonly value: number
}

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8'

const pieceLength = 32 * 1024

/** Families without a sample are left out. What is in one piece is computed at once: about 0.2 ms. */
export function* metricsText(families: Iterable<MetricFamily>): Iterable<string> {
  let piece = ''
  for (const { name, help, type, samples } of families) {
    let head = `# HELP ${name} ${help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n# TYPE ${name} ${type}\n`
    for (const sample of samples) {
      if (sample === undefined) {
        yield piece
        piece = ''
        continue
      }
      const { labels = {}, suffix = '', value } = sample
      piece += `${head}${name}${suffix}${labelText(labels)} ${numberText(value)}\n`
      head = ''
      if (piece.length >= pieceLength) {
        yield piece
        piece = ''
      }
    }
  }
  if (piece !== '') yield piece
}

export function gauge(name: string, help: string, samples: MetricFamily['samples']): MetricFamily {
  return { name, help, type: 'gauge', samples }
}

export function counter(name: string, help: string, samples: MetricFamily['samples']): MetricFamily {
  return { name, help, type: 'counter', samples }
}

/** None when there is no value. */
export function one(value: number | undefined, labels: MetricSample['labels'] = {}): readonly MetricSample[] {
  return value === undefined ? [] : [{ labels, value }]
}

function labelText(labels: NonNullable<MetricSample['labels']>): string {
  let text = ''
  for (const name in labels) {
    const value = labels[name]
    if (value === undefined) continue
    text += `${text === '' ? '{' : ','}${name}="${needsEscape.test(value) ? escaped(value) : value}"`
  }
  return text === '' ? '' : `${text}}`
}

const needsEscape = /["\\\n]/

function escaped(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}
