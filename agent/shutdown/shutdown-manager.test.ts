import { type Test, test } from 'tap'
import { aPod } from '../../api/testing/builders.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { fakeInhibitor } from '../testing/fake-inhibitor.ts'
import type { ShutdownSettings } from './shutdown-groups.ts'
import { shutdownManager } from './shutdown-manager.ts'

const asGranted: ShutdownSettings = { graceMs: undefined, criticalMs: undefined, byPriority: [] }

async function aMachine(t: Test, settings: ShutdownSettings = asGranted) {
  const clock = fakeClock()
  const logind = fakeInhibitor()
  const told: string[] = []
  const asked = new Map<string, number>()
  const gone = new Set<string>()
  const active = [aPod({ name: 'top', priority: 2_000_001_000 }), aPod({ name: 'web' }), aPod({ name: 'deaf' })]
  const manager = shutdownManager(
    {
      inhibitor: logind,
      pods: {
        active: () => active,
        holds: (uid) => !gone.has(uid),
        endPod(uid, { gracePeriodSeconds, reason }) {
          told.push(`${uid} ${reason} ${gracePeriodSeconds}`)
          asked.set(uid, clock.monotonicMs())
          if (uid !== 'uid-of-deaf') gone.add(uid)
        },
        goOn: () => void told.push('go on'),
      },
      leaving: async (goingDown) => void told.push(goingDown === undefined ? 'stay' : `leave ${goingDown.leftMs}`),
      reported: async () => undefined,
      clock,
      random: () => 0.5,
      log: quietLog(t),
      tell: ({ reason }) => void told.push(reason),
      changed: () => undefined,
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
  const condition = () => manager.conditions()[0]
  return { clock, logind, told, asked, gone, manager, condition, stop }
}

test('the lock is taken at the start, and looked after', async (t) => {
  const { clock, logind, condition, stop } = await aMachine(t)
  t.equal(logind.locks.held, 1)
  t.match(condition(), { type: 'GracefulShutdownReady', status: 'True', reason: 'DelayLockHeld' })
  t.match(
    condition()?.message,
    'logind waits up to 5 s for us; pods have 3 s from priority 0, 1 s from priority 2000000000',
  )
  logind.others.push({ who: 'unattended-upgrades', why: 'Stop ongoing upgrades', mode: 'delay' })
  logind.forget()
  await clock.advance(10)
  t.equal(logind.locks.held, 1, 'another logind that does not know it gets it anew')
  t.match(condition()?.message, /also held by unattended-upgrades \(delay: Stop ongoing upgrades\)/)
  await stop()
  t.equal(logind.locks.held, 0, 'an agent that ended holds up nobody')
})

test('pods stop in order, each group within its share, and then the machine may go', async (t) => {
  const { clock, logind, told, asked, manager } = await aMachine(t)
  logind.prepare(true, 'reboot')
  await clock.advance(100)
  t.same(manager.goingDown()?.action, 'reboot')
  t.same(told, ['leave 4000', 'uid-of-web Terminated 3', 'uid-of-deaf Terminated 3'])
  t.equal(logind.locks.held, 1)
  await clock.advance(3_600)
  t.equal((asked.get('uid-of-top') ?? 0) - (asked.get('uid-of-deaf') ?? 0), 3_500, 'who is deaf has no more')
  t.equal(told.at(-1), 'uid-of-top Terminated 1')
  t.equal(logind.locks.held, 0)
  await clock.advance(60_000)
  t.equal(logind.locks.held, 0, 'and it is not taken again while the machine goes')
})

test('a shutdown that is called off gives the pods back and takes the lock again', async (t) => {
  const { clock, logind, told, manager } = await aMachine(t)
  logind.prepare(true)
  await clock.advance(1_000)
  logind.prepare(false)
  await clock.advance(100)
  t.equal(manager.goingDown(), undefined)
  t.same(told.slice(3), ['go on', 'stay', 'ShutdownCancelled'])
  t.equal(logind.locks.held, 1)
})

test('what is configured and not granted is told with the file that grants less', async (t) => {
  const { logind, clock, condition } = await aMachine(t, { graceMs: 30_000, criticalMs: 10_000, byPriority: [] })
  t.equal(logind.delayMs, 31_000)
  t.match(condition(), { status: 'True', reason: 'DelayLockHeld' })
  logind.mostDelayMs = 16_000
  logind.forget()
  await clock.advance(10)
  t.match(condition(), { status: 'True', reason: 'DelayShortened' })
  t.match(condition()?.message, /10 s from priority 0, 5 s .*; 30 s were configured, and \/etc\/other.conf grants less/)
})

test('a bus that went away is found again, and what was missed meanwhile is read', async (t) => {
  const { clock, logind, told, condition } = await aMachine(t)
  logind.isAway = true
  logind.hangUp()
  await clock.advance(20_000)
  t.match(condition(), { status: 'False', reason: 'DelayLockNotHeld', message: /No answer/ })
  t.equal(logind.locks.held, 1, 'the lock itself outlives the bus')
  logind.isAway = false
  logind.prepare(true)
  await clock.advance(31_000)
  t.equal(told[0], 'leave 4000')
})

test('who gives pods no time holds up nobody', async (t) => {
  const { logind, condition } = await aMachine(t, { ...asGranted, graceMs: 0 })
  t.equal(logind.locks.held, 0)
  t.equal(condition(), undefined)
})
