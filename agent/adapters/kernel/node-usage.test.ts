import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { hostSignals } from './host-signals.ts'
import { nodeUsage } from './node-usage.ts'

const filesystemAt = async () => undefined

test('the usage of memory and tasks is what pods are evicted by', async (t) => {
  const machines = readdirSync(savedTree('')).map(savedTree).filter(isWhole)
  t.ok(machines.length > 2)
  for (const root of machines) {
    const machine = { root, dataDirectory: '/', imageDirectory: () => undefined }
    const { observed } = await hostSignals(machine).observe()
    const { memory, pids } = await nodeUsage({ ...machine, filesystemAt }).nodeReading()
    const seen = (wanted: string) => observed.find(({ signal }) => signal === wanted)?.available
    t.equal(memory?.availableBytes, seen('memory.available'), root)
    t.equal(pids && pids.limit - pids.current, seen('pid.available'), root)
  }
})

const meminfo = [
  'MemTotal:       1000 kB',
  'MemFree:         100 kB',
  'MemAvailable:    400 kB',
  'Cached:          250 kB',
]

test('without a memory controller the usage is what the kernel estimates', async (t) => {
  const read = (...more: readonly string[]) => readingOf(t, { proc: { meminfo: [...meminfo, ...more, ''].join('\n') } })
  const memory = {
    availableBytes: 400 * 1024,
    usageBytes: 900 * 1024,
    workingSetBytes: 600 * 1024,
    cacheBytes: 250 * 1024,
    pageFaults: 0,
    majorPageFaults: 0,
  }
  t.same((await read('AnonPages:       300 kB')).memory, { ...memory, rssBytes: 300 * 1024 })
  t.same((await read()).memory, { ...memory, rssBytes: 600 * 1024 }, 'without AnonPages all that is used')
  t.same((await read('NotAnonPages:    300 kB')).memory, { ...memory, rssBytes: 600 * 1024 })
})

test('the usage of swap is shown where the kernel has swap', async (t) => {
  const read = (...more: readonly string[]) => readingOf(t, { proc: { meminfo: [...meminfo, ...more, ''].join('\n') } })
  t.same((await read('SwapTotal:       200 kB', 'SwapFree:         50 kB')).swap, {
    availableBytes: 50 * 1024,
    usedBytes: 150 * 1024,
  })
  t.notOk('swap' in (await read()))
  t.notOk('swap' in (await read('NoSwapTotal:     200 kB')))
})

test('without a CPU controller the usage is the sum of all but the idle times', async (t) => {
  const stat = 'cpu  1 20 300 7 70 4000 50000 600000 8 9\ncpu0 1 1 1 1 1 1 1 1 1 1\nbtime 1700000000\n'
  const { cpu, bootedMs } = await readingOf(t, { proc: { stat } })
  t.same(cpu, { usageNanoSeconds: 654_321 * 1e7 })
  t.equal(bootedMs, 1_700_000_000_000)
  t.same(
    (await readingOf(t, { proc: { stat: 'cpu  1\n' } })).cpu,
    { usageNanoSeconds: 1e7 },
    'a kernel of fewer columns',
  )
})

test('a machine without the files has the usage of the agent, and nothing that is undefined as a reading', async (t) => {
  const { agent, network, defaultInterface, bootedMs, ...rest } = await readingOf(t, {})
  t.same(rest, {})
  t.same([network, defaultInterface, bootedMs], [[], undefined, undefined])
  t.ok(agent.cpuNanoSeconds >= 1e6, 'more than a millisecond of processor time, in nanoseconds')
  t.ok(agent.rssBytes > 2 ** 22)
})

test('the default interface has a route whose destination and mask are zero', async (t) => {
  const row = (name: string, destination: string, mask: string) =>
    [name, destination, '0102000A', '0003', '0', '0', '0', mask, '0', '0', '0'].join('\t')
  const route = (...rows: readonly string[]) => ({
    proc: { net: { route: ['Iface\tDestination', ...rows].join('\n') } },
  })
  const half = row('tun0', '00000000', '00000080')
  const host = row('eth1', '0102000A', '00000000')
  t.equal((await readingOf(t, route(half, host, row('wlan0', '00000000', '00000000')))).defaultInterface, 'wlan0')
  t.equal((await readingOf(t, route(half, host))).defaultInterface, undefined)
})

test('the disk of images is read once the engine has reported it', async (t) => {
  const sizes = { availableBytes: 1, capacityBytes: 2, usedBytes: 1, inodesFree: 1, inodes: 2 }
  let images: string | undefined
  const asked: string[] = []
  const { nodeReading } = nodeUsage({
    root: testFolder(t),
    dataDirectory: '/data',
    imageDirectory: () => images,
    filesystemAt: async (path) => {
      asked.push(path)
      return sizes
    },
  })
  const before = await nodeReading()
  t.same([before.fs, 'imageFs' in before, asked], [sizes, false, ['/data']])
  images = '/var/lib/docker'
  t.same((await nodeReading()).imageFs, sizes)
  t.same(asked, ['/data', '/data', '/var/lib/docker'])
})

function readingOf(t: Test, files: Parameters<Test['testdir']>[0]) {
  const needs = { dataDirectory: '/', imageDirectory: () => undefined, filesystemAt }
  return nodeUsage({ root: testFolder(t, files), ...needs }).nodeReading()
}

/** False for recordings of machines with only a few lines. */
function isWhole(root: string): boolean {
  const text = (path: string) => {
    try {
      return readFileSync(join(root, path), 'utf8')
    } catch {
      return ''
    }
  }
  const hasGroup = ['', 'memory/'].some((folder) => text(`sys/fs/cgroup/${folder}memory.stat`) !== '')
  return text('proc/loadavg') !== '' && (hasGroup || /^Cached:/m.test(text('proc/meminfo')))
}
