import { test } from 'tap'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { savedTree } from '../../testing/saved-trees.ts'
import { groupFolders, groupFoldersAt, readGroup } from './cgroup-files.ts'

const id = '5a'.repeat(32)
const found = { id, pid: 4242 }
const trees = ['usage-cgroup-v1', 'usage-cgroup-v2-systemd', 'usage-cgroup-v2-cgroupfs']

test('a container is found and read alike under every kind of control group', async (t) => {
  for (const tree of trees) {
    const folders = groupFolders(savedTree(tree), found)
    const reading = folders && readGroup(folders)
    t.match(
      reading,
      {
        cpu: { periods: 200, throttledPeriods: 20, throttledNanoSeconds: 1_500_000_000 },
        memory: {
          usageBytes: 100 * 2 ** 20,
          workingSetBytes: 70 * 2 ** 20,
          rssBytes: 50 * 2 ** 20,
          cacheBytes: 40 * 2 ** 20,
          swapBytes: 4096,
          pageFaults: 5100,
          majorPageFaults: 12,
          oomKills: 2,
        },
        pids: { current: 7 },
      },
      tree,
    )
    t.equal(Math.floor((reading?.cpu?.usageNanoSeconds ?? 0) / 1000), 12_345_678, tree)
    t.equal(reading?.memory?.limitBytes, tree.endsWith('cgroupfs') ? undefined : 128 * 2 ** 20, tree)
    t.notOk(reading?.pids && 'limit' in reading.pids, 'max means no limit')
  }
})

test('what ranking needs is read without the rest', async (t) => {
  for (const tree of trees) {
    const folders = groupFolders(savedTree(tree), found)
    const reading = folders && readGroup(folders, true)
    t.equal(reading?.cpu, undefined)
    t.equal(reading?.memory?.workingSetBytes, 70 * 2 ** 20)
    t.equal(reading?.pids?.current, 7)
  }
})

test('a process of another user or container is not the container', async (t) => {
  for (const tree of trees) t.equal(groupFolders(savedTree(tree), { id: 'c1'.repeat(32), pid: 4242 }), undefined, tree)
})

test('where the process cannot be asked the usual places are tried', async (t) => {
  t.ok(groupFolders(savedTree('usage-cgroup-v1'), { id, pid: 1 }))
  t.ok(groupFolders(savedTree('usage-cgroup-v2-systemd'), { id, pid: 1 }))
  t.equal(groupFolders(savedTree('usage-cgroup-v2-cgroupfs'), { id, pid: 1 }), undefined, 'below a parent of its own')
})

test('the machine itself is a group too', async (t) => {
  const folders = groupFoldersAt(savedTree('debian-12-cgroup-v1'), '/')
  t.ok((folders && readGroup(folders).memory?.workingSetBytes) ?? 0)
})

