/** Writers and watchers of three controllers, of which the one that leads is killed again and again. */
import { setMaxListeners } from 'node:events'
import type { Test } from 'tap'
import { readKubeconfig } from '../../broker-controller/commands/connection/kubeconfig.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import type { Controller } from '../support/fleet.ts'
import { startReplicas } from '../support/replicas.ts'
import { eventually } from '../support/wait.ts'
import { type ApiSession, apiSession } from './api-session.ts'
import { count, createCounter, numberOf, readCounter, type Sessions, watchCounters } from './counting.ts'

export type Kills = {
  readonly seconds: number
  readonly writers: number
  readonly watchers: number
  /** The pause of a writer after an answered write, on average. */
  readonly pauseMs: number
  /** Between two kills. Every second one is of etcd's leader, too. */
  readonly everySeconds: number
}

/** An answer takes as long as an election of etcd, or the lease of a controller on another machine: then a writer tries elsewhere. */
const deadlineMs = 3_000

export async function killLeaders(t: Test, { seconds, writers, watchers, pauseMs, everySeconds }: Kills) {
  const { controllers: started, etcd, start } = await startReplicas(t, { count: 3, members: 3 })
  const controllers: Controller[] = [...started]
  const sessions = await sessionsOf(controllers, deadlineMs)
  const watching = await sessionsOf(controllers)
  const stop = new AbortController()
  const end = new AbortController()
  // Every writer and watcher listens: many are not a leak.
  for (const { signal } of [stop, end]) setMaxListeners(0, signal)
  t.teardown(async () => {
    stop.abort()
    end.abort()
    for (const session of [...sessions, ...watching]) session.close()
  })
  const names = Array.from({ length: writers }, (_, i) => `w${i}`)
  for (const name of names) await createCounter(name, sessions)
  const observers = Array.from({ length: watchers }, (_, i) => watchCounters(watching, i, end.signal))
  const writing = names.map((name, i) => count(name, rotated(sessions, i), { pauseMs, signal: stop.signal }))

  const exits: string[] = []
  /** As systemd does: a leader that could not renew its lease ends by itself. */
  const supervise = async (number: number, { program }: Controller): Promise<void> => {
    const status = await program.ended
    if (end.signal.aborted || status === 'SIGKILL') return
    const failure = program.lines.findLast(({ message }) => message === 'Controller failed')
    exits.push(`controller ${number} ended with ${status}: ${JSON.stringify(failure).slice(0, 300)}`)
    const again = await start(number)
    controllers[number] = again
    void supervise(number, again)
  }
  for (const [number, controller] of controllers.entries()) void supervise(number, controller)

  let [controllerKills, memberKills] = [0, 0]
  for (const untilMs = performance.now() + seconds * 1000; performance.now() < untilMs; ) {
    await clock.sleep(everySeconds * 1000)
    const number = await eventually('one controller leads', () => leaderOf(watching), { withinMs: 300_000 })
    const leader = controllers[number]
    if (leader === undefined) throw new Error(`There is no controller ${number}`)
    leader.program.kill('SIGKILL')
    await leader.program.ended
    controllerKills += 1
    if (controllerKills % 2 === 0) {
      const member = await eventually('etcd has a leader', async () => {
        for (const one of etcd.members) if (await one.isLeader()) return one
        return undefined
      })
      await member.kill()
      memberKills += 1
      await clock.sleep(2_000)
      await member.start()
    }
    await eventually('another controller leads', () => leaderOf(watching), { withinMs: 300_000 })
    const again = await start(number)
    controllers[number] = again
    void supervise(number, again)
  }
  stop.abort()
  const written = await Promise.all(writing)
  const sum = (of: (one: (typeof written)[number]) => number) => written.reduce((total, one) => total + of(one), 0)
  t.comment(
    `${seconds} s, ${writers} writers, ${watchers} watchers; killed: ${controllerKills} leading controllers, ${memberKills} leaders of etcd`,
  )
  t.comment(
    `${sum((one) => one.answered)} answered writes, ${sum((one) => one.found)} done without an answer, ${sum((one) => one.failed)} attempts failed; longest time of a writer without an answered write ${(Math.max(...written.map((one) => one.longestGapMs)) / 1000).toFixed(1)} s`,
  )
  for (const exit of exits) t.comment(exit)
  let lostAtTheEnd = 0
  for (const { name, answered, found } of written) {
    for (const session of sessions) {
      const stored = numberOf(await readCounter(name, session))
      // One more: the last attempt had no answer when the writers were stopped.
      if (stored < answered + found || stored > answered + found + 1) lostAtTheEnd += 1
    }
    const stored = numberOf(await readCounter(name, sessions[0]))
    await eventually(`every watcher has the last change of ${name}`, () =>
      observers.every(({ watched }) => watched.last.get(name) === stored),
    )
  }
  end.abort()
  await Promise.all(observers.map(({ ended }) => ended))
  const all = observers.map(({ watched }) => watched)
  const total = (of: (one: (typeof all)[number]) => number) => all.reduce((so, one) => so + of(one), 0)
  t.comment(
    `${total((one) => one.events)} events, ${total((one) => one.resumed)} watches resumed elsewhere, ${total((one) => one.relisted)} lists after Expired`,
  )
  t.equal(sum((one) => one.lost) + lostAtTheEnd, 0, 'answered writes lost')
  t.equal(
    total((one) => one.missed),
    0,
    'changes that a watcher missed',
  )
  t.equal(
    total((one) => one.repeated),
    0,
    'changes that a watcher received again',
  )
}

export async function sessionsOf(controllers: readonly Controller[], withinMs?: number): Promise<Sessions> {
  const [first, ...others] = await Promise.all(
    controllers.map(async ({ kubeconfig }) => apiSession(await readKubeconfig(kubeconfig), withinMs)),
  )
  if (first === undefined) throw new Error('There is no controller')
  return [first, ...others]
}

/** The number of the controller that is ready and leads. */
export async function leaderOf(sessions: readonly ApiSession[]): Promise<number | undefined> {
  for (const [number, session] of sessions.entries()) {
    const answer = await session.send('GET', '/readyz?verbose')
    if (answer?.status === 200 && String(answer.body).includes('[+]leading ok')) return number
  }
  return undefined
}

function rotated(sessions: Sessions, by: number): Sessions {
  const at = by % sessions.length
  const [first = sessions[0], ...others] = [...sessions.slice(at), ...sessions.slice(0, at)]
  return [first, ...others]
}
