import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { aborted } from '../../daemon/aborted.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../assembly/board.ts'
import { type FakeInhibitor, fakeInhibitor } from '../testing/fake-inhibitor.ts'
import { goingDownAt } from './departure.ts'
import type { ShutdownSettings } from './shutdown-groups.ts'
import { shutdownManager } from './shutdown-manager.ts'

const asGranted: ShutdownSettings = { graceMs: undefined, criticalMs: undefined, byPriority: [] }

type World = { readonly settings?: ShutdownSettings; readonly logind?: FakeInhibitor; readonly reportingMs?: number }

async function aMachine(t: Test, { settings = asGranted, logind = fakeInhibitor(), reportingMs = 0 }: World = {}) {
  const clock = fakeClock()
  const actions: string[] = []
  const asked = new Map<string, number>()
  const gone = new Set<string>()
  const active = [aPod({ name: 'top', priority: 2_000_001_000 }), aPod({ name: 'web' }), aPod({ name: 'deaf' })]
  const board = agentBoard()
  const log = quietLog(t)
  const manager = shutdownManager(
    {
      inhibitor: logind,
      pods: {
        active: () => active,
        holds: (uid) => !gone.has(uid),
        stopped: (uid, signal) => (gone.has(uid) ? Promise.resolve() : aborted(signal)),
        endPod(uid, { gracePeriodSeconds, reason }) {
          actions.push(`${uid} ${reason} ${gracePeriodSeconds}`)
          asked.set(uid, clock.monotonicMs())
          if (uid !== 'uid-of-deaf') gone.add(uid)
        },
        resume: () => void actions.push('go on'),
      },
      async leaving(goingDown) {
        if (reportingMs > 0) await clock.sleep(reportingMs)
        actions.push(goingDown === undefined ? 'stay' : `leave ${goingDown.action} ${goingDown.leftMs}`)
      },
      reported: async () => undefined,
      clock,
      random: () => 0.5,
      log,
      recordEvent: ({ reason }) => void actions.push(reason),
      writes: board,
    },
    settings,
  )
  const stopping = new AbortController()
  const running = manager.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  t.teardown(stop)
  await clock.advance(10)
  const condition = () => board.shutdownConditions.get()[0]
  const goingDown = () => goingDownAt(board.goingDown.get(), clock.monotonicMs())
  return { clock, log, board, logind, actions, asked, gone, goingDown, condition, stop }
}

test('the lock is taken at the start, and looked after', async (t) => {
  const { clock, logind, condition, stop } = await aMachine(t)
  t.equal(logind.locks.held, 1)
  t.match(condition(), { type: 'GracefulShutdownReady', status: 'True', reason: 'DelayLockHeld' })
  t.match(
    condition()?.message,
    'logind waits up to 5 s for the agent; pods have 3 s from priority 0, 1 s from priority 2000000000',
  )
  logind.others.push({ who: 'unattended-upgrades', why: 'Stop ongoing upgrades', mode: 'delay' })
  logind.forget()
  await clock.advance(10)
  t.equal(logind.locks.held, 1, 'it is taken again from a restarted logind')
  t.match(condition()?.message, /also held by unattended-upgrades \(delay: Stop ongoing upgrades\)/)
  await stop()
  t.equal(logind.locks.held, 0, 'an agent that ended delays no shutdown')
})

test('pods stop in order, each group within its share, and then the machine may go', async (t) => {
  const { clock, logind, actions, asked, goingDown } = await aMachine(t)
  logind.prepare(true, 'reboot')
  await clock.advance(100)
  t.same(goingDown()?.action, 'reboot')
  t.same(actions, ['NodeShutdown', 'uid-of-web Terminated 3', 'uid-of-deaf Terminated 3', 'leave reboot 4000'])
  t.equal(logind.locks.held, 1)
  await clock.advance(3_600)
  t.equal(
    (asked.get('uid-of-top') ?? 0) - (asked.get('uid-of-deaf') ?? 0),
    3_500,
    'a pod that ignores the signal gets no further time',
  )
  t.equal(actions.at(-1), 'uid-of-top Terminated 1')
  t.equal(logind.locks.held, 0)
  t.equal(goingDown()?.leftMs, 0, 'of their time, when they have stopped')
  await clock.advance(60_000)
  t.equal(logind.locks.held, 0, 'and it is not taken again while the machine goes')
})

