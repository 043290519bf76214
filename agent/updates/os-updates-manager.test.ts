import { type Test, test } from 'tap'
import type { OsReport, OsUpgrade } from '../../api/node/os-updates.ts'
import { cell } from '../../daemon/cell.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import type { UpgradeResult } from './os-report.ts'
import { osUpdatesManager } from './os-updates-manager.ts'

function running(
  t: Test,
  given: { readonly saved?: OsUpgrade; readonly isEnabled?: boolean; readonly isMetered?: boolean } = {},
  ...expected: readonly string[]
) {
  const disk = {
    saved: given.saved,
    refresh: undefined as boolean | undefined,
    saves: 0,
    isRebootRequested: false,
    result: undefined as UpgradeResult | undefined,
    fails: false,
  }
  const clock = fakeClock()
  const osUpgrade = cell<{ readonly upgrade: OsUpgrade | undefined } | undefined>(undefined)
  const osReport = cell<OsReport | undefined>(undefined)
  const osConditions = cell<readonly MachineCondition[]>([])
  const stop = new AbortController()
  const manager = osUpdatesManager({
    files: {
      async facts() {
        if (disk.fails) throw new Error('Input/output error')
        const { isRebootRequested, result } = disk
        return {
          ...{ pending: { listsFromMs: 1, security: 2, others: 0, packages: ['openssl'] }, result, isRebootRequested },
          ...{ rebootPackages: [], runningKernel: '6.1.0-28-amd64', installedKernels: [] },
        }
      },
      wanted: async () => disk.saved,
      async saveWanted(wanted) {
        disk.saved = wanted
        disk.saves += 1
      },
      async saveRefresh(isAllowed) {
        disk.refresh = isAllowed
      },
    },
    settings: { isEnabled: given.isEnabled ?? true, isMetered: given.isMetered ?? false },
    reads: { osUpgrade },
    writes: { osReport, osConditions },
    clock,
    log: quietLog(t, ...expected),
  })
  const end = manager.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await end
  })
  return { disk, clock, osUpgrade, osReport, osConditions }
}

test('pending updates and a required reboot are reported', async (t) => {
  const { disk, clock, osReport, osConditions } = running(t)
  await clock.settle()
  t.match(osReport.get(), { upgrades: true, security: 2, packages: ['openssl'], rebootRequired: false })
  t.match(osConditions.get(), [{ type: 'RebootRequired', status: 'False' }])
  disk.isRebootRequested = true
  await clock.advance(61_000)
  t.match(osConditions.get(), [{ type: 'RebootRequired', status: 'True' }])
})

test('an upgrade that the controller wants is saved for its unit, once, and its end is reported within seconds', async (t) => {
  const { disk, clock, osUpgrade, osReport } = running(t)
  osUpgrade.set({ upgrade: { id: 'a1' } })
  await clock.settle()
  t.same(disk.saved, { id: 'a1' })
  t.match(osReport.get()?.upgrade, { outcome: 'waiting' })
  disk.result = { id: 'a1', outcome: 'done' }
  await clock.advance(5_000)
  t.match(osReport.get()?.upgrade, { outcome: 'done' })
  await clock.advance(300_000)
  t.equal(disk.saves, 1)
  osUpgrade.set({ upgrade: undefined })
  await clock.settle()
  t.equal(disk.saved, undefined)
  t.equal(osReport.get()?.upgrade, undefined)
})

test('before the controller has sent anything an upgrade that was saved stays wanted', async (t) => {
  const { disk, clock, osReport } = running(t, { saved: { id: 'a1' } })
  await clock.settle()
  t.same(disk.saved, { id: 'a1' })
  t.match(osReport.get()?.upgrade, { id: 'a1', outcome: 'waiting' })
})

test('a machine without osUpgrades saves nothing, and reports the reason', async (t) => {
  const { disk, clock, osUpgrade, osReport } = running(t, { isEnabled: false, saved: { id: 'a0' } })
  osUpgrade.set({ upgrade: { id: 'a1' } })
  await clock.settle()
  t.equal(disk.saved, undefined, 'what was saved before the configuration changed does not run, either')
  t.match(osReport.get(), { upgrades: false, upgrade: { outcome: 'failed', reason: /osUpgrades/ } })
})

test('package lists are downloaded only where upgrades are allowed and the link is not metered', async (t) => {
  for (const [given, refresh] of [
    [{}, true],
    [{ isMetered: true }, false],
    [{ isEnabled: false }, false],
  ] as const) {
    const { disk, clock } = running(t, given)
    await clock.settle()
    t.equal(disk.refresh, refresh)
  }
})

test('an id that is not a word, and a disk that cannot be read, change nothing', async (t) => {
  const { disk, clock, osUpgrade, osReport } = running(t, {}, 'Cannot read or save the state of the updates')
  osUpgrade.set({ upgrade: { id: '../x y' } })
  await clock.settle()
  t.equal(disk.saved, undefined)
  disk.fails = true
  await clock.advance(61_000)
  t.match(osReport.get(), { security: 2 })
})
