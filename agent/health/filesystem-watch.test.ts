import { test } from 'tap'
import {
  afterKernelLine,
  afterMounts,
  afterProbe,
  type FilesystemHistory,
  filesystemWatch,
  isProbeDue,
  type MountReading,
  type MountsReading,
  noHistory,
  statesOf,
} from './filesystem-watch.ts'
import type { KernelLine } from './kernel-log.ts'

const card: MountReading = { path: '/', source: '/dev/mmcblk0p2', device: '179:2', isReadOnly: false, errors: 0 }
const usb: MountReading = { path: '/data', source: '/dev/sda1', device: '8:1', isReadOnly: false, errors: undefined }
const readOnlyFstab = 'PARTUUID=4f1c-02 / ext4 defaults,ro 0 1\n'
const mounts = (more: Partial<MountsReading> = {}): MountsReading => ({
  root: card,
  data: usb,
  dataPath: '/data/agent',
  fstab: readOnlyFstab,
  ...more,
})
const suspect: FilesystemHistory = { ...noHistory, isSuspect: true }

test('recent lines of the kernel about the disk are signs of trouble', async (t) => {
  const line = (text: string, ageMs: number) => afterKernelLine(noHistory, { text, ageMs }).isSuspect
  t.equal(line('I/O error, dev mmcblk0, sector 2048', 119_999), true)
  t.equal(line('I/O error, dev mmcblk0, sector 2048', 120_000), false)
  t.equal(line('usb 1-1: new device', 0), false)
})

test('a counter of errors that rises is a sign of trouble, its first value is not', async (t) => {
  const withErrors = (errors: number) => mounts({ root: { ...card, errors } })
  const first = afterMounts(noHistory, withErrors(3))
  t.equal(first.isSuspect, false)
  t.equal(afterMounts(first, withErrors(3)).isSuspect, false)
  const rose = afterMounts(first, withErrors(4))
  t.equal(rose.isSuspect, true)
  t.equal(afterMounts(rose, withErrors(4)).isSuspect, true, 'until a write has succeeded')
})

test('a write is tried while there are signs of trouble, every half minute, and not on what is read-only', async (t) => {
  t.equal(isProbeDue(noHistory, mounts(), 0), false)
  t.equal(isProbeDue(suspect, mounts(), 0), true)
  t.equal(isProbeDue(suspect, mounts({ data: { ...usb, isReadOnly: true } }), 0), false)
  t.equal(isProbeDue(suspect, mounts({ data: undefined }), 0), false)
  const failed = afterProbe(suspect, 1_000, 'EIO: i/o error')
  t.match(failed, { isSuspect: true, probeFailure: 'EIO: i/o error' })
  t.equal(isProbeDue(failed, mounts(), 30_999), false)
  t.equal(isProbeDue(failed, mounts(), 31_000), true)
  t.match(afterProbe(failed, 31_000, undefined), { isSuspect: false, probeFailure: undefined })
})

test('a failed write is not reported once the filesystem is read-only', async (t) => {
  const failed = afterProbe(suspect, 0, 'EIO: i/o error')
  t.equal(afterMounts(failed, mounts()).probeFailure, 'EIO: i/o error')
  t.equal(afterMounts(failed, mounts({ data: { ...usb, isReadOnly: true } })).probeFailure, undefined)
})

test('a root is read-only by design where it is configured so, was never writable and counted no error', async (t) => {
  const root = { ...card, isReadOnly: true }
  const isMeantSo = (history: FilesystemHistory, more: Partial<MountsReading>) =>
    statesOf(history, mounts({ root, ...more }), undefined)[0]?.isMeantSo
  t.equal(isMeantSo(noHistory, {}), true)
  t.equal(isMeantSo(noHistory, { fstab: '# none\n' }), true)
  t.equal(isMeantSo(noHistory, { fstab: 'PARTUUID=1 / ext4 defaults 0 1\n' }), false)
  t.equal(isMeantSo(noHistory, { fstab: '#PARTUUID=1 / ext4 ro 0 1\nPARTUUID=1 / ext4 rw 0 1\n' }), false)
  t.equal(isMeantSo(noHistory, { root: { ...root, errors: 1 } }), false)
  t.equal(isMeantSo(afterMounts(noHistory, mounts()), {}), false)
  t.equal(isMeantSo(noHistory, { data: root }), false, 'the data directory is on it')
})

test('a data directory on the root is shown with the root, and its failure too', async (t) => {
  t.match(statesOf(noHistory, mounts({ data: card }), 'EIO'), [{ role: 'root', path: '/', failure: 'EIO' }])
  t.match(statesOf(noHistory, mounts(), 'EIO'), [
    { role: 'root', failure: undefined },
    { role: 'data directory', path: '/data/agent', device: '/dev/sda1', failure: 'EIO' },
  ])
  t.same(statesOf(noHistory, mounts({ root: undefined, data: undefined }), undefined), [])
})

test('counters are kept by device; a filesystem without one is never a sign of trouble', async (t) => {
  const first = afterMounts(noHistory, mounts({ root: { ...card, errors: 2 } }))
  t.same([...first.errors], [['179:2', 2]])
  const moved = { ...usb, errors: 5 }
  t.equal(afterMounts(first, mounts({ root: undefined, data: moved })).isSuspect, false, 'another device')
  t.equal(afterMounts(first, mounts({ root: { ...card, errors: undefined } })).isSuspect, false)
  const second = afterMounts(first, mounts({ root: undefined, data: moved }))
  t.same(Object.fromEntries(second.errors), { '179:2': 2, '8:1': 5 }, 'also of what is not mounted now')
  t.equal(afterMounts(second, mounts({ root: undefined, data: { ...moved, errors: 6 } })).isSuspect, true)
})

