import { chmod, lstat, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { testVolumes } from '../../../../test/support/volumes.ts'
import type { CsiMount } from '../../../pods/volumes/csi/csi-mount.ts'
import type { WantedVolume } from '../../../pods/volumes/volume-store.ts'
import { mountHung, noFuse } from '../../../testing/hung-filesystem.ts'
import { type CsiVolumes, noCsiVolumes } from '../../csi/csi-volumes.ts'
import { mountPoints } from '../mounts.ts'
import { remoteFiles } from '../remote/remote-files.ts'
import { volumeStore } from '../volume-store.ts'
import { giveToGroup } from './group-ownership.ts'

const skip = skipWithout('root', isRoot())
type Claim = WantedVolume & { readonly kind: 'claim' }
const claim = (path: string, more: Partial<Claim> = {}): Claim => ({
  ...{
    name: 'data',
    kind: 'claim',
    uid: 'pv-1',
    volume: 'pv',
    source: 'local',
    path,
    type: '',
    claim: 'default/data',
    isForOnePod: false,
  },
  ...more,
})
const noMount: CsiMount = {
  ...{ driver: '', handle: '', fsType: '', accessMode: 'ReadWriteOnce', readOnly: false, mountOptions: [] },
  ...{
    pod: 'default/web',
    attributes: {},
    podAttributes: {},
    publishContext: {},
    stageSecrets: {},
    publishSecrets: {},
  },
}
const earlier: WantedVolume = { name: 'data', kind: 'earlierClaim' }

test('volumes of claims on this machine', { skip }, async (t) => {
  t.test('a block volume of this machine must be a block device', async (t) => {
    const { store, folder } = await testVolumes(t)
    const step = 'MapVolume.MapPodDevice failed'
    const place = (path: string) => store.place('u', { ...claim(path), isBlock: true } as WantedVolume)
    await t.rejects(place(join(folder, 'none')), { step, message: /does not exist/ })
    await t.rejects(place(folder), { step, message: /is not a block device, but a directory/ })
  })

  t.test('a local volume is where it is, and never made where it is missing', async (t) => {
    const { store, folder } = await testVolumes(t)
    const disk = join(folder, 'disk')
    const missing = { step: 'MountVolume.NewMounter initialization failed', message: `path "${disk}" does not exist` }
    await t.rejects(store.place('u', claim(disk)), missing)
    await t.rejects(stat(disk), { code: 'ENOENT' })
    await mkdir(disk)
    t.equal(await store.place('u', claim(disk)), disk)
    await rm(disk, { recursive: true })
    await t.rejects(store.place('u', claim(disk)), missing, 'also once it was there')
    await t.rejects(store.place('u', earlier), missing)
    await writeFile(disk, '')
    await t.rejects(store.place('u', claim(disk)), { message: /is not a directory, but a regular/ })
    await t.rejects(store.place('u', claim(`${folder}/../x`)), { message: /is not an absolute path/ })
  })

  t.test('a hostPath volume follows the rules of its type', async (t) => {
    const { store, folder } = await testVolumes(t)
    const made = (name: string, type: string) =>
      store.place('u', claim(join(folder, name), { name, source: 'hostPath', type }))
    await t.rejects(made('a', 'Directory'), { message: /^hostPath type check failed: .* is not a directory$/ })
    t.equal(await made('b', 'DirectoryOrCreate'), join(folder, 'b'))
    t.ok((await stat(join(folder, 'b'))).isDirectory())
    t.equal(await made('c', ''), join(folder, 'c'))
  })

  t.test('the volume of a CSI driver is where its driver mounts it, and goes before the pod', async (t) => {
    const { dataDirectory, memoryDirectory, folder } = await testVolumes(t)
    const path = join(folder, 'published')
    await mkdir(path)
    const removed: string[] = []
    let hasGroup = true
    const csi: CsiVolumes = {
      ...noCsiVolumes,
      place: async () => ({ path, hasGroup }),
      check: async () => undefined,
      remove: async (podUID) => void removed.push(podUID),
      podUIDs: async () => ['other'],
    }
    const store = volumeStore({ dataDirectory, memoryDirectory }, { csi })
    const mount = { ...noMount, driver: 'disk.example.com', handle: 'h' }
    const wanted = claim('', { source: 'csi', csi: mount, group: 2345 })
    t.equal(await store.place('u', wanted), path)
    t.not((await stat(path)).gid, 2345, 'the driver has given the files to the group')
    t.equal(await store.place('u', earlier), path)
    hasGroup = false
    await store.place('v', { ...wanted, uid: 'pv-2' })
    t.equal((await stat(path)).gid, 2345)
    t.same([...(await store.podUIDs())].sort(), ['other', 'u', 'v'])
    await store.remove('u')
    t.same(removed, ['u'])
    const without = volumeStore({ dataDirectory, memoryDirectory })
    await t.rejects(without.place('w', wanted), { message: /driver name disk.example.com not found/ })
  })

  t.test('an agent that starts again finds the volume of a pod, until the pod is gone', async (t) => {
    const { store, folder, dataDirectory, memoryDirectory } = await testVolumes(t)
    await mkdir(join(folder, 'disk/sub'), { recursive: true })
    await store.place('u', claim(join(folder, 'disk')))
    const again = volumeStore({ dataDirectory, memoryDirectory })
    t.equal(await again.place('u', earlier), join(folder, 'disk'))
    const part = await again.part('u', earlier, 'sub', { containerName: 'main', index: 0 })
    t.equal((await stat(part)).ino, (await stat(join(folder, 'disk/sub'))).ino)
    await again.remove('u')
    await t.rejects(again.place('u', earlier), { message: 'it was not mounted before' })
    t.ok((await stat(join(folder, 'disk/sub'))).isDirectory(), 'the data stays')
  })

  t.test('a claim for one pod is refused to a second one while the first is here', async (t) => {
    const { store, folder } = await testVolumes(t)
    const single = claim(folder, { isForOnePod: true })
    const results = await Promise.allSettled([store.place('a', single), store.place('b', single)])
    t.same(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
    t.equal(await store.place('a', single), folder, 'its containers start again')
    await t.rejects(store.place('b', single), {
      message: 'volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    })
    await store.remove('a')
    t.equal(await store.place('b', single), folder)
  })

  t.test('the files of a volume get the group of the pod once, and no link leads out of it', async (t) => {
    const { store, folder } = await testVolumes(t)
    const disk = join(folder, 'disk')
    await mkdir(join(disk, 'deep'), { recursive: true, mode: 0o700 })
    await writeFile(join(disk, 'deep/file'), '', { mode: 0o600 })
    await writeFile(join(folder, 'outside'), '', { mode: 0o600 })
    await symlink('../outside', join(disk, 'link'))
    await store.place('u', claim(disk, { group: 2000 }))
    const shows = async (path: string) => {
      const { uid, gid, mode } = await lstat(join(folder, path))
      return [uid, gid, (mode & 0o7777).toString(8)]
    }
    t.same(await shows('disk'), [0, 2000, '2770'])
    t.same(await shows('disk/deep'), [0, 2000, '2770'])
    t.same(await shows('disk/deep/file'), [0, 2000, '660'])
    t.same((await shows('disk/link')).slice(0, 2), [0, 2000])
    t.same(await shows('outside'), [0, 0, '600'])
    await chmod(join(disk, 'deep/file'), 0o600)
    await store.place('u', claim(disk, { group: 2000 }))
    t.same(await shows('disk/deep/file'), [0, 2000, '600'], 'not again for each container')
    await store.place('v', claim(disk, { group: 3000 }))
    t.same(await shows('disk'), [0, 2000, '2770'], 'nor for a pod that shares it')
    await store.remove('u')
    await store.remove('v')
    await store.place('w', claim(disk, { group: 2000, groupOnMismatch: true }))
    t.same(await shows('disk/deep/file'), [0, 2000, '600'])
    await store.remove('w')
    await store.place('x', claim(disk, { group: 2000 }))
    t.same(await shows('disk/deep/file'), [0, 2000, '660'])
  })

  t.test(
    'two pods that come at once: the files get the group of the first, also by another volume of the path',
    async (t) => {
      const { store, folder } = await testVolumes(t)
      const disk = join(folder, 'disk')
      await mkdir(disk)
      await writeFile(join(disk, 'file'), '')
      const other = claim(disk, { uid: 'pv-2', group: 3000 })
      const both = [2000, 3000].map((group) => store.place(`u${group}`, claim(disk, { group })))
      t.same(await Promise.all(both), [disk, disk], 'of one volume each waits for the one before')
      await store.place('w', other)
      for (const path of [disk, join(disk, 'file')]) t.equal((await stat(path)).gid, 2000)
    },
  )

  t.test('a walk that is cut off has not done the folder itself', async (t) => {
    const { folder } = await testVolumes(t)
    await mkdir(join(folder, 'disk/deep'), { recursive: true })
    const signal = AbortSignal.abort()
    await t.rejects(giveToGroup(join(folder, 'disk'), 2000, { onMismatchOnly: false, signal }))
    t.equal((await stat(join(folder, 'disk'))).gid, 0)
    let path = folder
    for (let level = 0; level < 140; level++) path = join(path, 'd')
    await mkdir(path, { recursive: true })
    await t.rejects(
      giveToGroup(join(folder, 'd'), 2000, { onMismatchOnly: false, signal: new AbortController().signal }),
      {
        message: /deeper than 128 folders$/,
      },
    )
  })

  t.test('a share is mounted for the first pod that has it, and unmounted after the last', async (t) => {
    const { store, folder, memoryDirectory } = await testVolumes(t)
    const bin = join(folder, 'bin')
    await mkdir(bin, { recursive: true })
    await writeFile(join(bin, 'mount.nfs'), '#!/bin/sh\nmount -t tmpfs none "$2"\n', { mode: 0o755 })
    const [path, server] = [process.env['PATH'], createServer((socket) => socket.destroy())]
    process.env['PATH'] = `${bin}:${path}`
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      process.env['PATH'] = path
      server.close()
    })
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    const mountOptions = [`port=${port}`]
    const share = { kind: 'nfs', server: '127.0.0.1', path: '/export', mountOptions } as const
    const onShare = claim('', { source: 'share', share })
    const mounted = await store.place('u', onShare)
    t.equal(mounted, join(memoryDirectory, 'shares/pv-1'))
    t.equal(await store.place('v', onShare), mounted)
    t.equal(await store.placedAt('u', 'data'), mounted)
    t.equal(await store.place('u', earlier), mounted)
    const part = await store.part('u', onShare, 'sub', { containerName: 'main', index: 0 })
    t.equal((await stat(part)).ino, (await stat(join(mounted, 'sub'))).ino)
    const isMounted = async () => (await mountPoints()).some((point) => point.path === mounted)
    await store.remove('u')
    t.equal(await isMounted(), true)
    await store.remove('v')
    t.equal(await isMounted(), false)
    await t.rejects(store.place('v', earlier), { message: 'it was not mounted before' })
  })

  t.test('a volume on a file system that does not answer is refused in time', { skip: noFuse }, async (t) => {
    const { folder, dataDirectory, memoryDirectory } = await testVolumes(t)
    const nas = join(folder, 'nas')
    const server = await mountHung(t, nas, { reads: true })
    const store = volumeStore({ dataDirectory, memoryDirectory }, { remote: remoteFiles(300) })
    const noAnswer = { message: new RegExp(`^the file system mounted at ${nas} .* does not answer$`) }
    await t.rejects(store.place('u', claim(join(nas, 'deep'), { group: 2000 })), noAnswer)
    await t.rejects(store.place('v', claim(nas, { source: 'hostPath' })), noAnswer)
    server.answer()
  })
})
