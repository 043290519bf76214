import { test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { unstoredReports } from './unstored-reports.ts'

test('what the store has of a node may be outdated for a minute after its last status that could not be stored', async (t) => {
  const clock = fakeClock()
  const reports = unstoredReports({ clock })
  const both = () => [reports.mayBeOutdated('pi-1'), reports.mayBeOutdated('pi-2')]
  t.same(both(), [false, false])
  reports.failed('pi-1')
  t.same(both(), [true, false])
  await clock.advance(50_000)
  reports.failed('pi-1')
  reports.failed('pi-2')
  await clock.advance(59_999)
  t.same(both(), [true, true])
  await clock.advance(1)
  t.same(both(), [false, false])
})

test('while the store takes no write, what it has of such a node stays outdated, though the node is away', async (t) => {
  const clock = fakeClock()
  const reports = unstoredReports({ clock })
  reports.failed('pi-1')
  await clock.advance(50_000)
  reports.storeFailed()
  await clock.advance(59_999)
  t.same([reports.mayBeOutdated('pi-1'), reports.mayBeOutdated('pi-2')], [true, false])
  await clock.advance(1)
  reports.storeFailed()
  t.notOk(reports.mayBeOutdated('pi-1'), 'the store took writes for a minute')
  reports.failed('pi-1')
  await clock.advance(50_000)
  reports.failed('pi-2')
  await clock.advance(10_000)
  const both = [reports.mayBeOutdated('pi-1'), reports.mayBeOutdated('pi-2')]
  t.same(both, [false, true], 'a status that fails by itself concerns no other node')
})