test('a mount point that was writable once stays known as such', async (t) => {
  const readOnly = (mount: MountReading) => ({ ...mount, isReadOnly: true })
  const first = afterMounts(noHistory, mounts({ root: readOnly(card) }))
  t.same([...first.wasWritable], ['/data'])
  const second = afterMounts(first, mounts({ data: readOnly(usb) }))
  t.same([...second.wasWritable].toSorted(), ['/', '/data'])
})

test('without a mount of the data directory no failed write is reported', async (t) => {
  const failed = afterProbe(suspect, 0, 'EIO: i/o error')
  t.equal(afterMounts(failed, mounts({ data: undefined })).probeFailure, undefined)
})

test('the line of the root in fstab is found by its mount point, and read-only is an option of its own', async (t) => {
  const cases = [
    { fstab: 'proc /proc proc defaults 0 0\nPARTUUID=1 / ext4 ro 0 1\n', isMeantSo: true },
    { fstab: 'PARTUUID=1\t/\text4\tnoatime,ro,errors=continue\t0\t1\n', isMeantSo: true },
    { fstab: 'PARTUUID=1 / ext4 errors=remount-ro 0 1\n', isMeantSo: false },
    { fstab: 'PARTUUID=1 / ext4\n', isMeantSo: false },
    { fstab: 'PARTUUID=2 /boot vfat ro 0 2\nPARTUUID=1 / ext4 rw 0 1\n', isMeantSo: false },
    { fstab: 'PARTUUID=1 /boot vfat rw 0 2\n', isMeantSo: true },
    { fstab: '  # PARTUUID=1 / ext4 rw 0 1\n', isMeantSo: true },
    { fstab: '', isMeantSo: true },
  ]
  for (const { fstab, isMeantSo } of cases) {
    const [root] = statesOf(noHistory, mounts({ root: { ...card, isReadOnly: true }, fstab }), undefined)
    t.equal(root?.isMeantSo, isMeantSo, JSON.stringify(fstab))
  }
})

test('each filesystem is shown with its device, state and counter', async (t) => {
  const data = { ...usb, isReadOnly: true, errors: 4 }
  t.same(statesOf(noHistory, mounts({ data }), undefined), [
    {
      role: 'root',
      path: '/',
      device: '/dev/mmcblk0p2',
      isReadOnly: false,
      errors: 0,
      isMeantSo: true,
      failure: undefined,
    },
    {
      role: 'data directory',
      path: '/data/agent',
      device: '/dev/sda1',
      isReadOnly: true,
      errors: 4,
      isMeantSo: false,
      failure: undefined,
    },
  ])
  t.same(
    statesOf(noHistory, mounts({ root: undefined }), 'EIO').map(({ role, failure }) => [role, failure]),
    [['data directory', 'EIO']],
  )
})

type Disk = { queryFailure: string | undefined; writeFailure: string | undefined; writes: number }

/** A disk whose answers a test sets; counts the writes. */
function watched() {
  const disk: Disk = { queryFailure: undefined, writeFailure: undefined, writes: 0 }
  const listeners: ((line: KernelLine) => void)[] = []
  let nowMs = 0
  const look = filesystemWatch({
    access: {
      mounts: async () => mounts(),
      query: async () => disk.queryFailure,
      writeProbe: async () => {
        disk.writes++
        return disk.writeFailure
      },
    },
    kernel: { subscribe: (listener) => void listeners.push(listener) },
    clock: { monotonicMs: () => nowMs },
  })
  return {
    disk,
    pass: (ms: number) => {
      nowMs += ms
    },
    ioError: () => {
      for (const listener of listeners) listener({ text: 'I/O error, dev sda1, sector 2048', ageMs: 0 })
    },
    failure: async () => (await look()).find(({ role }) => role === 'data directory')?.failure,
  }
}

test('a machine without signs of trouble writes nothing; with them it writes until that succeeds', async (t) => {
  const { disk, pass, ioError, failure } = watched()
  t.equal(await failure(), undefined)
  t.equal(disk.writes, 0)
  ioError()
  disk.writeFailure = 'EIO: i/o error'
  t.equal(await failure(), 'EIO: i/o error')
  pass(29_999)
  t.equal(await failure(), 'EIO: i/o error', 'still reported between two attempts')
  t.equal(disk.writes, 1)
  disk.writeFailure = undefined
  pass(1)
  t.equal(await failure(), undefined)
  pass(60_000)
  t.equal(await failure(), undefined)
  t.equal(disk.writes, 2, 'no write after one that succeeded')
})

test('a filesystem that cannot be queried is reported before a write that failed', async (t) => {
  const { disk, ioError, failure } = watched()
  disk.queryFailure = 'The disk did not answer within 5 s'
  t.equal(await failure(), 'The disk did not answer within 5 s')
  disk.writeFailure = 'EIO: i/o error'
  ioError()
  t.equal(await failure(), 'The disk did not answer within 5 s')
  disk.queryFailure = undefined
  t.equal(await failure(), 'EIO: i/o error')
})
