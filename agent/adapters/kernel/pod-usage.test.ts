import { mkdirSync, writeFileSync } from 'node:fs'
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { aContainer } from '../../testing/builders.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { folderUsage } from '../disk/folder-usage.ts'
import { podUsage } from './pod-usage.ts'

const container = ({ attempt = 0, ...more }: Partial<RuntimeContainer> & { attempt?: number } = {}) =>
  aContainer({
    id: '5a'.repeat(32),
    identity: { containerName: 'server', podUID: 'u1', attempt },
    sandboxID: 'b0'.repeat(32),
    pid: 4242,
    ...more,
  })

const sandbox = aContainer({
  id: 'b0'.repeat(32),
  identity: { containerName: '', podUID: 'u1' },
  ip: '172.17.0.2',
  pid: 4200,
})

const tree = 'usage-cgroup-v2-systemd'

function usageOf(
  containers: readonly RuntimeContainer[],
  more: { folder?: string; clock?: ReturnType<typeof fakeClock>; root?: string } = {},
) {
  const { folder = '/nowhere', clock = fakeClock(), root = savedTree(tree) } = more
  let invalidated = 0
  const containerList = { containers: async () => containers, invalidate: () => void invalidated++ }
  const volumes = { dataDirectory: join(folder, 'data'), memoryDirectory: join(folder, 'memory') }
  return { usage: podUsage({ root, containerList, volumes, clock }), invalidated: () => invalidated }
}

