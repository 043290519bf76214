import { test } from 'tap'
import type { Observation } from './observations.ts'
import { isNear, nextSituation, noPressure, observePressure } from './pressure.ts'
import type { Threshold } from './thresholds.ts'

test('a node that hovers at its threshold does not flap', async (t) => {
  const first = observePressure(new Map(), ['MemoryPressure'], 0, 300)
  t.same([...first.keys()], ['MemoryPressure'], 'shown on the first bad reading')
  const later = observePressure(first, [], 299, 300)
  t.same([...later.keys()], ['MemoryPressure'], 'a good reading does not yet clear it')
  t.equal(observePressure(later, [], 300, 300).size, 0, 'cleared after staying away')
})

test('every bad reading restarts the transition period', async (t) => {
  const first = observePressure(new Map(), ['DiskPressure'], 0, 300)
  const again = observePressure(first, ['DiskPressure'], 200, 300)
  t.same([...observePressure(again, [], 499, 300).keys()], ['DiskPressure'])
  t.equal(observePressure(again, [], 500, 300).size, 0)
})

test('one pressure clears without the other', async (t) => {
  const both = observePressure(new Map(), ['MemoryPressure', 'DiskPressure'], 0, 300)
  t.same([...observePressure(both, ['DiskPressure'], 300, 300).keys()], ['DiskPressure'])
})

const memory = (available: number): Observation => ({ signal: 'memory.available', available, capacity: 1000 })
const disk = (available: number): Observation => ({ signal: 'nodefs.available', available, capacity: 1000 })
const below = (signal: Threshold['signal'], quantity: number, more: Partial<Threshold> = {}): Threshold => ({
  signal,
  value: { quantity, family: 'decimal' },
  ...more,
})

test('a hard threshold is in force at once, a soft one after its grace period', async (t) => {
  const [hard, soft] = [below('memory.available', 100), below('memory.available', 300, { graceMs: 90 })]
  const settings = { thresholds: [soft, hard], transitionMs: 300 }
  const first = nextSituation(noPressure, [memory(200)], settings, 0)
  t.same(first.inForce, [])
  t.ok(first.lastMet.has('MemoryPressure'), 'but it shows at once')
  const later = nextSituation(first, [memory(200)], settings, 90)
  t.same(later.inForce, [soft])
  t.same(nextSituation(later, [memory(50)], settings, 91).inForce, [hard, soft], 'the hard one first')
})

test('one good reading restarts a grace period', async (t) => {
  const settings = { thresholds: [below('memory.available', 300, { graceMs: 90 })], transitionMs: 300 }
  const first = nextSituation(noPressure, [memory(200)], settings, 0)
  const good = nextSituation(first, [memory(400)], settings, 50)
  const bad = nextSituation(good, [memory(200)], settings, 60)
  t.same(nextSituation(bad, [memory(200)], settings, 149).inForce, [])
  t.equal(nextSituation(bad, [memory(200)], settings, 150).inForce.length, 1)
})

test('a threshold stays in force until its minimum reclaim is there', async (t) => {
  const threshold = below('memory.available', 100, { minimumReclaim: { quantity: 50, family: 'decimal' } })
  const settings = { thresholds: [threshold], transitionMs: 300 }
  const met = nextSituation(noPressure, [memory(99)], settings, 0)
  const half = nextSituation(met, [memory(120)], settings, 10)
  t.same(half.inForce, [threshold])
  t.same(nextSituation(half, [memory(150)], settings, 20).inForce, [])
})

test('memory comes before all others', async (t) => {
  const settings = { thresholds: [below('nodefs.available', 100), below('memory.available', 100)], transitionMs: 300 }
  const { inForce } = nextSituation(noPressure, [disk(1), memory(1)], settings, 0)
  t.same(
    inForce.map(({ signal }) => signal),
    ['memory.available', 'nodefs.available'],
  )
})

test('a warning shows as pressure, and evicts nothing', async (t) => {
  const { inForce, lastMet } = nextSituation(noPressure, [], { thresholds: [], transitionMs: 300 }, 0, ['DiskPressure'])
  t.same([inForce, [...lastMet.keys()]], [[], ['DiskPressure']])
})

test('a threshold is near when a tenth of it is left above it, or when what is there falls fast', async (t) => {
  const thresholds = [below('memory.available', 100)]
  const spans = { sinceMs: 10_000, withinMs: 10_000 }
  t.equal(isNear(thresholds, [], [memory(110)], spans), true)
  t.equal(isNear(thresholds, [], [memory(111)], spans), false)
  t.equal(isNear(thresholds, [memory(800)], [memory(450)], spans), true, '350 in ten seconds, and 350 are left')
  t.equal(isNear(thresholds, [memory(800)], [memory(460)], spans), false)
  t.equal(isNear(thresholds, [], [], spans), false, 'a signal that cannot be read is not near')
})

test('without thresholds or warnings nothing is under pressure', async (t) => {
  t.equal(nextSituation(noPressure, [memory(0)], { thresholds: [], transitionMs: 300 }, 0).lastMet.size, 0)
})

test('any signal near its threshold is enough, and each is compared with its own reading', async (t) => {
  const thresholds = [below('memory.available', 100), below('nodefs.available', 100)]
  const spans = { sinceMs: 1_024, withinMs: 1_024 }
  t.equal(isNear(thresholds, [], [memory(900), disk(105)], spans), true, 'the disk alone')
  t.equal(isNear(thresholds, [], [disk(900), memory(105)], spans), true, 'memory alone')
  t.equal(isNear([thresholds[1] ?? below('pid.available', 1)], [], [memory(105), disk(900)], spans), false)
  const before = [disk(900), memory(612)]
  t.equal(isNear(thresholds, before, [disk(900), memory(356)], spans), true, '256 in 1,024 ms, and 256 are left')
  t.equal(isNear(thresholds, before, [disk(900), memory(357)], spans), false)
})

test('what rises, stands or was read in the same instant is not falling', async (t) => {
  const thresholds = [below('memory.available', 100)]
  const spans = { sinceMs: 10_000, withinMs: 10_000 }
  t.equal(isNear(thresholds, [memory(200)], [memory(800)], spans), false)
  t.equal(isNear(thresholds, [memory(200)], [memory(200)], spans), false)
  t.equal(isNear(thresholds, [memory(800)], [memory(200)], { ...spans, sinceMs: 0 }), false)
})