test('a cancelled shutdown gives the pods back and keeps the lock, or takes it again', async (t) => {
  const { clock, logind, actions, goingDown } = await aMachine(t)
  for (const { afterMs, taken } of [
    { afterMs: 1_000, taken: 1 },
    { afterMs: 10_000, taken: 2 },
  ]) {
    actions.splice(0)
    logind.prepare(true)
    await clock.advance(afterMs)
    logind.prepare(false)
    await clock.advance(100)
    t.equal(goingDown(), undefined)
    t.same(actions.slice(-3), ['go on', 'ShutdownCancelled', 'stay'])
    t.match(logind.locks, { held: 1, taken })
  }
})

test('a link that is slow takes no time from the pods, and the last report on it is the right one', async (t) => {
  const { clock, logind, actions, gone } = await aMachine(t, { reportingMs: 2_500 })
  gone.add('uid-of-deaf')
  logind.prepare(true, 'poweroff')
  await clock.advance(100)
  t.equal(actions.at(-1), 'uid-of-top Terminated 1')
  t.equal(logind.locks.held, 1, 'the goodbye is waited for')
  logind.prepare(false)
  await clock.advance(100)
  logind.prepare(true, 'reboot')
  await clock.advance(100)
  logind.prepare(false)
  await clock.advance(20_000)
  t.same(
    actions.filter((word) => /leave|stay/.test(word)),
    ['leave poweroff 4000', 'stay', 'leave reboot 4000', 'stay'],
  )
  t.equal(logind.locks.held, 1)
})

test('the scheduled action is used if the signal names none', async (t) => {
  const logind = fakeInhibitor()
  logind.scheduled = { action: 'reboot', atWallMs: Date.parse('2026-01-01T00:10:00Z') }
  const { clock, actions, condition } = await aMachine(t, { logind })
  t.match(condition()?.message, /a reboot is scheduled for 2026-01-01T00:10:00Z/)
  logind.action = 'reboot'
  logind.prepare(true)
  await clock.advance(100)
  t.equal(actions.at(-1), 'leave reboot 4000')
})

test('an action that was replaced since the last poll is not used', async (t) => {
  const logind = fakeInhibitor()
  logind.scheduled = { action: 'reboot', atWallMs: Date.parse('2026-01-01T00:10:00Z') }
  const { clock, actions } = await aMachine(t, { logind })
  logind.scheduled = undefined
  logind.action = 'poweroff'
  logind.prepare(true)
  await clock.advance(100)
  t.equal(actions.at(-1), 'leave poweroff 4000')
})

test('a bus that comes after the agent is found', async (t) => {
  const logind = fakeInhibitor()
  logind.hasBus = false
  const { clock, condition } = await aMachine(t, { logind })
  t.equal(condition(), undefined)
  logind.hasBus = true
  await clock.advance(31_000)
  t.match(logind.locks, { held: 1, taken: 1 })
  t.match(condition(), { status: 'True' })
})

test('an agent that is stopped while the machine goes down waits for no pod', async (t) => {
  const { clock, logind, asked, goingDown, stop } = await aMachine(t)
  logind.prepare(true, 'reboot')
  await clock.advance(1_000)
  await stop()
  t.equal(logind.locks.held, 0)
  t.equal(asked.size, 2, 'pods of later groups keep running')
  t.match(goingDown(), { action: 'reboot' }, 'for the goodbye')
})

test('an agent that starts while the machine goes down has no lock, and asks the pods to end all the same', async (t) => {
  const logind = fakeInhibitor()
  logind.prepare(true)
  const { clock, actions, condition } = await aMachine(t, { logind })
  await clock.advance(5_000)
  t.match(actions, [
    'NodeShutdown',
    'uid-of-web Terminated 2',
    'uid-of-deaf Terminated 2',
    'leave undefined 2000',
    'uid-of-top Terminated 0',
  ])
  t.match(logind.locks, { held: 0, taken: 0 })
  t.equal(condition(), undefined)
})

test('a bus that ends just after it gave the lock keeps no pod from being asked', async (t) => {
  const logind = fakeInhibitor()
  Object.defineProperty(logind, 'scheduled', {
    get() {
      throw new Error('No answer')
    },
  })
  const { clock, actions } = await aMachine(t, { logind })
  t.match(logind.locks, { held: 1, taken: 1 })
  logind.prepare(true)
  await clock.advance(5_000)
  t.match(actions.slice(1), [
    'uid-of-web Terminated 2',
    'uid-of-deaf Terminated 2',
    /^leave/,
    'uid-of-top Terminated 0',
  ])
  t.equal(logind.locks.held, 0)
})

