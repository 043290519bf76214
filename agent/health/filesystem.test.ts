import { test } from 'tap'
import { type FilesystemState, filesystemCheck, isDiskTrouble, readOnlyFilesystem } from './filesystem.ts'

const root: FilesystemState = {
  role: 'root',
  path: '/',
  device: '/dev/mmcblk0p2',
  isReadOnly: false,
  isMeantSo: false,
  errors: undefined,
  failure: undefined,
}
const data: FilesystemState = { ...root, role: 'data directory', path: '/var/lib/bramble', device: '/dev/sda1' }

test('filesystems that can be written to are well, and so is a root that is read-only by configuration', async (t) => {
  const writable = 'The filesystems that the agent and the system write to are writable'
  const byConfiguration = 'The root filesystem is read-only by configuration; the data directory can be written to'
  const cases = [
    { title: 'both', readings: [root, data], message: writable },
    { title: 'with errors counted long ago', readings: [{ ...root, errors: 7 }], message: writable },
    { title: 'overlay', readings: [{ ...root, isReadOnly: true, isMeantSo: true }, data], message: byConfiguration },
    {
      title: 'a data directory mounted so',
      readings: [root, { ...data, isReadOnly: true, isMeantSo: true }],
      message: writable,
    },
    {
      title: 'configured so, and mounted otherwise',
      readings: [{ ...root, isMeantSo: true }, data],
      message: writable,
    },
  ]
  for (const { title, readings, message } of cases) {
    t.match(readOnlyFilesystem(readings), { status: 'False', reason: 'FilesystemsWritable', message }, title)
  }
  t.equal(readOnlyFilesystem([]), undefined, 'a machine that shows no mounts is not judged')
})

test('a filesystem that became read-only, or fails, is named with its device and its errors', async (t) => {
  const cases = [
    {
      readings: [{ ...root, isReadOnly: true }, data],
      reason: 'FilesystemReadOnly',
      text: 'The root filesystem (/dev/mmcblk0p2) is read-only. Save',
    },
    {
      readings: [{ ...root, isReadOnly: true, errors: 0 }],
      reason: 'FilesystemReadOnly',
      text: 'The root filesystem (/dev/mmcblk0p2) is read-only. Save',
    },
    {
      readings: [root, { ...data, isReadOnly: true, errors: 1 }],
      reason: 'FilesystemReadOnly',
      text: 'The filesystem of /var/lib/bramble (/dev/sda1) is read-only after 1 error. Save',
    },
    {
      readings: [{ ...root, isReadOnly: true, errors: 2 }, data],
      reason: 'FilesystemReadOnly',
      text: 'The root filesystem (/dev/mmcblk0p2) is read-only after 2 errors. Save',
    },
    {
      readings: [root, { ...data, failure: 'EIO: i/o error, write' }],
      reason: 'FilesystemFails',
      text: 'The filesystem of /var/lib/bramble (/dev/sda1) fails: EIO: i/o error, write. Save',
    },
    {
      readings: [{ ...root, isReadOnly: true, isMeantSo: true, failure: 'EIO' }],
      reason: 'FilesystemFails',
      text: 'The root filesystem (/dev/mmcblk0p2) fails: EIO. Save',
    },
    {
      readings: [
        { ...root, isReadOnly: true },
        { ...data, failure: 'EIO' },
      ],
      reason: 'FilesystemReadOnly',
      text: 'The root filesystem (/dev/mmcblk0p2) is read-only; the filesystem of /var/lib/bramble (/dev/sda1) fails: EIO. Save',
    },
  ]
  for (const { readings, reason, text } of cases) {
    const finding = readOnlyFilesystem(readings)
    t.match(finding, { status: 'True', reason }, text)
    t.equal(finding?.message.slice(0, text.length), text)
  }
})

test('the check reads the filesystems every few seconds, and a machine without a writable disk is unfit', async (t) => {
  const finding = await filesystemCheck.look(
    { filesystems: async () => [{ ...root, isReadOnly: true }] },
    { settings: { highTemperatureCelsius: undefined }, wasWrong: false },
  )
  t.match(finding, { status: 'True', reason: 'FilesystemReadOnly' })
  t.match(filesystemCheck, { type: 'ReadOnlyFilesystem', periodMs: 5_000, holdMs: 10_000, unfit: true })
})

test('lines of the kernel about a failing disk are a reason to check it', async (t) => {
  const trouble = [
    'blk_update_request: I/O error, dev mmcblk0, sector 2048 op 0x1:(WRITE)',
    'Buffer I/O error on dev sda1, logical block 0, lost async page write',
    'EXT4-fs error (device mmcblk0p2): ext4_journal_check_start:83: Detected aborted journal',
    'EXT4-fs (mmcblk0p2): Remounting filesystem read-only',
    'F2FS-fs (mmcblk0p2): error: invalid blkaddr',
    'mmc0: Timeout waiting for hardware interrupt.',
    'mmc10: tuning execution failed: error -5',
  ]
  const other = [
    'EXT4-fs (mmcblk0p2): mounted filesystem with ordered data mode',
    'mmc0: new high speed SDHC card at address aaaa',
    'mmcblk0: p1 p2',
    'usb 1-1: device descriptor read/64, error -71',
    'brcmfmac: timeout on response for query command',
  ]
  for (const line of trouble) t.equal(isDiskTrouble(line), true, line)
  for (const line of other) t.equal(isDiskTrouble(line), false, line)
})
