import { test } from 'tap'
import { metricsRegistry } from './metrics-registry.ts'
import { counter, gauge } from './prometheus-text.ts'

test('a counter without labels is there from the beginning, one with labels from its first use', async (t) => {
  const metrics = metricsRegistry()
  const plain = metrics.counter({ name: 'plain_total', help: 'Plain.' })
  const labelled = metrics.counter({ name: 'labelled_total', help: 'Labelled.', labelNames: ['a', 'b'] })
  t.equal(metrics.text(), '# HELP plain_total Plain.\n# TYPE plain_total counter\nplain_total 0\n')
  plain.inc()
  labelled.inc({ a: 'x"\\\n', b: 200 })
  labelled.inc({ b: 200, a: 'x"\\\n' }, 0.5)
  labelled.inc({ a: 'x', b: 404 })
  t.equal(
    metrics.text(),
    `# HELP plain_total Plain.
# TYPE plain_total counter
plain_total 1
# HELP labelled_total Labelled.
# TYPE labelled_total counter
labelled_total{a="x\\"\\\\\\n",b="200"} 1.5
labelled_total{a="x",b="404"} 1
`,
  )
  t.same(metrics.samplesOf('labelled_total')[1], { labels: { a: 'x', b: '404' }, value: 1 })
  t.same(metrics.samplesOf('unknown'), [])
})

test('a gauge goes up and down', async (t) => {
  const metrics = metricsRegistry()
  const open = metrics.gauge({ name: 'open', help: 'Open.' })
  open.inc()
  open.inc()
  open.dec()
  t.same(metrics.samplesOf('open'), [{ labels: {}, value: 1 }])
})

// Observed with prom-client 15.1.3 for the same observations.
test('the buckets of a histogram are cumulative, and a value on a bound is below it', async (t) => {
  const metrics = metricsRegistry()
  const took = metrics.histogram({ name: 'h_seconds', help: 'H', labelNames: ['v'], bounds: [0.005, 0.5, 5] })
  t.equal(metrics.text(), '')
  took.observe({ v: 'GET' }, 0.005)
  took.observe({ v: 'GET' }, 9)
  t.equal(
    metrics.text(),
    `# HELP h_seconds H
# TYPE h_seconds histogram
h_seconds_bucket{le="0.005",v="GET"} 1
h_seconds_bucket{le="0.5",v="GET"} 1
h_seconds_bucket{le="5",v="GET"} 1
h_seconds_bucket{le="+Inf",v="GET"} 2
h_seconds_sum{v="GET"} 9.005
h_seconds_count{v="GET"} 2
`,
  )
})

test('what exists elsewhere is read when the metrics are read', async (t) => {
  const metrics = metricsRegistry()
  let size = 1
  metrics.add(() => [gauge('size', 'Size.', [{ value: size }]), counter('none_total', 'None.', [])])
  size = 2
  t.equal(metrics.text(), '# HELP size Size.\n# TYPE size gauge\nsize 2\n')
})

test('a name is given once', async (t) => {
  const metrics = metricsRegistry()
  metrics.counter({ name: 'a_total', help: 'A.' })
  t.throws(() => metrics.gauge({ name: 'a_total', help: 'A.' }), /There is a metric a_total already/)
})
