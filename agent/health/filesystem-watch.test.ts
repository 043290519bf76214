import { test } from 'tap'
import {
  afterKernelLine,
  afterMounts,
  afterProbe,
  type FilesystemHistory,
  isProbeDue,
  type MountReading,
  type MountsReading,
  noHistory,
  statesOf,
} from './filesystem-watch.ts'

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