test('a bus that ends while the machine goes down keeps no pod from its time', async (t) => {
  const { clock, logind, actions, condition } = await aMachine(t)
  logind.prepare(true)
  await clock.advance(100)
  logind.isAway = true
  logind.hangUp()
  await clock.advance(10_000)
  t.equal(actions.at(-1), 'uid-of-top Terminated 1')
  t.equal(logind.locks.held, 0)
  t.match(condition(), { status: 'True' }, 'the condition does not report a failure: pods were waited for')
})

test('what is configured and not granted is reported with the file that grants less', async (t) => {
  const { logind, clock, condition } = await aMachine(t, {
    settings: { graceMs: 30_000, criticalMs: 10_000, byPriority: [] },
  })
  t.equal(logind.delayMs, 31_000)
  t.match(condition(), { status: 'True', reason: 'DelayLockHeld' })
  logind.mostDelayMs = 16_000
  logind.forget()
  await clock.advance(10)
  t.match(condition(), { status: 'True', reason: 'DelayShortened' })
  t.match(condition()?.message, /10 s from priority 0, 5 s .*; 30 s were configured, and \/etc\/other.conf grants less/)
})

test('a bus that went away is found again, and what was missed meanwhile is read', async (t) => {
  const { clock, logind, actions, condition } = await aMachine(t)
  logind.isAway = true
  logind.hangUp()
  await clock.advance(20_000)
  t.match(condition(), { status: 'False', reason: 'DelayLockNotHeld', message: /No answer/ })
  t.equal(logind.locks.held, 1, 'the lock itself outlives the bus')
  logind.isAway = false
  logind.prepare(true)
  await clock.advance(31_000)
  t.ok(actions.includes('leave undefined 4000'))
})

test('without time for pods no lock is taken', async (t) => {
  const { logind, condition } = await aMachine(t, { settings: { ...asGranted, graceMs: 0 } })
  t.equal(logind.locks.held, 0)
  t.equal(condition(), undefined)
})

test('what is shown before the first look is nothing', (t) => {
  t.same(agentBoard().shutdownConditions.get(), [])
  t.end()
})

test('each change of the condition is logged once: held, shortened, lost', async (t) => {
  const { clock, log, board, logind } = await aMachine(t, {
    settings: { graceMs: 30_000, criticalMs: 10_000, byPriority: [] },
  })
  let changes = 0
  board.shutdownConditions.onChange(() => changes++)
  await clock.advance(60_000)
  t.same([log.lines.length, changes], [1, 0], 'the same at each look')
  logind.mostDelayMs = 16_000
  await clock.advance(30_000)
  logind.isAway = true
  await clock.advance(60_000)
  t.same(
    log.lines
      .filter(({ level }) => level !== 'debug')
      .map(({ level, message, facts }) => [level, message, facts['reason']]),
    [
      ['info', 'Shutdowns wait for the pods', 'DelayLockHeld'],
      ['warn', 'Shutdowns may not wait for the pods', 'DelayShortened'],
      ['warn', 'Shutdowns may not wait for the pods', 'DelayLockNotHeld'],
    ],
  )
  t.match(log.lines[0]?.facts['because'], /^logind waits up to 31 s for the agent/)
  t.match(
    log.lines.find(({ level }) => level === 'debug'),
    {
      message: 'logind is out of reach',
      facts: { error: { message: 'No answer' } },
    },
  )
})

test('a bus that fails twice with the lock held is tolerated, the third time it is reported', async (t) => {
  const { clock, logind, condition } = await aMachine(t)
  logind.isAway = true
  logind.hangUp()
  await clock.advance(1)
  t.match(condition(), { status: 'True' }, 'the first failure')
  // Waits of 1 s and 2 s, with half of their jitter.
  await clock.advance(1_000)
  t.match(condition(), { status: 'True' }, 'the second failure')
  await clock.advance(3_000)
  t.match(condition(), { status: 'False', reason: 'DelayLockNotHeld' }, 'the third failure')
})

test('a session that lasted begins the count of failures again', async (t) => {
  const { clock, logind, condition } = await aMachine(t)
  for (let outages = 0; outages < 4; outages++) {
    await clock.advance(60_000)
    logind.hangUp()
    await clock.advance(2_000)
    t.match(condition(), { status: 'True' })
  }
})

test('without a lock the first failure is shown', async (t) => {
  const logind = fakeInhibitor()
  logind.isAway = true
  const { condition } = await aMachine(t, { logind })
  t.match(condition(), { status: 'False', reason: 'DelayLockNotHeld', message: /No answer/ })
})
