import { test } from 'tap'
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
    t.notOk(reading?.pids && 'limit' in reading.pids, 'max is no limit')
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
