/** The leader is stopped as for an upgrade: the other controller leads and answers a write within two seconds. */
import type { Test } from 'tap'
import { startReplicas } from '../support/replicas.ts'
import { timeLimit } from '../support/time-limit.ts'
import { eventually } from '../support/wait.ts'
import { sessionsOf } from './kills.ts'

/** `docs/figures-fleet.md`, on a machine that is not slow. */
export const handOverMs = 2_000

export async function handOver(t: Test, times: number): Promise<void> {
  const { controllers: started, start } = await startReplicas(t, { members: 3 })
  const controllers = [...started]
  const sessions = await sessionsOf(controllers, 10_000)
  t.teardown(async () => {
    for (const session of sessions) session.close()
  })
  const took: number[] = []
  const elected: number[] = []
  for (let time = 0; time < times; time++) {
    const number = time % 2
    const [leader, other, next] = [controllers[number], controllers[1 - number], sessions[1 - number]]
    if (leader === undefined || other === undefined || next === undefined) throw new Error('There are two controllers')
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `hand-over-${time}` } }
    const answersWrites = async () => {
      const ready = await next.send('GET', '/readyz?verbose')
      // Before, it passes writes on to the leader that ends.
      if (!String(ready?.body).includes('[+]leading ok')) return false
      const written = await next.send('POST', '/api/v1/namespaces/default/configmaps', object)
      return written?.status === 201 || written?.status === 409
    }
    const [stoppedMs, stopped] = [performance.now(), Date.now()]
    const ended = leader.program.stop()
    await eventually('the other controller answers a write', answersWrites, { everyMs: 10, withinMs: 120_000 })
    const tookMs = Math.round(performance.now() - stoppedMs)
    const { ms, text } = timeLimit(handOverMs)
    t.ok(tookMs <= ms, `hand-over ${time + 1} took ${tookMs} ms: ${text}`)
    took.push(tookMs)
    const leads = other.program.lines.findLast(({ message }) => message === 'Controller leads')
    elected.push(Date.parse(String(leads?.['time'])) - stopped)
    t.equal(await ended, 0)
    controllers[number] = await start(number)
  }
  const sorted = took.toSorted((a, b) => a - b)
  t.comment(`the other controller was elected ${elected.join(', ')} ms after the SIGTERM`)
  t.comment(`a write was answered ${took.join(', ')} ms after the SIGTERM`)
  t.comment(`median ${sorted[Math.floor(times / 2)]} ms, maximum ${sorted.at(-1)} ms`)
}