async function temporary(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'usage-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

test('ranking learns memory and processes of what runs', async (t) => {
  const { usage } = usageOf([sandbox, container(), container({ id: 'ee', state: 'exited' })])
  t.same(await usage.podUsage(), [
    { uid: 'u1', containers: [{ name: 'server', memoryWorkingSetBytes: 70 * 2 ** 20, pids: 7 }] },
  ])
})

test('a pod has the network of its sandbox, and its own loopback is not counted', async (t) => {
  const own = { ...sandbox, id: '5a'.repeat(32), pid: 4242 }
  const [pod] = await usageOf([own]).usage.podReadings()
  t.equal(pod?.network, undefined, 'this process has no such file')
  const host = await usageOf([{ ...sandbox, ip: undefined }, container()]).usage.podReadings()
  t.equal(host[0]?.network, undefined, 'on the machine’s network')
})

/** A machine with one process in a container, whose group has this memory. */
const machineWith = (id: string, pid: number, more: object = {}) => ({
  proc: { [pid]: { cgroup: `0::/docker/${id}\n`, ...more } },
  sys: { fs: { cgroup: { docker: { [id]: { 'cgroup.procs': '', 'pids.current': '7\n' } } } } },
})

test('the readings of a pod are those of its sandbox and of its containers', async (t) => {
  const devices =
    'Inter-| Receive\n face |bytes\n  eth0: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n'
  const own = { ...sandbox, startedAt: '2026-01-01T00:00:00Z' }
  const [one, other] = [machineWith(own.id, 4200, { net: { dev: devices } }), machineWith('5a'.repeat(32), 4242)]
  const root = testFolder(t, {
    proc: { ...one.proc, ...other.proc },
    sys: { fs: { cgroup: { docker: { ...one.sys.fs.cgroup.docker, ...other.sys.fs.cgroup.docker } } } },
  })
  const main = container({ startedAt: '2026-01-01T00:00:05Z', state: 'paused' })
  const [pod, ...rest] = await usageOf([main, own, container({ id: 'ee', state: 'exited' })], {
    root,
  }).usage.podReadings()
  t.same(rest, [])
  t.match(pod, {
    uid: 'u1',
    namespace: own.identity.podNamespace,
    name: own.identity.podName,
    startedAt: '2026-01-01T00:00:00Z',
    sandbox: { pids: { current: 7 } },
  })
  t.match(pod?.network, [{ name: 'eth0' }])
  t.same(pod?.containers, [
    { id: main.id, name: 'server', image: main.image, startedAt: '2026-01-01T00:00:05Z', pids: { current: 7 } },
  ])
  const [alone] = await usageOf([main], { root }).usage.podReadings()
  t.match(alone, { startedAt: '2026-01-01T00:00:05Z', sandbox: undefined, network: undefined })
  t.same(await usageOf([container({ state: 'exited' })], { root }).usage.podReadings(), [], 'no pod without a process')
})

test('a container has the group of its process, of another process after a restart, and of none without one', async (t) => {
  const id = '5a'.repeat(32)
  const root = testFolder(t, machineWith(id, 4242))
  const containers = [container()]
  const { usage, invalidated } = usageOf(containers, { root })
  const pids = async () => (await usage.podUsage())[0]?.containers[0]?.pids
  t.equal(await pids(), 7)
  writeFileSync(join(root, 'proc/4242/cgroup'), '0::/user.slice\n')
  t.equal(await pids(), 7, 'the place is remembered for the process')
  containers[0] = container({ pid: 4243 })
  mkdirSync(join(root, 'proc/4243'))
  writeFileSync(join(root, 'proc/4243/cgroup'), '0::/user.slice\n')
  t.equal(await pids(), undefined, 'the process ID belongs to another process')
  t.equal(invalidated(), 1)
  containers[0] = container({ pid: undefined })
  t.equal(await pids(), undefined)
  containers[0] = container({ pid: 4242 })
  t.equal(await pids(), undefined, 'what was remembered is dropped with a failure')
})

test('a group without any reading is that of a container that has ended', async (t) => {
  const id = '5a'.repeat(32)
  const root = testFolder(t, {
    proc: { 4242: { cgroup: `0::/docker/${id}\n` } },
    sys: { fs: { cgroup: { docker: { [id]: { 'cgroup.procs': '' } } } } },
  })
  const { usage, invalidated } = usageOf([container()], { root })
  t.same(await usage.podUsage(), [])
  t.equal(invalidated(), 1)
})

test('one that no longer runs, and was not reported as stopped, invalidates the list of containers', async (t) => {
  const { usage, invalidated } = usageOf([container({ id: 'dd'.repeat(32), pid: 4242 })])
  t.same(await usage.podUsage(), [])
  t.equal(invalidated(), 1)
})

test('a folder is counted as the disk sees it', async (t) => {
  const folder = await temporary(t)
  await writeFile(join(folder, 'one'), Buffer.alloc(100_000, 1))
  await link(join(folder, 'one'), join(folder, 'same'))
  await mkdir(join(folder, 'sub'))
  await symlink('/', join(folder, 'sub/everything'))
  const used = await folderUsage(folder)
  t.equal(used?.inodesUsed, 4, 'itself, the file of two names, a folder, a link that is not followed')
  t.ok((used?.usedBytes ?? 0) >= 100_000 && (used?.usedBytes ?? 0) < 200_000, String(used?.usedBytes))
  t.equal(used?.incomplete, undefined)
  t.match(await folderUsage(folder, 2), { incomplete: 'more than 2 entries', inodesUsed: 2 })
  t.equal(await folderUsage(join(folder, 'none')), undefined)
})

test('a pod’s disk: the newest writable layer, all logs, its volumes; walked again only when it is old', async (t) => {
  const folder = await temporary(t)
  const file = async (path: string, bytes: number) => {
    await mkdir(join(folder, path, '..'), { recursive: true })
    await writeFile(join(folder, path), Buffer.alloc(bytes, 1))
  }
  await file('layers/old/big', 1_000_000)
  await file('layers/new/small', 50_000)
  await file('logs/a/x-json.log', 30_000)
  await file('logs/a/x-json.log.1', 30_000)
  await file('logs/a/config.json', 900_000)
  await file('data/pods/u1/volumes/scratch/file', 40_000)
  await file('memory/pods/u1/volumes/config/file', 10)
  const place = (name: string) => join(folder, name)
  const clock = fakeClock()
  const older = container({ id: 'old', state: 'exited', layerPath: place('layers/old') })
  const newer = container({
    attempt: 1,
    layerPath: place('layers/new'),
    logPath: place('logs/a/x-json.log'),
  })
  const { usage } = usageOf([older, newer], { folder, clock })
  const [pod] = await usage.podDiskUsage()
  const server = pod?.containers[0]
  t.ok((server?.rootfs?.usedBytes ?? 0) < 100_000, 'not the layer of the earlier attempt')
  t.equal(server?.logs?.inodesUsed, 2)
  t.ok((server?.logs?.usedBytes ?? 0) >= 60_000)
  t.match(pod?.volumes, [
    { name: 'scratch', inMemory: false, inodesUsed: 2 },
    { name: 'config', inMemory: true },
  ])
  await file('layers/new/more', 500_000)
  await clock.advance(59_999)
  t.same(await usage.podDiskUsage(), [pod], 'still known')
  await clock.advance(1)
  const [again] = await usage.podDiskUsage()
  t.ok((again?.containers[0]?.rootfs?.usedBytes ?? 0) > 500_000)
})
