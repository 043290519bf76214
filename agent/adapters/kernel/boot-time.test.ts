import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { cell } from '../../../daemon/cell.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { until } from '../../testing/until.ts'
import { openBootTime } from './boot-time.ts'
import { machineSensors } from './machine-sensors.ts'

function aFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'bramble-boot-time-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A machine as its kernel shows it, for as long as the test sets; `/proc` of one that is a container is the host's. */
async function boot(t: Test, { folder = aFolder(t), rebooted = true, hostUpS = 0 } = {}) {
  const clock = fakeClock()
  const bornS = Math.floor(clock.monotonicMs() / 1000)
  const root = aFolder(t)
  mkdirSync(join(root, 'proc/1'), { recursive: true })
  const stat = `1 (systemd) S 0 1 1 0 -1 4194560 11 22 0 0 3 4 0 0 20 0 1 0 ${hostUpS * 100} 172000000 3000`
  writeFileSync(join(root, 'proc/1/stat'), stat)
  const sensors = machineSensors({ root })
  const uptimeMs = () => {
    writeFileSync(join(root, 'proc/uptime'), `${hostUpS + clock.monotonicMs() / 1000 - bornS} 1.00\n`)
    return sensors.time().uptimeMs
  }
  let connected = false
  const stopping = new AbortController()
  const bootMs = cell<number | undefined>(undefined)
  const needs = { dataDirectory: folder, rebooted, isConnected: () => connected, uptimeMs, clock, writes: { bootMs } }
  const bootTime = await openBootTime(needs)
  const running = bootTime.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  const file = join(folder, 'boot-seconds')
  return {
    folder,
    bootMs: bootMs.get,
    file,
    /** Time from power on until the controller is found. */
    async finds(afterS: number) {
      await clock.advance(afterS * 1000)
      connected = true
      await clock.advance(1_000)
    },
    written: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
  }
}

test('a boot is measured until the controller is found, and known to the next agent', async (t) => {
  const first = await boot(t)
  t.equal(first.bootMs(), undefined, 'never measured')
  await first.finds(42)
  await until('it is written', () => first.bootMs() !== undefined && first.written() === '43\n')
  t.equal(first.bootMs(), 43_000)

  const again = await boot(t, { folder: first.folder, hostUpS: 7_000 })
  t.equal(again.bootMs(), 43_000)
  const before = statSync(again.file).ino
  await again.finds(48)
  t.equal(again.bootMs(), 43_000, 'a little more or less is nothing to write down')
  t.equal(statSync(again.file).ino, before)
  const slow = await boot(t, { folder: first.folder, hostUpS: 7_000 })
  await slow.finds(89)
  await until('it is written', () => slow.written() === '90\n')
})

test('only a boot is measured', async (t) => {
  const restarted = await boot(t, { rebooted: false })
  await restarted.finds(30)
  t.equal(restarted.bootMs(), undefined, 'the agent was started again')
  const away = await boot(t)
  await away.finds(16 * 60)
  t.equal(away.bootMs(), undefined, 'the controller was away')
})

test('a corrupted number is ignored', async (t) => {
  for (const text of ['9043\n', '43', '', '\0\0\0', '-4\n', 'soon\n']) {
    const folder = aFolder(t)
    writeFileSync(join(folder, 'boot-seconds'), text)
    const { bootMs } = await boot(t, { folder, rebooted: false })
    t.equal(bootMs(), undefined, JSON.stringify(text))
  }
})

test('a read-only disk does not fail it', async (t) => {
  const { bootMs, finds } = await boot(t, { folder: '/proc/none' })
  await finds(20)
  t.equal(bootMs(), 21_000)
})
