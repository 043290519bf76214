/** The leader of a fleet of agents is killed, with its machine: everything continues with the other controller within 25 seconds. */
import type { Test } from 'tap'
import { podManifest } from '../support/manifests.ts'
import { image } from '../support/pods.ts'
import { startReplicas } from '../support/replicas.ts'
import { timeLimit } from '../support/time-limit.ts'
import { eventually } from '../support/wait.ts'
import { allRun, eventReasons, evictionReasons, notReady, podStates, renewedSince, startAgents } from './agents.ts'
import { sessionsOf } from './kills.ts'
import { connectedMessage, momentsOf, openedAt } from './moments.ts'

/** `docs/figures-fleet.md`, on a machine that is not slow: the lease of 15 s ends, and each agent tries again within 4 s. */
const failOverMs = 25_000

export async function failOver(
  t: Test,
  { agents: count, atOnce }: { readonly agents: number; readonly atOnce: number },
) {
  const { controllers, places, folder } = await startReplicas(t, { members: 3, ownPids: true })
  const [[first, second], [, place]] = [controllers, places]
  if (first === undefined || second === undefined || place === undefined) throw new Error('There are two controllers')
  const [, session] = await sessionsOf(controllers)
  if (session === undefined) throw new Error('There is a second controller')
  t.teardown(async () => session.close())
  const startedMs = performance.now()
  const { agents, createMissing, runningContainers } = await startAgents(t, {
    controller: first,
    folder,
    count,
    atOnce,
  })
  const before = await allRun(session, count, createMissing)
  const containers = await runningContainers()
  const connections = () => agents.map((agent) => agent.lines.filter(isConnected).length)
  const counts = connections()
  const preparedSeconds = Math.round((performance.now() - startedMs) / 1000)
  t.comment(
    `${count} agents with a pod each, ${containers} containers in one Docker, all running after ${preparedSeconds} s`,
  )

  const [killedMs, sinceMs] = [performance.now(), Date.now()]
  const passedMs = () => Math.round(performance.now() - killedMs)
  const passed = () => `${(passedMs() / 1000).toFixed(1)} s`
  first.program.kill('SIGKILL')
  const opened = openedAt(place.address, place.mqttPort, AbortSignal.timeout(120_000))
  await second.program.logged('Controller ready', 120_000)
  const openedMs = await opened
  const isBack = (number: number, i: number) => number > (counts[i] ?? 0)
  await eventually('all agents are connected', () => connections().every(isBack), { withinMs: 300_000 })
  await eventually('every node has renewed its lease', async () => (await renewedSince(session, sinceMs)) === count)
  const renewed = passed()
  await eventually('all nodes are Ready', async () => (await notReady(session)).length === 0)
  const [ready, readyMs] = [passed(), passedMs()]
  const limit = timeLimit(failOverMs)
  // A pod that is created now runs: the whole way works.
  await second.kubectlWith(podManifest({ name: 'later', image, spec: { nodeName: 'pi-1' } }), 'apply', '-f', '-')
  await eventually('a new pod runs', async () =>
    (await podStates(session)).some((one) => /^later .* Running/.test(one)),
  )
  const ran = passed()
  const logs = { standby: second.program.lines, agents: agents.map(({ lines }) => lines) }
  const moments = momentsOf({ killedMs: sinceMs, openedMs, ...logs })
  const others = [
    `all leases were renewed: ${renewed}`,
    `all nodes were Ready: ${ready}`,
    `a pod created then ran: ${ran}`,
  ]
  t.comment('after the SIGKILL of the leader, whose lease of 15 s had to end:')
  for (const line of [...moments, ...others]) t.comment(`- ${line}`)
  t.ok(readyMs <= limit.ms, `all nodes were Ready after ${readyMs} ms: ${limit.text}`)
  // Beyond the grace period of a silent node, and the toleration of its pods.
  await eventually('two minutes', () => performance.now() - killedMs > 120_000, { withinMs: 150_000, everyMs: 1_000 })
  const reasons = await eventReasons(session, sinceMs)
  t.comment(`Events: ${reasons}`)
  const after = (await podStates(session)).filter((one) => !one.startsWith('later '))
  t.equal(after.filter((one, i) => one !== before[i]).length, 0, 'pods evicted, deleted or with another container')
  t.equal(await runningContainers(), containers + 2, 'the containers of before run, and those of the new pod')
  t.notMatch(reasons, evictionReasons)
}

function isConnected({ message }: { readonly message: string }): boolean {
  return message === connectedMessage
}
