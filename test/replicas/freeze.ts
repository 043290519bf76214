/** A leader that is frozen, with writes under way and many more that arrive while it is. */
import type { Test } from 'tap'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { startReplicas } from '../support/replicas.ts'
import { apiSession } from './api-session.ts'
import { createCounter, numberOf, patchCounter, readCounter } from './counting.ts'
import { sessionsOf } from './kills.ts'

export type Freeze = { readonly seconds: number; readonly writers: number }

export async function freezeLeader(t: Test, { seconds, writers }: Freeze) {
  const { controllers } = await startReplicas(t, { members: 3 })
  const [first, second] = controllers
  if (first === undefined || second === undefined) throw new Error('There are two controllers')
  const [, other] = await sessionsOf(controllers, 10_000)
  if (other === undefined) throw new Error('There is a second controller')
  const access = await readKubeconfig(first.kubeconfig)
  const names = Array.from({ length: writers }, (_, i) => `late-${i}`)
  // A connection each, open before the leader is frozen: a request in it waits in the kernel.
  const sessions = names.map(() => apiSession(access))
  t.teardown(async () => {
    first.program.kill('SIGCONT')
    for (const session of [...sessions, other]) session.close()
  })
  await Promise.all(names.map((name, i) => createCounter(name, [sessions[i] ?? other])))

  let sent = 0
  /** What was answered with success, in order: the number of the writer, and what it wrote. */
  const accepted: (readonly [writer: number, n: number])[] = []
  const send = async (i: number, n: number) => {
    const session = sessions[i]
    const name = names[i]
    if (session === undefined || name === undefined) throw new Error(`There is no writer ${i}`)
    sent += 1
    const answer = await patchCounter(name, n, session)
    if (answer !== undefined && answer.status < 300) accepted.push([i, n])
  }
  // Half of the writers write all the time, the others begin while the leader is frozen.
  const busy = Math.floor(writers / 2)
  let frozen = false
  const streams = Array.from({ length: busy }, async (_, i) => {
    for (let n = 1; !frozen; n++) await send(i, n)
  })
  await clock.sleep(2_000)
  // Requests that are under way now have an answer only after the leader is thawed.
  frozen = true
  first.program.kill('SIGSTOP')
  const frozenMs = performance.now()
  const sentBefore = sent
  await second.program.logged('Controller ready', 60_000)
  const ledMs = performance.now() - frozenMs
  // The last answers that had left the frozen leader have arrived by now.
  const acceptedBefore = accepted.length
  const values = async () => {
    const found: number[] = []
    for (const name of names) found.push(numberOf(await readCounter(name, other)))
    return found
  }
  const before = await values()
  const late: Promise<void>[] = []
  for (let i = busy; i < writers; i++) {
    late.push(send(i, 1))
    await clock.sleep(Math.max(0, (seconds * 1000 - (performance.now() - frozenMs)) / (writers - i)))
  }
  const frozenSeconds = (performance.now() - frozenMs) / 1000
  first.program.kill('SIGCONT')
  const status = await first.program.ended
  await Promise.all([...streams, ...late])
  const after = await values()
  const changed = after.filter((n, i) => n !== before[i]).length
  // The answer to a write that was made before may leave it only afterwards.
  const madeLate = accepted.slice(acceptedBefore).filter(([i, n]) => (before[i] ?? -1) < n)
  t.comment(
    `frozen for ${frozenSeconds.toFixed(0)} s; the other controller led after ${(ledMs / 1000).toFixed(1)} s; ${sentBefore} writes before, ${acceptedBefore} of them answered; ${sent - sentBefore} writes sent to it afterwards; ${accepted.length - acceptedBefore} answers after it was thawed were to writes made before`,
  )
  t.same(madeLate, [], 'writes that it answered with success and that were not there before it was thawed')
  t.equal(changed, 0, 'objects that changed after the other controller led')
  t.equal(status, 1, 'it ends, for systemd to start it as a standby')
}