test('a group has the readings of the files that exist, and no others', async (t) => {
  const reading = (files: { readonly [file: string]: string }, brief = false) => {
    const root = testFolder(t, { sys: { fs: { cgroup: { 'cgroup.procs': '', ...files } } } })
    return readGroup(groupFoldersAt(root, '/') ?? {}, brief)
  }
  t.same(reading({}), {})
  t.same(reading({ 'cpu.stat': 'usage_usec 7\n' }), { cpu: { usageNanoSeconds: 7_000 } })
  t.same(reading({ 'cpu.stat': 'user_usec 7\n' }), {})
  const limited = 'usage_usec 7\nnr_periods 3\nnr_throttled 2\n'
  t.same(reading({ 'cpu.stat': limited }), { cpu: { usageNanoSeconds: 7_000 } }, 'a limit without its times')
  t.same(reading({ 'cpu.stat': 'usage_usec 7\nnr_periods 3\nthrottled_usec 2\n' }), {
    cpu: { usageNanoSeconds: 7_000 },
  })
  t.same(reading({ 'cpu.stat': 'usage_usec 7\nnr_throttled 3\nthrottled_usec 2\n' }), {
    cpu: { usageNanoSeconds: 7_000 },
  })
  t.same(reading({ 'cpu.stat': `${limited}throttled_usec 5\n` }), {
    cpu: { usageNanoSeconds: 7_000, periods: 3, throttledPeriods: 2, throttledNanoSeconds: 5_000 },
  })
  const bare = { cacheBytes: 0, pageFaults: 0, majorPageFaults: 0 }
  t.same(reading({ 'memory.stat': 'anon 30\n' }), {}, 'memory.stat without inactive_file')
  t.same(reading({ 'memory.current': '30\n' }), {}, 'without memory.stat')
  t.same(reading({ 'memory.stat': 'inactive_file 10\nanon 30\nfile 20\n' }), {
    memory: { ...bare, usageBytes: 50, workingSetBytes: 40, rssBytes: 30, cacheBytes: 20 },
  })
  const memory = { 'memory.stat': 'inactive_file 10\nanon 30\n', 'memory.current': '5\n', 'memory.max': 'max\n' }
  t.same(reading(memory), { memory: { ...bare, usageBytes: 5, workingSetBytes: 0, rssBytes: 30 } })
  const more = { 'memory.swap.current': '1\n', 'memory.max': '64\n', 'memory.events': 'oom 3\noom_kill 2\n' }
  t.match(reading({ ...memory, ...more }).memory, { swapBytes: 1, limitBytes: 64, oomKills: 2 })
  t.same(reading({ ...memory, ...more }, true), reading(memory), 'a brief reading leaves them out')
  t.same(reading({ 'pids.current': '4\n', 'pids.max': 'max\n' }), { pids: { current: 4 } })
  t.same(reading({ 'pids.current': '4\n', 'pids.max': '9\n' }), { pids: { current: 4, limit: 9 } })
  t.same(reading({ 'pids.max': '9\n' }), {})
})

test('a group of version 1 has the readings of the controllers that are mounted', async (t) => {
  const reading = (controllers: { readonly [controller: string]: { readonly [file: string]: string } }) => {
    const root = testFolder(t, { sys: { fs: { cgroup: controllers } } })
    const folders = groupFoldersAt(root, '/')
    return folders && readGroup(folders)
  }
  t.equal(reading({ cpu: { 'cpu.stat': 'nr_periods 0\n' } }), undefined, 'a group needs more than limits')
  const stat = (text: string) => ({ memory: { 'memory.usage_in_bytes': '100\n', 'memory.stat': text } })
  const rest = { rssBytes: 0, cacheBytes: 0, pageFaults: 0, majorPageFaults: 0 }
  t.same(reading(stat('total_rss 4\n')), {}, 'without the inactive files')
  t.same(reading(stat('total_inactive_file 30\n')), { memory: { usageBytes: 100, workingSetBytes: 70, ...rest } })
  const limit = (bytes: string) => reading(stat(`total_inactive_file 30\nhierarchical_memory_limit ${bytes}\n`))?.memory
  t.equal(limit('64')?.limitBytes, 64)
  for (const unlimited of ['4611686018427387904', '9223372036854771712'])
    t.notOk('limitBytes' in (limit(unlimited) ?? {}))
  t.same(reading({ cpuacct: { 'cpuacct.usage': '9\n' } }), { cpu: { usageNanoSeconds: 9 } })
  t.same(reading({ pids: { 'pids.current': '4\n' } }), { pids: { current: 4 } })
})

test('of the entries of a process those count whose path names the container', async (t) => {
  const root = testFolder(t, {
    proc: { 4242: { cgroup: `\n3:pids:/other\n2:memory:/docker/${id}/init\n0::/docker/${id}\n` } },
    sys: {
      fs: {
        cgroup: {
          memory: { docker: { [id]: { 'memory.usage_in_bytes': '1\n' } } },
          pids: { other: { 'pids.current': '1\n' } },
          docker: { [id]: { 'cgroup.procs': '' } },
        },
      },
    },
  })
  const all = `${root}/sys/fs/cgroup`
  t.same(groupFolders(root, found), { memory: `${all}/memory/docker/${id}`, second: `${all}/docker/${id}` })
})
