import { test } from 'tap'
import { checkProblem, contentOfDevice, planDevice, probeCommand } from './device-format.ts'

const device = '/dev/sdx'
const end = (code: number | null, stdout = '', stderr = '') => ({ code, stdout, stderr })
const any = { fsType: undefined, isReadOnly: false }

test('a device is empty only if blkid has looked and found nothing', async (t) => {
  t.match(probeCommand(device), ['blkid', '--probe'])
  t.equal(probeCommand(device).at(-1), device)
  t.same(contentOfDevice(end(2)), { is: 'empty' })
  for (const unclear of [end(2, '', 'error: /dev/sdx: Input/output error'), end(8), end(null), end(4), end(0)])
    t.match(contentOfDevice(unclear), { is: 'unclear' })
})

test('what is on a device is what blkid names', async (t) => {
  for (const [stdout, content] of [
    ['DEVNAME=/dev/sdx\nUSAGE=filesystem\nTYPE=xfs\n', { is: 'fileSystem', type: 'xfs' }],
    ['DEVNAME=/dev/sdx\nPTTYPE=gpt\n', { is: 'other', what: 'a partition table (gpt)' }],
    ['TYPE=vfat\nUSAGE=filesystem\nPTTYPE=dos\n', { is: 'other', what: 'a partition table (dos)' }],
    ['USAGE=crypto\nTYPE=crypto_LUKS\n', { is: 'other', what: 'data of crypto_LUKS' }],
    ['USAGE=raid\nTYPE=LVM2_member\n', { is: 'other', what: 'data of LVM2_member' }],
    ['USAGE=other\nTYPE=swap\n', { is: 'other', what: 'data of swap' }],
  ] as const)
    t.same(contentOfDevice(end(0, stdout)), content)
})

test('an empty device is formatted, by default as ext4, and never for reading only', async (t) => {
  t.same(planDevice(device, { is: 'empty' }, any), {
    ...{ ok: true, type: 'ext4', isChecked: false },
    format: ['mkfs.ext4', '-q', '-F', '-m0', device],
  })
  t.match(planDevice(device, { is: 'empty' }, { ...any, fsType: 'xfs' }), { format: ['mkfs.xfs', '-q', device] })
  t.match(planDevice(device, { is: 'empty' }, { ...any, isReadOnly: true }), {
    ok: false,
    message: 'cannot mount unformatted disk /dev/sdx as we are manipulating it in read-only mode',
  })
  t.match(planDevice(device, { is: 'empty' }, { ...any, fsType: 'ntfs; rm' }), { ok: false, message: /must be one of/ })
})

test('a file system is checked and mounted as it is, and another one is refused', async (t) => {
  const xfs = { is: 'fileSystem', type: 'xfs' } as const
  t.same(planDevice(device, xfs, any), { ok: true, type: 'xfs', isChecked: true })
  t.same(planDevice(device, xfs, { fsType: 'xfs', isReadOnly: true }), { ok: true, type: 'xfs', isChecked: false })
  t.match(planDevice(device, xfs, { ...any, fsType: 'ext4' }), { ok: false, message: /has the file system xfs, and/ })
  t.match(planDevice(device, { is: 'fileSystem', type: 'ntfs' }, any), {
    ok: false,
    message: /file system ntfs, which/,
  })
})

test('what is neither empty nor a file system is refused', async (t) => {
  t.match(planDevice(device, { is: 'other', what: 'data of swap' }, any), {
    ok: false,
    message: /has data of swap, and/,
  })
  t.match(planDevice(device, { is: 'unclear', why: 'so' }, any), {
    ok: false,
    message: 'failed to get disk format of disk /dev/sdx: so',
  })
})

test('errors that fsck has left keep a file system away', async (t) => {
  for (const code of [0, 1, 8, null]) t.equal(checkProblem(device, end(code)), undefined)
  t.match(checkProblem(device, end(4, 'UNEXPECTED INCONSISTENCY')), /could not correct them: UNEXPECTED/)
  t.match(checkProblem(device, end(5)), /could not correct/)
})
