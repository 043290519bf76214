import { test } from 'tap'
import type { Observation } from './observations.ts'
import {
  defaultEvictionHard,
  parseReclaims,
  parseThresholds,
  pressureOf,
  reservedBelow,
  resourceOf,
  thresholdsMet,
  writtenAmount,
} from './thresholds.ts'

const mib = 2 ** 20
const memory = (available: number): Observation => ({ signal: 'memory.available', available, capacity: 512 * mib })

test("Kubernetes' default thresholds are understood", async (t) => {
  const { thresholds, problems } = parseThresholds(defaultEvictionHard)
  t.same(problems, [])
  t.same(thresholds[0], { signal: 'memory.available', value: { quantity: 100 * mib, family: 'binary' } })
  t.same(thresholds[3], { signal: 'imagefs.available', value: { percentage: 15 } })
  t.equal(thresholds.length, 5)
})

test('a threshold is met when its value is strictly more than what is available', async (t) => {
  const { thresholds } = parseThresholds({ 'memory.available': '100Mi' })
  t.equal(thresholdsMet(thresholds, [memory(100 * mib)]).length, 0)
  t.equal(thresholdsMet(thresholds, [memory(100 * mib - 1)]).length, 1)
})

test('a percentage is of the capacity', async (t) => {
  const { thresholds } = parseThresholds({ 'memory.available': '12.5%' })
  t.equal(thresholdsMet(thresholds, [memory(64 * mib)]).length, 0)
  t.equal(thresholdsMet(thresholds, [memory(64 * mib - 1)]).length, 1)
})

test('a signal that could not be read is never met', async (t) => {
  t.same(thresholdsMet(parseThresholds(defaultEvictionHard).thresholds, []), [])
})

test('a filesystem without inodes is not short of them', async (t) => {
  const btrfs: Observation = { signal: 'nodefs.inodesFree', available: 0, capacity: 0 }
  t.same(thresholdsMet(parseThresholds(defaultEvictionHard).thresholds, [btrfs]), [])
})

test('0% and 100% switch a threshold off', async (t) => {
  const { thresholds, problems } = parseThresholds({ 'nodefs.available': '0%', 'imagefs.available': '100%' })
  t.same([thresholds, problems], [[], []])
})

test('all mistakes are reported at once', async (t) => {
  const { problems } = parseThresholds({
    'memory.avialable': '100Mi',
    'memory.available': '0',
    'nodefs.available': '-5%',
    'nodefs.inodesFree': '101%',
    'imagefs.available': 'ten',
    'pid.available': '%',
  })
  t.same(
    problems.map(({ signal }) => signal),
    [
      'memory.avialable',
      'memory.available',
      'nodefs.available',
      'nodefs.inodesFree',
      'imagefs.available',
      'pid.available',
    ],
  )
})

test('memory, disks and processes each have their pressure', async (t) => {
  t.equal(pressureOf('memory.available'), 'MemoryPressure')
  t.equal(pressureOf('imagefs.inodesFree'), 'DiskPressure')
  t.equal(pressureOf('pid.available'), 'PIDPressure')
})

test('what lies below the thresholds of memory and disk is not allocatable', async (t) => {
  const { thresholds } = parseThresholds(defaultEvictionHard)
  const capacity = { memoryBytes: 512 * mib, ephemeralStorageBytes: 1000 * mib }
  t.same(reservedBelow(thresholds, capacity), { memory: 100 * mib, 'ephemeral-storage': 100 * mib })
  t.same(reservedBelow([], capacity), { memory: 0, 'ephemeral-storage': 0 })
})

test('a threshold with a minimum reclaim is over only when so much more is left', async (t) => {
  const [threshold] = parseThresholds({ 'memory.available': '100Mi' }).thresholds
  const minimumReclaim = parseReclaims({ 'memory.available': '50Mi' }).reclaims.get('memory.available')
  if (threshold === undefined || minimumReclaim === undefined) return t.fail('must be understood')
  const both = [{ ...threshold, minimumReclaim }]
  t.equal(thresholdsMet(both, [memory(120 * mib)]).length, 0, 'not met again')
  t.equal(thresholdsMet(both, [memory(150 * mib - 1)], true).length, 1, 'not over yet')
  t.equal(thresholdsMet(both, [memory(150 * mib)], true).length, 0)
})

test('nothing is a good answer to how much must be reclaimed, less is not', async (t) => {
  t.same(parseReclaims({ 'nodefs.available': '0', 'imagefs.available': '0%' }).problems, [])
  t.same(
    parseReclaims({ 'nodefs.available': '-1Mi', 'imagefs.available': '101%', disk: '1' }).problems.map(
      (one) => one.signal,
    ),
    ['nodefs.available', 'imagefs.available', 'disk'],
  )
})

test('an amount is written as Kubernetes writes it', async (t) => {
  t.equal(writtenAmount({ quantity: 512 * mib, family: 'binary' }, 0), '512Mi')
  t.equal(writtenAmount({ quantity: 1_000_000_000, family: 'decimal' }, 0), '1G')
  t.equal(writtenAmount({ percentage: 10 }, 1000 * mib), '100Mi')
  t.equal(writtenAmount({ percentage: 10 }, 12_345), '1234')
})

test('what runs short has a name in messages', async (t) => {
  t.equal(resourceOf('imagefs.available'), 'ephemeral-storage')
  t.equal(resourceOf('nodefs.inodesFree'), 'inodes')
  t.equal(resourceOf('pid.available'), 'pids')
  t.equal(resourceOf('memory.available'), 'memory')
})

test('a percentage is a plain number and nothing else', async (t) => {
  const value = (text: string) => parseThresholds({ 'nodefs.available': text }).thresholds[0]?.value
  t.same(value('12.25%'), { percentage: 12.25 })
  for (const wrong of ['x5%', '5%%', '5 %', '.5%', '+5%', '1e1%']) t.equal(value(wrong), undefined, wrong)
})

test('a threshold without a minimum reclaim is over when its value is available again', async (t) => {
  const { thresholds } = parseThresholds({ 'memory.available': '100Mi' })
  t.equal(thresholdsMet(thresholds, [memory(100 * mib - 1)], true).length, 1)
  t.equal(thresholdsMet(thresholds, [memory(100 * mib)], true).length, 0)
})
