import { test } from 'tap'
import { counter, gauge, metricsText, one } from './prometheus-text.ts'
import { readMetrics } from './testing/prometheus-parser.ts'

const textOf = (...families: Parameters<typeof metricsText>[0][]) =>
  [...metricsText(families.flatMap((all) => [...all]))].join('')

test('what is written is what is read, whatever stands in a label', async (t) => {
  const strange = 'C:\\temp "quoted"\nnext'
  const text = textOf([
    gauge('free_bytes', 'Free.\nOn \\ two lines.', [{ labels: { path: strange, none: undefined }, value: 1.5e300 }]),
    counter('seen_total', 'Seen.', [{ value: Number.POSITIVE_INFINITY }]),
  ])
  const families = readMetrics(text)
  t.same(families.get('free_bytes'), { type: 'gauge', samples: [{ labels: { path: strange }, value: 1.5e300 }] })
  t.match(text, /^# HELP free_bytes Free.\\nOn \\\\ two lines.$/m)
  t.equal(families.get('seen_total')?.samples[0]?.value, Number.POSITIVE_INFINITY)
})

test('what nothing is known of is not mentioned', async (t) => {
  t.equal(textOf([gauge('unknown', 'Unknown.', one(undefined))]), '')
})

test('where many objects have no sample, other work gets a turn', async (t) => {
  const pieces = [...metricsText([gauge('up', 'Up.', [undefined, { value: 1 }, undefined])])]
  t.same(pieces, ['', '# HELP up Up.\n# TYPE up gauge\nup 1\n'])
})

test('many figures come in pieces', async (t) => {
  function* samples() {
    for (let i = 0; i < 10_000; i++) yield { labels: { node: `pi-${i}` }, value: i }
  }
  const pieces = [...metricsText([gauge('up', 'Up.', samples())])]
  t.ok(pieces.length > 5 && pieces.every((piece) => piece.length < 40_000), String(pieces.length))
  t.equal(readMetrics(pieces.join('')).get('up')?.samples.length, 10_000)
})
