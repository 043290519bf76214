/**
 * Measures the effect of a controller outage on its fleet: three agents with the usual settings and a pod each, and a controller
 * that is stopped for ten minutes. Prints how long after the controller's return each node was connected, and what changed. Needs
 * root, docker.io, kubectl, and bundles (npm run build). `--compress 5` divides all times.
 */
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { test } from 'tap'
import { compressed, replayOutage } from '../test/support/outage.ts'

const { values } = parseArgs({ options: { compress: { type: 'string', default: '1' } } })
const outage = compressed(Number(values.compress))

test('an outage', { timeout: 3_600_000 }, async (t) => {
  const { before, after, reasons, backAfterMs } = await replayOutage(t, outage)
  t.comment(`outage of ${outage.seconds} s, grace period of ${outage.graceSeconds} s`)
  for (const [node, ms] of Object.entries(backAfterMs)) t.comment(`${node} was back ${ms} ms after the controller`)
  t.comment(`Events since: ${reasons.join(', ') || 'none'}`)
  t.ok(isDeepStrictEqual(after, before), `before: ${JSON.stringify(before)}, after: ${JSON.stringify(after)}`)
})
