/** etcd without a majority of its members, while agents run pods: what is answered, and what happens afterwards. */
import type { Test } from 'tap'
import { systemClock as clock } from '../../daemon/clock.ts'
import type { Outage } from '../support/outage.ts'
import { startReplicas } from '../support/replicas.ts'
import { eventually } from '../support/wait.ts'
import { allRun, eventReasons, evictionReasons, notReady, podStates, renewedSince, startAgents } from './agents.ts'
import { leaderOf, sessionsOf } from './kills.ts'

/** `outage`: how long, and the settings that decide how soon a silent node loses its pods. It is observed for two grace periods afterwards. */
export async function loseQuorum(t: Test, outage: Outage, count: number): Promise<void> {
  const { seconds, graceSeconds, leaseSeconds, monitorPeriodSeconds } = outage
  const { controllers, etcd, folder } = await startReplicas(t, {
    members: 3,
    settings: {
      nodeMonitorGracePeriod: `${graceSeconds}s`,
      nodeMonitorPeriod: `${monitorPeriodSeconds * 1000}ms`,
    },
  })
  const [first] = controllers
  if (first === undefined) throw new Error('There is no controller')
  const sessions = await sessionsOf(controllers, 10_000)
  t.teardown(async () => {
    for (const session of sessions) session.close()
  })
  const { runningContainers } = await startAgents(t, {
    ...{ controller: first, folder, count, atOnce: 2 },
    settings: { nodeLeaseDurationSeconds: leaseSeconds },
  })
  const before = await allRun(sessions[0], count)
  const containers = await runningContainers()

  const [, ...lost] = etcd.members
  for (const member of lost) await member.kill()
  const lostMs = performance.now()
  let [reads, answered, writes, accepted, fewest] = [0, 0, 0, 0, containers]
  while (performance.now() - lostMs < seconds * 1000) {
    for (const session of sessions) {
      reads += 1
      const list = await session.send('GET', '/api/v1/namespaces/default/pods')
      if (list?.status === 200) answered += 1
      writes += 1
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `between-${writes}` } }
      const made = await session.send('POST', '/api/v1/namespaces/default/configmaps', object)
      if (made !== undefined && made.status < 300) accepted += 1
    }
    fewest = Math.min(fewest, await runningContainers())
    await clock.sleep(2_000)
  }
  const lostSeconds = (performance.now() - lostMs) / 1000
  const [sinceMs, startedMs] = [Date.now(), performance.now()]
  await Promise.all(lost.map((member) => member.start()))
  const live = await eventually('one controller leads', async () => {
    const number = await leaderOf(sessions)
    return number === undefined ? undefined : sessions[number]
  })
  const led = (performance.now() - startedMs) / 1000
  await eventually('every node has renewed its lease', async () => (await renewedSince(live, sinceMs)) === count)
  await eventually('all nodes are Ready', async () => (await notReady(live)).length === 0)
  const back = (performance.now() - startedMs) / 1000
  const untilMs = Date.now() + 2 * graceSeconds * 1000
  await eventually(
    'two grace periods later every lease is renewed',
    async () => (await renewedSince(live, untilMs)) === count,
    {
      withinMs: 4 * graceSeconds * 1000 + 60_000,
      everyMs: 1_000,
    },
  )
  const reasons = await eventReasons(live, sinceMs)
  t.comment(
    `${lostSeconds.toFixed(0)} s without a majority, ${count} agents: ${answered} of ${reads} reads answered, ${accepted} of ${writes} writes; at least ${fewest} of ${containers} containers ran all the time`,
  )
  t.comment(
    `after the members were started again: one controller led after ${led.toFixed(1)} s, all nodes were Ready and their leases renewed after ${back.toFixed(1)} s; Events within ${2 * graceSeconds} s: ${reasons}`,
  )
  t.equal(answered, reads, 'reads are answered')
  t.equal(accepted, 0, 'no write is accepted')
  t.equal(fewest, containers, 'all containers run')
  t.same(await podStates(live), before, 'the same pods with the same containers')
  t.notMatch(reasons, evictionReasons)
}
