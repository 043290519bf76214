import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { isRoot, skipWithout } from '../../../test/support/missing-parts.ts'
import { readOnlyFilesystem } from '../../health/filesystem.ts'
import { filesystemWatch } from '../../health/filesystem-watch.ts'
import type { KernelLine } from '../../health/kernel-log.ts'
import { filesystemAccess } from './filesystem-access.ts'

/** A machine whose mounts are as a test writes them; its data directory is a real folder. */
function machine(t: Test, fstab = 'PARTUUID=4f1c-02 / ext4 defaults,noatime 0 1\n') {
  const root = testFolder(t, { proc: { self: {} }, etc: { fstab }, data: {} })
  const dataDirectory = join(root, 'data')
  const clock = fakeClock()
  const listeners: ((line: KernelLine) => void)[] = []
  const kernel = { subscribe: (listener: (line: KernelLine) => void) => void listeners.push(listener) }
  const filesystems = filesystemWatch({ access: filesystemAccess(root, dataDirectory), kernel, clock })
  return {
    clock,
    dataDirectory,
    mounts: (...lines: readonly string[]) => writeFileSync(join(root, 'proc/self/mountinfo'), lines.join('\n')),
    errors(count: number) {
      const path = join(root, 'sys/fs/ext4/mmcblk0p2/errors_count')
      mkdirSync(dirname(path), { recursive: true })
      mkdirSync(join(root, 'sys/dev/block'), { recursive: true })
      writeFileSync(path, `${count}\n`)
      try {
        symlinkSync('../../devices/platform/mmcblk0/mmcblk0p2', join(root, 'sys/dev/block/179:2'))
      } catch {
        // It is there from the last time.
      }
    },
    emit: (text: string, ageMs = 0) => {
      for (const listener of listeners) listener({ text, ageMs })
    },
    finding: async () => readOnlyFilesystem(await filesystems()),
  }
}

const rootAt = (options: string, superOptions = options) =>
  `22 1 179:2 / / ${options},noatime shared:1 - ext4 /dev/mmcblk0p2 ${superOptions}`

test('a root that became read-only is a condition that names its device, until it is writable again', async (t) => {
  const pi = machine(t)
  pi.mounts(rootAt('rw'))
  t.match(await pi.finding(), { status: 'False', reason: 'FilesystemsWritable' })
  pi.errors(3)
  pi.mounts(rootAt('ro'))
  t.match(await pi.finding(), {
    status: 'True',
    reason: 'FilesystemReadOnly',
    message: /The root filesystem \(\/dev\/mmcblk0p2\) is read-only after 3 errors. Save what you can/,
  })
  pi.mounts(rootAt('rw'))
  t.match(await pi.finding(), { status: 'False' })
})

test('a filesystem that stopped writing without a remount is a condition', async (t) => {
  const pi = machine(t)
  pi.mounts(rootAt('rw', 'rw,emergency_ro'))
  t.match(await pi.finding(), { status: 'True', reason: 'FilesystemReadOnly' })
})

test('a root that is meant to be read-only is well, a data directory that is cannot be meant', async (t) => {
  const pi = machine(t, 'PARTUUID=4f1c-02 / ext4 defaults,ro 0 1\n')
  const data = (options: string) => `30 22 0:40 / ${pi.dataDirectory} ${options} - tmpfs tmpfs rw`
  pi.mounts(rootAt('ro'), data('rw'))
  t.match(await pi.finding(), { status: 'False' })
  pi.mounts(rootAt('ro'), data('ro'))
  t.match(await pi.finding(), { status: 'True', message: /The filesystem of .*data \(tmpfs\) is read-only/ })
  pi.mounts(rootAt('ro'))
  t.match(await pi.finding(), { status: 'True' }, 'the data directory is on the root')
})

test('of mounts at one path the last is what is seen', async (t) => {
  const pi = machine(t)
  pi.mounts(
    rootAt('rw'),
    `30 22 0:40 / ${pi.dataDirectory} ro - tmpfs a rw`,
    `31 30 0:41 / ${pi.dataDirectory} rw - tmpfs b rw`,
  )
  t.match(await pi.finding(), { status: 'False' })
})

test('only signs of trouble make us write, once, and nothing of it stays', async (t) => {
  const pi = machine(t)
  pi.mounts(rootAt('rw'))
  t.match(await pi.finding(), { status: 'False' })
  pi.emit('mmc0: Timeout waiting for hardware interrupt.')
  pi.emit('I/O error, dev mmcblk0, sector 2048 op 0x1:(WRITE)')
  t.match(await pi.finding(), { status: 'False' }, 'it writes')
  t.same(readdirSync(pi.dataDirectory), [])
})

test('a real ext4 that met an error is a condition as soon as it stops writing', { skip: whyNoLoop() }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-ext4-'))
  const [image, mount] = [join(folder, 'image'), join(folder, 'mount')]
  t.teardown(async () => {
    execFileSync('umount', ['--lazy', mount])
    await rm(folder, { recursive: true, force: true })
  })
  mkdirSync(mount)
  execFileSync('truncate', ['--size=8M', image])
  execFileSync('mkfs.ext4', ['-q', image])
  execFileSync('mount', ['-o', 'loop,errors=remount-ro', image, mount])
  const device = execFileSync('findmnt', ['--noheadings', '--output', 'SOURCE', mount], { encoding: 'utf8' }).trim()
  const kernel = { subscribe: () => undefined }
  const filesystems = filesystemWatch({ access: filesystemAccess('/', mount), kernel, clock: fakeClock() })
  t.match(readOnlyFilesystem(await filesystems()), { status: 'False' })
  writeFileSync(join('/sys/fs/ext4', basename(device), 'trigger_fs_error'), '1\n')
  t.match(readOnlyFilesystem(await filesystems()), {
    status: 'True',
    reason: 'FilesystemReadOnly',
    message: new RegExp(`\\(${device}\\) is read-only after 1 error`),
  })
})

function whyNoLoop(): string | false {
  const programs = ['mkfs.ext4', 'mount', 'findmnt']
  const missing = programs.find(
    (name) => !['/sbin', '/usr/sbin', '/bin', '/usr/bin'].some((at) => existsSync(join(at, name))),
  )
  const skip = skipWithout('root', isRoot()) || skipWithout('e2fsprogs', missing === undefined)
  // Loop devices are a part of the kernel: no package provides them.
  return skip || (existsSync('/dev/loop-control') ? false : 'there are no loop devices')
}
