import { test } from 'tap'
import type { Observations, Signal } from '../../eviction/observations.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { type FilesystemStats, hostSignals } from './host-signals.ts'

const kib = 1024
const card: FilesystemStats = { bsize: 4096, blocks: 1_000_000, bavail: 250_000, files: 500_000, ffree: 400_000 }

async function observe(tree: string, more: Partial<Parameters<typeof hostSignals>[0]> = {}): Promise<Observations> {
  const source = hostSignals({
    root: savedTree(tree),
    dataDirectory: '/data',
    imageDirectory: () => '/images',
    statfs: async () => card,
    deviceOf: async (path) => (path === '/data' ? 1 : 2),
    ...more,
  })
  return source.observe()
}

function percents({ stalls }: Observations) {
  return Object.fromEntries(stalls.map(({ signal, percent }) => [signal, percent]))
}

function of(signal: Signal, { observed }: Observations) {
  return observed.find((one) => one.signal === signal)
}

test('with cgroup v1 the working set is what the root cgroup uses without its inactive file pages', async (t) => {
  const memory = of('memory.available', await observe('debian-12-cgroup-v1'))
  const capacity = 24684092 * kib
  t.same(memory, { signal: 'memory.available', available: capacity - (461176832 - 136286208), capacity })
})

test('the root of cgroup v2 has no usage of its own, so it is summed', async (t) => {
  const memory = of('memory.available', await observe('pi-4-cgroup-v2'))
  const capacity = 3884392 * kib
  const workingSet = 614400000 + 2457600000 - 1638400000
  t.same(memory, { signal: 'memory.available', available: capacity - workingSet, capacity })
})

test('without a memory cgroup the kernel is asked what is available', async (t) => {
  const memory = of('memory.available', await observe('pi-os-without-memory-cgroup'))
  t.same(memory, { signal: 'memory.available', available: 221080 * kib, capacity: 434948 * kib })
})

test('tasks are counted against the smaller of the two limits of the kernel', async (t) => {
  t.same(of('pid.available', await observe('pi-4-cgroup-v2')), {
    signal: 'pid.available',
    available: 27531 - 211,
    capacity: 27531,
  })
  t.equal(of('pid.available', await observe('debian-12-cgroup-v1'))?.capacity, 32768)
})

test('a machine that is a container has what its limits leave it', async (t) => {
  const observations = await observe('container-with-limits')
  const workingSet = 805306368 - 201326592
  t.same(of('memory.available', observations), {
    signal: 'memory.available',
    available: 2 ** 30 - workingSet,
    capacity: 2 ** 30,
  })
  t.same(of('pid.available', observations), { signal: 'pid.available', available: 312, capacity: 512 })
  t.same(percents(observations), { 'memory.some': 9, 'memory.full': 8 })
})

test('where two versions of cgroups stand side by side the one with the memory is asked', async (t) => {
  const observations = await observe('mini-pc-hybrid')
  const capacity = 16220816 * kib
  t.same(of('memory.available', observations), {
    signal: 'memory.available',
    available: capacity - (6442450944 - 3221225472),
    capacity,
  })
  t.equal(of('pid.available', observations)?.capacity, 32768)
  t.match(percents(observations), { 'io.some': 2.13, 'io.full': 1.77 })
})

test('stalls are reported where the kernel reports them', async (t) => {
  t.same(percents(await observe('pi-4-cgroup-v2')), {
    'memory.some': 4.5,
    'memory.full': 2.25,
    'io.some': 31.07,
    'io.full': 28.66,
    'cpu.some': 12,
  })
  const without = await observe('pi-5-without-stalls')
  t.same([without.stalls, without.unread], [[], []])
  t.equal(of('memory.available', without)?.available, 8244624 * kib - (801112064 + 1711276032 - 1207959552))
})

