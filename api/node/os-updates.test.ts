import { test } from 'tap'
import { aNode } from '../testing/builders.ts'
import { isUpgradeID, osReportOf } from './os-updates.ts'

const report = {
  ...{ upgrades: true, security: 2, others: 1, listsFrom: '2026-01-02T03:00:00Z', packages: ['openssl'] },
  ...{ rebootRequired: true, rebootBecause: ['dbus'], upgrade: { id: 'a1', outcome: 'done' } },
}
const read = (written: unknown) =>
  osReportOf(
    aNode({
      annotations: { 'bramble.dev/os-updates': typeof written === 'string' ? written : JSON.stringify(written) },
    }),
  )

test('the report of a node is read, and one that is damaged counts as missing', async (t) => {
  t.same(read(report), report)
  t.equal(osReportOf(aNode()), undefined)
  for (const wrong of ['', '{', { ...report, upgrades: 1 }, { ...report, upgrade: { id: 'a1', outcome: 'maybe' } }])
    t.equal(read(wrong), undefined)
})

test('the id of an upgrade is a word', async (t) => {
  for (const id of ['a1', '2026-01-02T03:04:05Z', '0', 'x'.repeat(64)]) t.ok(isUpgradeID(id), id)
  for (const id of ['', 'a b', '-rf', '$(id)', 'a/b', 'a"b', 'a\n', 'x'.repeat(65)]) t.notOk(isUpgradeID(id), id)
})
