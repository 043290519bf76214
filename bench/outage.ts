/** Measures the effect of a controller outage on its fleet. `--help` prints the usage. */
import { isDeepStrictEqual } from 'node:util'
import { t as program, test } from 'tap'
import { compressed, replayOutage } from '../test/support/outage.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/outage.js',
  text: `Stops the controller of three agents with the usual settings and a pod each for ten minutes, and starts it again. Prints how long after
its return each node was connected, and what changed. Needs root, docker.io, kubectl, and bundles (npm run build).`,
  options: {
    compress: { value: 'N', help: 'divide all times by this', choices: ['1', '2', '5'], default: '1' },
  },
})
const outage = compressed(Number(values.compress))

// tap's own 30 s would end it, unless the environment has TAP_TIMEOUT.
program.setTimeout(0)

test('an outage', { timeout: 3_600_000 }, async (t) => {
  const { before, after, reasons, backAfterMs } = await replayOutage(t, outage)
  t.comment(`outage of ${outage.seconds} s, grace period of ${outage.graceSeconds} s`)
  for (const [node, ms] of Object.entries(backAfterMs)) t.comment(`${node} was back ${ms} ms after the controller`)
  t.comment(`Events since: ${reasons.join(', ') || 'none'}`)
  t.ok(isDeepStrictEqual(after, before), `before: ${JSON.stringify(before)}, after: ${JSON.stringify(after)}`)
})
