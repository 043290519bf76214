import { test } from 'tap'
import { fillLevel, poolFillEvent, poolPercent, volumeFillEvent, volumePercent } from './fill-level.ts'

const gibibyte = 2 ** 30

test('a level is left when five percent are free again, so that it is not recorded at each change', async (t) => {
  const volume = (percent: number, before: number) => fillLevel('volume', percent, before)
  t.same([volume(79, 0), volume(80, 0), volume(96, 80), volume(130, 95)], [0, 80, 95, 100])
  t.same([volume(78, 80), volume(74, 80), volume(91, 95), volume(89, 95)], [80, 0, 95, 80])
  t.same([fillLevel('pool', 84, 0), fillLevel('pool', 90, 85)], [80, 90])
  t.same([volumePercent(gibibyte, '2Gi'), volumePercent(1, '0'), volumePercent(900, '1k')], [50, 0, 90])
})

test('a level is not recorded again before it was left by five percent, also after a higher one', async (t) => {
  const cases: readonly (readonly ['volume' | 'pool', percent: number, before: number, level: number])[] = [
    ['volume', 75, 80, 80],
    ['volume', 94, 100, 95],
    ['volume', 90, 100, 95],
    ['volume', 89, 100, 80],
    ['volume', 74, 100, 0],
    ['pool', 90, 95, 95],
    ['pool', 89, 95, 90],
    ['pool', 84, 95, 85],
    ['pool', 79, 95, 80],
    ['pool', 74, 95, 0],
    ['pool', 95, 80, 95],
    ['pool', 100, 95, 95],
  ]
  for (const [kind, percent, before, level] of cases) {
    t.equal(fillLevel(kind, percent, before), level, `${kind} at ${percent} % after ${before} %`)
  }
})

test('a pool without a size is not full, and parts of a percent do not count', async (t) => {
  const pool = (capacityBytes: number, availableBytes: number) =>
    poolPercent({ id: 'p', capacityBytes, availableBytes })
  t.same([pool(1000, 1000), pool(1000, 101), pool(1000, 100), pool(1000, 0), pool(0, 0)], [0, 89, 90, 100, 0])
})

test('the Event of a volume names its pool, where that is known', async (t) => {
  const text =
    'the volume uses 95 % of the 2Gi of its claim. The size is not enforced: it can fill the disk of its pool'
  const head = { type: 'Warning', reason: 'VolumeFillingUp' }
  t.same(volumeFillEvent(95, '2Gi', undefined), { ...head, message: text })
  t.same(volumeFillEvent(95, '2Gi', 0), { ...head, message: `${text}, which is 0 % full` })
})

test('the Event of a pool names the claims with the largest volumes', async (t) => {
  const pool = { id: 'card', capacityBytes: 1, availableBytes: 0 }
  const evicted = "Pods are evicted when less than 10 % of the machine's disk is free"
  const head = { type: 'Warning', reason: 'PoolFillingUp' }
  t.same(poolFillEvent(pool, 85, []), { ...head, message: `The pool card is 85 % full. ${evicted}` })
  t.match(poolFillEvent({ ...pool, path: '/mnt/card' }, 85, []), {
    message: /^The pool card at \/mnt\/card is 85 % full/,
  })
  const largest = [
    { claim: 'default/db', usedBytes: 12.3 * gibibyte },
    { claim: 'media/films', usedBytes: gibibyte / 2 },
  ]
  t.same(poolFillEvent(pool, 85, largest), {
    ...head,
    message:
      'The pool card is 85 % full. ' +
      `The largest volumes are those of default/db (12.3 GiB), media/films (512.0 MiB). ${evicted}`,
  })
})