test('images on the disk of our data are asked for once, elsewhere they are apart', async (t) => {
  const asked: string[] = []
  const on = (device: (path: string) => number) =>
    observe('pi-4-cgroup-v2', {
      deviceOf: async (path) => device(path),
      statfs: async (path) => {
        asked.push(path)
        return card
      },
    })
  const together = await on(() => 1)
  t.equal(together.imagesApart, false)
  t.ok(of('imagefs.available', together))
  t.same(asked.splice(0), ['/data'])
  t.equal((await on((path) => path.length)).imagesApart, true)
  t.same(asked.toSorted(), ['/data', '/images'])
})

test('before it is known where images are, they are neither apart nor together', async (t) => {
  const failing = (code: string) =>
    observe('pi-4-cgroup-v2', {
      deviceOf: async (path) => {
        if (path === '/images') throw Object.assign(new Error(code), { code })
        return 1
      },
    })
  t.equal((await observe('pi-4-cgroup-v2', { imageDirectory: () => undefined })).imagesApart, undefined)
  t.equal((await failing('EIO')).imagesApart, undefined, 'it may answer later')
  t.equal((await failing('ENOENT')).imagesApart, true, 'a directory that only Docker sees')
})

test('disks are reported in bytes and in inodes', async (t) => {
  const observations = await observe('pi-4-cgroup-v2')
  t.same(of('nodefs.available', observations), {
    signal: 'nodefs.available',
    available: 250_000 * 4096,
    capacity: 1_000_000 * 4096,
  })
  t.same(of('imagefs.inodesFree', observations), {
    signal: 'imagefs.inodesFree',
    available: 400_000,
    capacity: 500_000,
  })
  t.same(observations.unread, [])
})

test('as long as the engine has not reported where its images are, they have no reading', async (t) => {
  const observations = await observe('pi-4-cgroup-v2', { imageDirectory: () => undefined })
  t.equal(of('imagefs.available', observations), undefined)
  t.same(observations.unread, [])
})

test('a disk that cannot be read hides no other signal', async (t) => {
  const observations = await observe('pi-4-cgroup-v2', {
    statfs: async (path) => {
      if (path === '/data') throw new Error('EIO: i/o error, statfs')
      return card
    },
  })
  t.same(
    observations.unread.map(({ signal, because }) => [signal, because]),
    [
      ['nodefs.available', 'EIO: i/o error, statfs'],
      ['nodefs.inodesFree', 'EIO: i/o error, statfs'],
    ],
  )
  t.ok(of('memory.available', observations))
  t.ok(of('imagefs.available', observations))
})

test('a disk that hangs is asked once, not again and again', async (t) => {
  let asked = 0
  let answer: (stats: FilesystemStats) => void = () => undefined
  const source = hostSignals({
    root: savedTree('pi-4-cgroup-v2'),
    dataDirectory: '/data',
    imageDirectory: () => undefined,
    statfs: () => {
      asked++
      return new Promise((resolve) => {
        answer = resolve
      })
    },
  })
  const passes = [source.observe(), source.observe()]
  answer(card)
  t.equal((await Promise.all(passes)).flatMap((pass) => pass.unread).length, 0)
  t.equal(asked, 1)
})

test('this very machine can be read', async (t) => {
  const observations = await hostSignals({
    root: '/',
    dataDirectory: '/',
    imageDirectory: () => undefined,
  }).observe()
  t.same(observations.unread, [])
  for (const { signal, available, capacity } of observations.observed) {
    t.ok(available >= 0 && available <= capacity, signal)
  }
})

test('one pass costs less than a millisecond of processor', async (t) => {
  const source = hostSignals({ root: '/', dataDirectory: '/', imageDirectory: () => '/' })
  const passes = 50
  const costs: number[] = []
  for (let round = 0; round < 8; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < passes; i++) await source.observe()
    const { user, system } = process.cpuUsage(before)
    costs.push((user + system) / 1000 / passes)
  }
  const least = Math.min(...costs) // Beside other programs the same work takes several times as long.
  t.ok(least < 1, `${least} ms a pass`)
})
