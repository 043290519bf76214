/**
 * Five minutes without the controller, five times as fast: the settings that the back-off and the grace follow are divided like the outage.
 * The back-off is at its longest after a part of it, and a grace period is a sixth of it.
 */
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import { compressed, replayOutage } from './support/outage.ts'

test('an outage of the controller makes no healthy node NotReady', { skip: whyNoDockerd() }, async (t) => {
  const { before, after, reasons, backAfterMs } = await replayOutage(t, { ...compressed(5), seconds: 60 })
  t.same(after.nodes, before.nodes, 'Ready never changed')
  t.same(after.pods, before.pods, 'pods run on in the same containers')
  for (const reason of ['NodeNotReady', 'TaintManagerEviction', 'Killing'])
    t.notOk(reasons.includes(reason), `no Event ${reason}`)
  t.comment(`Nodes were back after ${JSON.stringify(backAfterMs)} ms`)
})
