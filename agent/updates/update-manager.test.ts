import { type Test, test } from 'tap'
import type { AgentRelease, AgentUpdateReport } from '../../api/node/agent-update.ts'
import { cell } from '../../daemon/cell.ts'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { initialUpdateState, type UpdateState } from '../../daemon/updates/update-state.ts'
import type { MachineCondition } from '../node/status/conditions.ts'
import { updateManager, type WantedUpdate } from './update-manager.ts'
import type { UpdateNote } from './update-report.ts'

const rules = { isMetered: false, bytesPerDay: 100_000 }
const release: AgentRelease = { version: '1.5.0', sequence: 15, digest: 'a'.repeat(64) }

/** A machine of the package 1.4.0, and the manager that runs on it. */
function running(
  t: Test,
  given: { readonly saved?: WantedUpdate; readonly isOfPackage?: boolean; readonly isMetered?: boolean } = {},
) {
  const disk = {
    saved: given.saved,
    saves: 0,
    state: initialUpdateState as UpdateState,
    note: undefined as UpdateNote | undefined,
    percent: undefined as number | undefined,
    fails: false,
  }
  const clock = fakeClock()
  const agentRelease = cell<{ readonly release: AgentRelease | undefined } | undefined>(undefined)
  const updateReport = cell<AgentUpdateReport | undefined>(undefined)
  const updateConditions = cell<readonly MachineCondition[]>([])
  const stop = new AbortController()
  const manager = updateManager({
    files: {
      base: async () => ((given.isOfPackage ?? true) ? { version: '1.4.0', sequence: 14 } : undefined),
      state: async () => disk.state,
      note: async () => disk.note,
      downloadedPercent: async (digest) => (digest === release.digest ? disk.percent : undefined),
      wanted: async () => disk.saved,
      async saveWanted(wanted) {
        if (disk.fails) throw new Error('No space left on device')
        disk.saved = wanted
        disk.saves += 1
      },
    },
    reads: { agentRelease },
    writes: { updateReport, updateConditions },
    clock,
    rules: { ...rules, isMetered: given.isMetered ?? false },
    log: quietLog(t),
  })
  const end = manager.run(stop.signal)
  t.teardown(async () => {
    stop.abort()
    await end
  })
  return { disk, clock, agentRelease, updateReport, updateConditions }
}

test('the release that the controller wants is saved at once for the updater, and reported', async (t) => {
  const { disk, clock, agentRelease, updateReport } = running(t)
  await clock.settle()
  t.same(updateReport.get(), { version: '1.4.0', sequence: 14 })
  agentRelease.set({ release })
  await clock.settle()
  t.same(disk.saved, { release, rules })
  t.match(updateReport.get(), { release: { version: '1.5.0', outcome: 'waiting' } })
  await clock.advance(300_000)
  t.equal(disk.saves, 1, 'it is written once')
})

test('a release that is withdrawn is wanted no longer', async (t) => {
  const { disk, clock, agentRelease, updateReport } = running(t, { saved: { release, rules } })
  agentRelease.set({ release: undefined })
  await clock.settle()
  t.equal(disk.saved, undefined)
  t.same(updateReport.get(), { version: '1.4.0', sequence: 14 })
})

test('before the controller has sent anything the release that was saved stays wanted, with the rules of now', async (t) => {
  const { disk, clock, updateReport } = running(t, { saved: { release, rules: { isMetered: true } } })
  await clock.settle()
  t.same(disk.saved, { release, rules })
  t.match(updateReport.get(), { release: { version: '1.5.0' } })
})

test('what cannot be a release is not handed to the updater', async (t) => {
  const { disk, clock, agentRelease } = running(t)
  agentRelease.set({ release: { ...release, version: '../1.5.0' } })
  await clock.settle()
  t.equal(disk.saved, undefined)
})

test('what the launcher, the judge and the updater write is reported within half a minute', async (t) => {
  const { disk, clock, agentRelease, updateReport, updateConditions } = running(t)
  agentRelease.set({ release })
  await clock.settle()
  disk.note = { sequence: 15, outcome: 'blocked', reason: 'the disk is full' }
  await clock.advance(30_000)
  t.match(updateReport.get(), { release: { outcome: 'blocked' } })
  disk.state = { ...initialUpdateState, committed: { version: '1.5.0', sequence: 15, digest: 'b' } }
  await clock.advance(30_000)
  t.match(updateReport.get(), { version: '1.5.0', release: { outcome: 'committed' } })
  t.match(updateConditions.get(), [{ type: 'AgentUpdateFailed', status: 'False', reason: 'AgentUpToDate' }])
})

test('a disk that takes no file is tried again', async (t) => {
  const { disk, clock, agentRelease } = running(t)
  disk.fails = true
  agentRelease.set({ release })
  await clock.settle()
  disk.fails = false
  await clock.advance(30_000)
  t.same(disk.saved, { release, rules })
})

test('an agent that is of no package reports nothing of updates', async (t) => {
  const { disk, clock, agentRelease, updateReport, updateConditions } = running(t, { isOfPackage: false })
  agentRelease.set({ release })
  await clock.settle()
  t.equal(disk.saves, 0)
  t.equal(updateReport.get(), undefined)
  t.same(updateConditions.get(), [])
})

test('the progress of a download is reported, except on a metered link', async (t) => {
  for (const isMetered of [false, true]) {
    const { disk, clock, agentRelease, updateReport } = running(t, { isMetered })
    agentRelease.set({ release })
    await clock.settle()
    disk.percent = 40
    await clock.advance(30_000)
    t.equal(updateReport.get()?.release?.percent, isMetered ? undefined : 40)
    disk.state = { ...initialUpdateState, rejected: [{ version: '1.5.0', digest: 'x', reason: 'it failed' }] }
    await clock.advance(30_000)
    t.equal(updateReport.get()?.release?.percent, undefined, 'it has ended')
  }
})
