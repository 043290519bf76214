/** Counters, gauges and histograms that a program keeps, as families for `metricsText`. */
import { type MetricFamily, type MetricSample, metricsText } from './prometheus-text.ts'

/** A metric without label names has one sample from the beginning, with the value 0. */
export type MetricDescription<Label extends string> = {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly Label[]
}
export type LabelValues<Label extends string> = { readonly [name in Label]: string | number }

export interface Counter<Label extends string = never> {
  /** Without `by`: 1. */
  inc(labels?: LabelValues<Label>, by?: number): void
}

/** A number that goes up and down. */
export interface Gauge<Label extends string = never> {
  inc(labels?: LabelValues<Label>): void
  dec(labels?: LabelValues<Label>): void
}

export interface Histogram<Label extends string> {
  observe(labels: LabelValues<Label>, value: number): void
}

export interface MetricsRegistry {
  counter<const Label extends string = never>(described: MetricDescription<Label>): Counter<Label>
  gauge<const Label extends string = never>(described: MetricDescription<Label>): Gauge<Label>
  /** `bounds`: the upper ends of its buckets, rising, without infinity. */
  histogram<const Label extends string>(
    described: MetricDescription<Label> & { readonly bounds: readonly number[] },
  ): Histogram<Label>
  /** Families that are computed when the metrics are read, as gauges of what exists elsewhere. */
  add(families: () => Iterable<MetricFamily>): void
  /** The samples of a family, none if it does not exist. */
  samplesOf(name: string): readonly MetricSample[]
  /** Everything as text for Prometheus. */
  text(): string
}

/** Upper ends of the buckets of a histogram, each twice the one before. */
export function doublingBounds(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, power) => first * 2 ** power)
}

/** Adding a name that another metric has throws: both would be printed. */
export function metricsRegistry(): MetricsRegistry {
  const sources: (() => Iterable<MetricFamily>)[] = []
  const names = new Set<string>()
  const keep = (
    { name, help }: MetricDescription<never>,
    type: MetricFamily['type'],
    samples: () => Iterable<MetricSample>,
  ) => {
    if (names.has(name)) throw new Error(`There is a metric ${name} already`)
    names.add(name)
    sources.push(() => [{ name, help, type, samples: samples() }])
  }
  const all = () => sources.flatMap((families) => [...families()])
  return {
    counter({ labelNames = [], ...described }) {
      const series = seriesOf(labelNames, () => ({ value: 0 }))
      keep(described, 'counter', function* () {
        for (const { labels, state } of series.all()) yield { labels, value: state.value }
      })
      return {
        inc(labels, by = 1) {
          series.at(labels).value += by
        },
      }
    },
    gauge({ labelNames = [], ...described }) {
      const series = seriesOf(labelNames, () => ({ value: 0 }))
      keep(described, 'gauge', function* () {
        for (const { labels, state } of series.all()) yield { labels, value: state.value }
      })
      return {
        inc: (labels) => void series.at(labels).value++,
        dec: (labels) => void series.at(labels).value--,
      }
    },
    histogram({ labelNames = [], bounds, ...described }) {
      const series = seriesOf(labelNames, () => ({ counts: bounds.map(() => 0), count: 0, sum: 0 }))
      keep(described, 'histogram', function* () {
        for (const { labels, state } of series.all()) yield* histogramSamples(labels, bounds, state)
      })
      return {
        observe(labels, value) {
          const state = series.at(labels)
          const bucket = bounds.findIndex((bound) => value <= bound)
          if (bucket >= 0) state.counts[bucket] = (state.counts[bucket] ?? 0) + 1
          state.count++
          state.sum += value
        },
      }
    },
    add: (families) => void sources.push(families),
    samplesOf: (name) =>
      all().flatMap((family) =>
        family.name === name ? [...family.samples].filter((sample) => sample !== undefined) : [],
      ),
    text: () => [...metricsText(all())].join(''),
  }
}

type HistogramState = { readonly counts: readonly number[]; readonly count: number; readonly sum: number }

/** Each bucket counts what is in those below it, too (Prometheus exposition formats, "Histograms and summaries"). */
function* histogramSamples(
  labels: LabelValues<string>,
  bounds: readonly number[],
  { counts, count, sum }: HistogramState,
): Iterable<MetricSample> {
  let below = 0
  for (const [at, bound] of bounds.entries()) {
    below += counts[at] ?? 0
    yield { suffix: '_bucket', labels: { le: String(bound), ...texts(labels) }, value: below }
  }
  yield { suffix: '_bucket', labels: { le: '+Inf', ...texts(labels) }, value: count }
  yield { suffix: '_sum', labels: texts(labels), value: sum }
  yield { suffix: '_count', labels: texts(labels), value: count }
}

/** One state for each combination of label values, from its first use on. */
function seriesOf<Label extends string, State>(labelNames: readonly Label[], make: () => State) {
  const byKey = new Map<string, { readonly labels: { readonly [name: string]: string }; readonly state: State }>()
  const at = (labels?: LabelValues<Label>): State => {
    const values = labelNames.map((name) => String(labels?.[name] ?? ''))
    const key = values.join('\u0000')
    const found = byKey.get(key)
    if (found !== undefined) return found.state
    const state = make()
    byKey.set(key, { labels: Object.fromEntries(labelNames.map((name, i) => [name, values[i] ?? ''])), state })
    return state
  }
  if (labelNames.length === 0) at()
  return { at, all: () => byKey.values() }
}

function texts(labels: LabelValues<string>): { readonly [name: string]: string } {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))
}
