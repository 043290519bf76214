import { test } from 'tap'
import { allocatableOf, asQuantities, capacityOf, type MachineCapacity, missingCapacity } from './capacity.ts'

const mib = 2 ** 20
const pi4: MachineCapacity = {
  cpus: 4,
  memoryBytes: 3884392 * 1024,
  ephemeralStorageBytes: 30_000 * mib,
  hugePageBytes: {},
}

test('capacity is reported in the quantities of Kubernetes', async (t) => {
  t.same(asQuantities(capacityOf(pi4, { maxPods: 110, podsPerCore: 0 })), {
    cpu: '4',
    memory: '3884392Ki',
    'ephemeral-storage': '30720000Ki',
    pods: '110',
  })
})

test('pods per core can only lower the number of pods', async (t) => {
  t.equal(capacityOf(pi4, { maxPods: 110, podsPerCore: 10 })['pods'], 40)
  t.equal(capacityOf(pi4, { maxPods: 30, podsPerCore: 10 })['pods'], 30)
})

test('allocatable excludes reservations and the part below the thresholds', async (t) => {
  const capacity = capacityOf(pi4, { maxPods: 110, podsPerCore: 0 })
  const allocatable = allocatableOf(capacity, [
    { cpu: 0.1, memory: 64 * mib },
    { cpu: 0.1, memory: 128 * mib, 'nvidia.com/gpu': 1 },
    { memory: 100 * mib, 'ephemeral-storage': 3_000 * mib },
  ])
  t.same(asQuantities(allocatable), {
    cpu: '3800m',
    memory: `${3884392 - 292 * 1024}Ki`,
    'ephemeral-storage': `${27_000 * 1024}Ki`,
    pods: '110',
  })
})

test('huge pages are taken from memory and nothing falls below zero', async (t) => {
  const capacity = capacityOf({ ...pi4, hugePageBytes: { 'hugepages-2Mi': 8 * mib } }, { maxPods: 110, podsPerCore: 0 })
  t.same(allocatableOf(capacity, []), { ...capacity, memory: pi4.memoryBytes - 8 * mib })
  t.equal(asQuantities(capacity)['hugepages-2Mi'], '8Mi')
  t.equal(allocatableOf(capacity, [{ memory: 2 ** 40 }])['memory'], 0)
})

test('an amount that is not a multiple of a unit, or not an amount, is written without the unit', async (t) => {
  t.same(
    asQuantities({
      memory: 0,
      'ephemeral-storage': 1000,
      'hugepages-64Ki': 192 * 1024,
      'hugepages-1Gi': 0,
      pods: 1024,
    }),
    { memory: '0', 'ephemeral-storage': '1000', 'hugepages-64Ki': '192Ki', 'hugepages-1Gi': '0', pods: '1024' },
  )
})

test('a machine that could not be read lacks resources it needs to be Ready', async (t) => {
  t.same(missingCapacity(capacityOf(pi4, { maxPods: 110, podsPerCore: 0 })), [])
  t.same(missingCapacity({ pods: 110, cpu: 4 }), ['memory', 'ephemeral-storage'])
})
