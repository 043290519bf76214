import { type Test, test } from 'tap'
import { fakeClock } from '../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { fakeHost } from '../testing/fake-host.ts'
import { evictionManager } from './eviction-manager.ts'
import { defaultEvictionHard, parseThresholds } from './thresholds.ts'

const mib = 2 ** 20

function machine(t: Test) {
  const [clock, log, host] = [fakeClock(), quietLog(t), fakeHost()]
  const world = { changes: 0 }
  const manager = evictionManager(
    { signals: host, clock, log, changed: () => world.changes++ },
    { thresholds: parseThresholds(defaultEvictionHard).thresholds, transitionMs: 300_000 },
  )
  const stopping = new AbortController()
  const done = manager.run(stopping.signal)
  t.teardown(async () => {
    stopping.abort()
    await done
  })
  return { clock, log, host, manager, world }
}

test('a machine with enough of everything is under no pressure, and says so after the first look', async (t) => {
  const { clock, manager, world } = machine(t)
  t.equal(manager.pressures(), undefined)
  await clock.advance(60_000)
  t.same(manager.pressures(), [])
  t.equal(world.changes, 1)
})

test('memory that runs short shows at the next look and stays shown for five minutes after it was last short', async (t) => {
  const { clock, host, manager, world, log } = machine(t)
  await clock.settle()
  host.leave('memory.available', 99 * mib)
  await clock.advance(10_000)
  t.same(manager.pressures(), ['MemoryPressure'])
  host.leave('memory.available', 500 * mib)
  await clock.advance(299_000)
  t.same(manager.pressures(), ['MemoryPressure'])
  await clock.advance(1_000)
  t.same(manager.pressures(), [])
  t.equal(world.changes, 3)
  t.same(log.messages('warn'), ['Node is under pressure'])
  t.same(log.messages('info'), ['Pressure is gone'])
})

test('a disk that cannot be read is told once, and hides no shortage of memory', async (t) => {
  const { clock, host, manager, log } = machine(t)
  host.hide('nodefs.available', 'EIO: i/o error')
  host.leave('memory.available', 1)
  await clock.advance(60_000)
  t.same(manager.pressures(), ['MemoryPressure'])
  t.same(log.messages('warn').toSorted(), ['Node is under pressure', 'Some of the machine cannot be read'])
})
