import { test } from 'tap'
import { savedTree } from '../../testing/saved-trees.ts'
import { groupFolders } from './cgroup-files.ts'
import { deviceNames, readCpuLimit, readIo } from './cgroup-io.ts'

function foldersIn(tree: string) {
  const root = savedTree(tree)
  return { names: deviceNames(root), folders: groupFolders(root, { id: '5a'.repeat(32), pid: 4242 }) ?? {} }
}

const onCard = { device: '/dev/mmcblk0', readBytes: 4096000, writtenBytes: 8192, reads: 1000, writes: 2 }

test('version 2 counts I/O by device; a device that is gone keeps its number', async (t) => {
  const { names, folders } = foldersIn('usage-cgroup-v2-systemd')
  t.same(readIo(folders, names), [
    onCard,
    { device: '/dev/259:0', readBytes: 512, writtenBytes: 0, reads: 1, writes: 0 },
  ])
})

test('version 1 counts I/O by device', async (t) => {
  const { names, folders } = foldersIn('usage-cgroup-v1')
  t.same(readIo(folders, names), [onCard])
})

test('a CPU limit is a quota in a period, a request is shares', async (t) => {
  t.same(readCpuLimit(foldersIn('usage-cgroup-v2-systemd').folders), {
    shares: 998,
    periodMicros: 100_000,
    quotaMicros: 50_000,
  })
})

test('without a CPU limit there is no quota', async (t) => {
  t.same(readCpuLimit(foldersIn('usage-cgroup-v1').folders), { shares: 1024, periodMicros: 100_000 })
})

test('a group without these controllers has neither', async (t) => {
  const { names, folders } = foldersIn('usage-cgroup-v2-cgroupfs')
  t.same(readIo(folders, names), [])
  t.equal(readCpuLimit(folders), undefined)
  t.same(readIo({}, names), [])
  t.equal(readCpuLimit({}), undefined)
})
