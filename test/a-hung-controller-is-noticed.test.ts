/** A controller that hangs: its machine acknowledges what the agent sends, and no request is answered. */
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'

const graceSeconds = 20
const answerSeconds = 20

test('a stopped controller is noticed within its grace period and the time of an answer, and the agent comes back', async (t) => {
  const { controller, startReady } = await joinedFleet(t, {
    controller: { nodeMonitorGracePeriod: `${graceSeconds}s` },
  })
  const [agent] = await startReady()
  controller.program.kill('SIGSTOP')
  t.teardown(async () => controller.program.kill('SIGCONT'))
  const stopped = performance.now()
  const lost = await agent.logged('Connection to the control plane lost, trying until it is back', 90_000)
  const tookSeconds = (performance.now() - stopped) / 1000
  // Error of a heartbeat, or of a report that was under way.
  t.match(lost, { error: /does not answer|no answer within 20 s/ })
  // A heartbeat is up to 4 % later than its period.
  t.ok(tookSeconds < graceSeconds * 1.04 + answerSeconds + 2, `noticed after ${tookSeconds.toFixed(1)} s`)
  t.comment(`noticed after ${tookSeconds.toFixed(1)} s`)
  controller.program.kill('SIGCONT')
  await controller.nodesReady('pi-1')
  t.equal(agent.lines.filter(({ level }) => level === 'error').length, 0)
})
