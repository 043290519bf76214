/** Metrics from the fields of objects, by one rule for every kind. */
import type { Node } from '../../../api/node.ts'
import { milliValue, quantityToNumber } from '../../../api/quantity.ts'
import type { MetricSample } from '../../../daemon/prometheus-text.ts'

export type MetricLabels = { readonly [name: string]: string | undefined }

export const truths = ['true', 'false', 'unknown'] as const

export function createdAt({ metadata }: Pick<Node, 'metadata'>, labels: MetricLabels): readonly MetricSample[] {
  return instantOf(metadata.creationTimestamp, labels)
}

export function instantOf(time: string | undefined, labels: MetricLabels): readonly MetricSample[] {
  const ms = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isFinite(ms) ? [singleFigure(ms / 1000, labels)] : []
}

export function because(reason: string | undefined, labels: MetricLabels): readonly MetricSample[] {
  return reason ? [singleFigure(1, { ...labels, reason: word(reason) })] : []
}

/** Reasons are single words; a node that reports anything else must not fill the database of Prometheus. */
function word(reason: string): string {
  return /^[A-Za-z]{1,64}$/.test(reason) ? reason : 'Other'
}

export type AmountReader = (
  amounts: { readonly [resource: string]: string | number } | undefined,
  labels: MetricLabels,
) => readonly MetricSample[]

/** Many objects have the same amounts: each is parsed once. */
export function amountReader(): AmountReader {
  const understood = new Map<string, number>()
  const amountNamed = (resource: string, amount: string | number) => {
    const key = `${resource === 'cpu' ? 'cpu' : ''} ${amount}`
    const known = understood.get(key)
    if (known !== undefined) return known
    const value = resource === 'cpu' ? milliValue(amount) / 1000 : quantityToNumber(amount)
    understood.set(key, value)
    return value
  }
  return (amounts = {}, labels) =>
    Object.entries(amounts).map(([resource, amount]) =>
      singleFigure(amountNamed(resource, amount), {
        ...labels,
        resource: resource.replace(/[^A-Za-z0-9_]/g, '_'),
        unit: unitOf(resource),
      }),
    )
}

function unitOf(resource: string): string {
  if (resource === 'cpu') return 'core'
  return /^(memory|ephemeral-storage|storage|hugepages-.*)$/.test(resource) ? 'byte' : 'integer'
}

export function singleFigure(value: number, labels: MetricLabels): MetricSample {
  return { labels, value }
}

const usualBreath = 256

/** Yields one object at a time; undefined after every few, so that the caller can yield to the event loop. */
export function* flat<T, U>(
  items: Iterable<T>,
  partsOf: (item: T) => Iterable<U>,
  breathEvery = usualBreath,
): Iterable<U | undefined> {
  let seen = 0
  for (const item of items) {
    yield* partsOf(item)
    if (++seen % breathEvery === 0) yield undefined
  }
}
