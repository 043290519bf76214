import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { systemClock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { agentBoard } from '../../assembly/board.ts'
import { goodbyeFor } from '../../shutdown/goodbye.ts'
import type { ShutdownListener } from '../../shutdown/inhibitor.ts'
import { shutdownManager } from '../../shutdown/shutdown-manager.ts'
import { logindDouble } from '../../testing/logind-double.ts'
import { noDBus } from '../../testing/private-bus.ts'
import { until } from '../../testing/until.ts'
import { logind } from './logind.ts'

async function aLogind(t: Test) {
  const double = await logindDouble()
  t.teardown(() => double.remove())
  const signals: string[] = []
  const listener: ShutdownListener = {
    preparing: (isPreparing, action) => void signals.push(`${isPreparing} ${action}`),
    changed: () => void signals.push('changed'),
  }
  const inhibitor = logind({ root: double.root, deadlineMs: 60_000 })
  const open = async () => {
    const session = await inhibitor.open(listener)
    t.teardown(session.close)
    return session
  }
  return { double, signals, inhibitor, open }
}

const none = (double: Awaited<ReturnType<typeof logindDouble>>) => () => double.locks.length === 0

test('a lock is an open file: known to logind, kept from children, and let go when it is closed', {
  skip: noDBus,
}, async (t) => {
  const { double, inhibitor, open } = await aLogind(t)
  t.equal(inhibitor.isAvailable(), true)
  const session = await open()
  t.same(await session.locks(undefined), { isHeld: false, others: [] })
  const lock = await session.takeLock()
  t.equal(lock.how, 'descriptor')
  t.same(double.locks, [{ who: 'bramble-agent', mode: 'delay', pid: process.pid }])
  t.same(await session.locks(lock), { isHeld: true, others: [] })
  t.match((await session.locks(undefined)).others, [{ who: 'bramble-agent', why: 'Pods are stopped in order' }])
  const child = spawn('sleep', ['60'])
  t.teardown(() => child.kill('SIGKILL'))
  lock.release()
  await until('it is not held', none(double))
  t.equal(child.exitCode, null)
})

test('a file that cannot be opened again is closed, and a process holds the lock as long as it is wanted', {
  skip: noDBus,
}, async (t) => {
  const { double, open } = await aLogind(t)
  const session = await open()
  double.passesSocket = true
  const lock = await session.takeLock()
  t.equal(lock.how, 'process')
  t.not(lock.pid, process.pid)
  await until('it is the only one', () => double.locks.length === 1)
  t.same(double.locks, [{ who: 'bramble-agent', mode: 'delay', pid: lock.pid }])
  t.match(await (await open()).locks(lock), { isHeld: true }, 'known on another connection, too')
  lock.release()
  await until('it is not held', none(double))
  double.passesSocket = true
  const next = await session.takeLock()
  process.kill(next.pid, 'SIGKILL')
  await until('logind is rid of it', none(double))
  t.match(await session.locks(next), { isHeld: false })
  t.doesNotThrow(() => next.release())
})

test('signals of logind arrive, and its properties are read', { skip: noDBus }, async (t) => {
  const { double, signals, open } = await aLogind(t)
  const session = await open()
  t.equal(await session.isPreparing(), false)
  t.equal(await session.scheduled(), undefined)
  double.scheduled = ['reboot', Date.parse('2026-03-01T12:00:00Z')]
  t.same(await session.scheduled(), { action: 'reboot', atWallMs: Date.parse('2026-03-01T12:00:00Z') })
  t.equal(await session.action(), 'reboot')
  double.scheduled = ['poweroff', 0]
  t.equal(await session.scheduled(), undefined, 'for now')
  t.equal(await session.action(), 'poweroff')
  double.prepare(true)
  await until('the signal of an older one', () => signals.length === 1)
  t.equal(await session.isPreparing(), true)
  double.prepare(false, 'kexec')
  await until('both signals of a later one', () => signals.length === 3)
  t.same(signals, ['true undefined', 'false kexec', 'false undefined'])
})

test('another logind is noticed, and so is another bus', { skip: noDBus }, async (t) => {
  const { double, signals, inhibitor, open } = await aLogind(t)
  const session = await open()
  const lock = await session.takeLock()
  await double.restart()
  await until('the change', () => signals.includes('changed'))
  t.match(await session.locks(lock), { isHeld: true })
  await double.bus.stop()
  await session.ended
  await t.rejects(session.isPreparing(), { name: 'BusError' })
  await t.rejects(inhibitor.open({ preparing: () => undefined, changed: () => undefined }), { name: 'BusError' })
  await double.bus.start()
  await double.restart()
  t.match(await (await open()).locks(lock), { isHeld: true }, 'the lock outlived both')
  lock.release()
  await until('it is not held', none(double))
})

test('a longer delay is requested once, by the drop-in that is read last, which is removed with the setting', {
  skip: noDBus,
}, async (t) => {
  const { double, open } = await aLogind(t)
  const { configureDelay } = await open()
  const folder = 'etc/systemd/logind.conf.d'
  const own = join(double.root, folder, 'zzz-bramble.conf')
  const write = (path: string, seconds: number) =>
    writeFile(join(double.root, path), `[Login]\nInhibitDelayMaxSec=${seconds}\n`)
  t.same(await configureDelay(undefined), { grantedMs: 5_000, because: undefined }, 'what it grants anyway')
  t.same(await configureDelay(4_000), { grantedMs: 5_000, because: undefined })
  t.notOk(existsSync(own), 'nothing is written for less')
  await mkdir(join(double.root, 'usr/lib/systemd/logind.conf.d'), { recursive: true })
  await write('usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf', 30)
  t.same(await configureDelay(61_000), { grantedMs: 61_000, because: undefined })
  t.same(await configureDelay(61_000), { grantedMs: 61_000, because: undefined })
  t.equal(double.reloads, 1)
  await write(`${folder}/zzzz.conf`, 10)
  const less = { grantedMs: 10_000, because: `/${folder}/zzzz.conf grants less` }
  t.same(await configureDelay(45_000), less)
  t.same(await configureDelay(45_000), less)
  t.equal(double.reloads, 2, 'what was refused is not asked for again')
  t.match(await configureDelay(undefined), { grantedMs: 10_000 })
  t.notOk(existsSync(own))
})

test('where the file cannot be written that is why, and the lock is there to be taken', { skip: noDBus }, async (t) => {
  const { double, open } = await aLogind(t)
  await writeFile(join(double.root, 'etc'), 'no folder')
  const because = '/etc/systemd/logind.conf.d/zzz-bramble.conf cannot be written'
  t.same(await (await open()).configureDelay(61_000), { grantedMs: 5_000, because })
})

test('a reboot that logind announces is one in the goodbye', { skip: noDBus }, async (t) => {
  const { double, inhibitor } = await aLogind(t)
  const words: string[] = []
  const board = agentBoard()
  const manager = shutdownManager(
    {
      inhibitor,
      pods: {
        active: () => [],
        holds: () => false,
        stopped: async () => undefined,
        endPod: () => undefined,
        resume: () => undefined,
      },
      async leaving(goingDown) {
        if (goingDown === undefined) return void words.push('stays')
        words.push(goodbyeFor({ jobs: [], goingDown, isUpgrading: false, bootMs: 30_000 }).reason)
      },
      reported: async () => undefined,
      clock: systemClock,
      random: () => 0.5,
      log: quietLog(t),
      recordEvent: () => undefined,
      writes: board,
    },
    { graceMs: undefined, criticalMs: undefined, byPriority: [] },
  )
  const stopping = new AbortController()
  const running = manager.run(stopping.signal)
  await until('the lock is held', () => board.shutdownConditions.get()[0]?.status === 'True')
  double.prepare(true, 'reboot')
  await until('the machine may go', none(double))
  t.same(words, ['reboot'])
  double.prepare(false, 'reboot')
  await until('it is held again', () => double.locks.length === 1)
  t.same(words, ['reboot', 'stays'])
  stopping.abort()
  await running
  await until('and let go', none(double))
})
