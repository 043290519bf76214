import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { messageOf } from '../../../../daemon/errors.ts'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { testVolumes } from '../../../../test/support/volumes.ts'
import type { WantedVolume } from '../../../pods/volumes/volume-store.ts'
import { mountPoints } from '../mounts.ts'
import { deviceMounts } from './device-mounts.ts'

const run = promisify(execFile)
const skip = skipWithout('root', isRoot())
const step = 'MountVolume.MountDevice failed'

const claim = (path: string, more: object = {}): WantedVolume => ({
  ...{ name: 'data', kind: 'claim', uid: 'pv-1', volume: 'pv', source: 'local', path, type: '' },
  ...{ claim: 'default/data', isForOnePod: false },
  ...more,
})

/** A device of 16 MiB with this content at its beginning, in the volumes of an agent. */
async function withDevice(t: Test, content: Buffer | string = '') {
  const volumes = await testVolumes(t)
  const file = join(volumes.folder, 'disk.img')
  await writeFile(file, content)
  await truncate(file, 16 * 2 ** 20)
  const { stdout } = await run('losetup', ['--find', '--show', file])
  const device = stdout.trim()
  t.teardown(() => run('losetup', ['--detach', device]))
  const mounted = join(volumes.memoryDirectory, 'devices/pv-1')
  const isMounted = async () => (await mountPoints()).some(({ path }) => path === mounted)
  /** Its first bytes, by which a file system that was made would be seen. */
  const head = async () => (await readFile(file)).subarray(0, 65_536)
  return { ...volumes, device, mounted, isMounted, head }
}

/** Tries until that resolves, as a pod does. */
async function tried<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!/takes longer than usual/.test(messageOf(error))) throw error
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}

test('local volumes of a device with a file system', { skip }, async (t) => {
  t.test('an empty device is formatted once, is mounted for its pods, and keeps its files', async (t) => {
    const { store, device, mounted, isMounted } = await withDevice(t)
    t.equal(await store.place('u', claim(device, { group: 2000 })), mounted)
    const point = (await mountPoints()).find(({ path }) => path === mounted)
    t.match(point, { type: 'ext4', source: device })
    t.equal((await stat(mounted)).gid, 2000)
    await writeFile(join(mounted, 'file'), 'kept')
    t.equal(await store.place('v', claim(device)), mounted, 'another pod shares it')
    t.equal(await store.place('u', { name: 'data', kind: 'earlierClaim' }), mounted)
    await store.remove('u')
    t.equal(await isMounted(), true)
    await store.remove('v')
    t.equal(await isMounted(), false)
    await t.rejects(store.place('w', claim(device, { fsType: 'xfs' })), {
      step,
      message: /has the file system ext4, and the volume has the fsType xfs: it is not formatted/,
    })
    await store.place('w', claim(device, { fsType: 'ext4', isReadOnly: true }))
    t.equal(await readFile(join(mounted, 'file'), 'utf8'), 'kept')
    await t.rejects(writeFile(join(mounted, 'other'), ''), { code: 'EROFS' })
    await store.remove('w')
  })

  t.test('a device with partitions, a swap area or for reading only is left as it is', async (t) => {
    const table = Buffer.alloc(512)
    table.set([0x80, 0, 2, 0, 0x83, 0, 2, 0, 1, 0, 0, 0, 0xff, 0, 0, 0], 446)
    table.set([0x55, 0xaa], 510)
    const swap = Buffer.alloc(4096)
    swap.set([1, 0, 0, 0, 100], 1024)
    swap.write('SWAPSPACE2', 4086)
    for (const [content, message] of [
      [table, /has a partition table \(dos\), and is not formatted/],
      [swap, /has data of swap, and is not formatted/],
    ] as const) {
      const { store, device, head } = await withDevice(t, content)
      const before = await head()
      await t.rejects(store.place('u', claim(device)), { step, message })
      t.ok((await head()).equals(before))
    }
    const { store, device, head } = await withDevice(t)
    await t.rejects(store.place('u', claim(device, { isReadOnly: true })), { step, message: /in read-only mode/ })
    t.ok((await head()).every((byte) => byte === 0))
  })

  t.test('a device that the machine has mounted itself is refused', async (t) => {
    const { store, folder, device } = await withDevice(t)
    await run('mkfs.ext4', ['-q', device])
    const own = join(folder, 'own')
    await mkdir(own)
    await run('mount', [device, own])
    await t.rejects(store.place('u', claim(device)), { step, message: new RegExp(`is mounted at ${own}: unmount it`) })
    const container = spawn('unshare', ['--mount', 'sh', '-c', 'echo mounted; exec sleep 60'])
    const ended = once(container, 'exit')
    await once(container.stdout, 'data')
    await run('umount', [own])
    await t.rejects(store.place('u', claim(device)), { step, message: /is in use on this machine: by a container/ })
    container.kill()
    await ended
    await store.place('u', claim(device))
    await store.remove('u')
  })

  t.test('a device that was mounted late, and is released before a pod takes it, is mounted again', async (t) => {
    const { device, memoryDirectory } = await withDevice(t)
    const mounts = deviceMounts({ folder: memoryDirectory, patienceMs: 0 })
    const place = () => mounts.place('pv-1', device, { fsType: undefined, isReadOnly: false })
    await t.rejects(place(), { message: /takes longer than usual/ })
    while ((await mounts.uids()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await mounts.unmount('pv-1')
    t.same(await mounts.uids(), [])
    await tried(place)
    t.same(await mounts.uids(), ['pv-1'])
  })
})
