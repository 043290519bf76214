import { test } from 'tap'
import { type OsFacts, osReport, rebootCondition } from './os-report.ts'

const quiet: OsFacts = {
  isEnabled: true,
  pending: undefined,
  wanted: undefined,
  result: undefined,
  isRebootRequested: false,
  rebootPackages: [],
  runningKernel: '6.1.0-28-amd64',
  installedKernels: ['6.1.0-28-amd64'],
}
const id = '2026-01-02T03:04:05Z'

test('a machine whose updates were not counted yet reports that no reboot is required', async (t) => {
  t.same(osReport(quiet), { upgrades: true, packages: [], rebootRequired: false, rebootBecause: [] })
  t.match(rebootCondition(osReport(quiet)), { type: 'RebootRequired', status: 'False', reason: 'NoRebootRequired' })
})

test('pending updates are reported with the time of the package lists, and bounded', async (t) => {
  const packages = Array.from({ length: 40 }, (_, at) => `lib${at}\u001b[1m${'x'.repeat(200)}`)
  const pending = { listsFromMs: Date.parse('2026-01-02T00:00:00.500Z'), security: 40, others: 1e12, packages }
  const report = osReport({ ...quiet, pending })
  t.match(report, { security: 40, others: 100_000, listsFrom: '2026-01-02T00:00:00Z' })
  t.equal(report.packages.length, 16)
  t.ok(report.packages.every((name) => name.length <= 64 && !/\p{Cc}/u.test(name)))
  t.equal(osReport({ ...quiet, pending: { ...pending, listsFromMs: Number.NaN } }).listsFrom, undefined)
})

test('a reboot is required by the file of Debian, or by a newer kernel', async (t) => {
  const requested = osReport({ ...quiet, isRebootRequested: true, rebootPackages: ['dbus', ' dbus', '', 'libc6'] })
  t.match(requested, { rebootRequired: true, rebootBecause: ['dbus', 'libc6'] })
  t.match(rebootCondition(requested), { status: 'True', message: /dbus, libc6/ })
  const kernel = osReport({ ...quiet, installedKernels: ['6.1.0-29-amd64'] })
  t.match(kernel, { rebootRequired: true, rebootBecause: ['kernel 6.1.0-29-amd64'] })
  t.match(rebootCondition(osReport({ ...quiet, isRebootRequested: true })), { message: /an update/ })
  t.same(osReport({ ...quiet, rebootPackages: ['left over'] }).rebootBecause, [])
})

const upgrades: { readonly [sentence: string]: readonly [Partial<OsFacts>, object | undefined] } = {
  'none is wanted': [{ result: { id, outcome: 'done' } }, undefined],
  'it waits for its unit': [{ wanted: { id } }, { id, outcome: 'waiting' }],
  'another one was done': [
    { wanted: { id }, result: { id: 'a', outcome: 'done' } },
    { id, outcome: 'waiting' },
  ],
  'it runs': [
    { wanted: { id }, result: { id, outcome: 'running' } },
    { id, outcome: 'running' },
  ],
  'it failed': [
    { wanted: { id }, result: { id, outcome: 'failed', reason: 'no\nspace' } },
    { id, outcome: 'failed', reason: 'no space' },
  ],
  'the machine does not allow it': [
    { wanted: { id }, isEnabled: false },
    { id, outcome: 'failed', reason: /osUpgrades/ },
  ],
  'it was done before the machine disallowed it': [
    { wanted: { id }, isEnabled: false, result: { id, outcome: 'done' } },
    { id, outcome: 'done' },
  ],
  'its id would not be safe in a file': [{ wanted: { id: '$(reboot)' } }, undefined],
}
for (const [sentence, [facts, expected]] of Object.entries(upgrades))
  test(`an upgrade is reported: ${sentence}`, async (t) => {
    const { upgrade } = osReport({ ...quiet, ...facts })
    if (expected === undefined) t.equal(upgrade, undefined)
    else t.match(upgrade, expected)
  })
