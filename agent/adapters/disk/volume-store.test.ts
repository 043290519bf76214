import { mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { isRoot, skipWithout } from '../../../test/support/missing-parts.ts'
import { makeShared, testVolumes, withKubelet } from '../../../test/support/volumes.ts'
import type { VolumeFile, WantedVolume } from '../../pods/volumes/volume-store.ts'
import { noCsiVolumes } from '../csi/csi-volumes.ts'
import { mountMemory, mountPoints, mountsAt } from './mounts.ts'
import { volumeStore } from './volume-store.ts'

const skip = skipWithout('root', isRoot())

const file = (path: string, text: string, mode = 0o644): VolumeFile => ({ path, content: Buffer.from(text), mode })
const files = (...some: readonly VolumeFile[]): WantedVolume & { readonly kind: 'files' } => ({
  name: 'files',
  kind: 'files',
  files: some,
})
const mount = { containerName: 'main', index: 0 }

test('volumes on this machine', { skip }, async (t) => {
  t.test('files are in memory, and change all at one moment', async (t) => {
    const { store, memoryDirectory } = await testVolumes(t)
    const path = await store.place('uid-1', files(file('a', 'one', 0o600), file('deep/b', 'two')))
    t.match(mountsAt(await mountPoints(), memoryDirectory), [{ type: 'tmpfs' }])
    t.equal(path.startsWith(memoryDirectory), true)
    t.equal(await readFile(join(path, 'a'), 'utf8'), 'one')
    t.equal((await stat(join(path, 'a'))).mode & 0o7777, 0o600)
    t.equal(await readlink(join(path, 'deep')), '..data/deep')
    const before = await readlink(join(path, '..data'))
    await store.place('uid-1', files(file('a', 'one', 0o600), file('deep/b', 'two')))
    t.equal(await readlink(join(path, '..data')), before, 'nothing is written when nothing changed')
    await store.place('uid-1', files(file('a', 'three'), file('c', 'four')))
    t.equal(await readFile(join(path, 'a'), 'utf8'), 'three')
    t.same((await readdir(path)).filter((name) => !name.startsWith('..')).sort(), ['a', 'c'])
    t.equal((await readdir(path)).filter((name) => name.startsWith('..')).length, 2, 'the old ones are gone')
  })

  t.test('a file has the owner that it is for', async (t) => {
    const { store } = await testVolumes(t)
    const owned = (owner: number | undefined) =>
      files({ ...file('token', 'x', 0o600), ...(owner !== undefined && { owner }) })
    const placed = async (volume: WantedVolume) => {
      const { uid, gid, mode } = await stat(join(await store.place('u', volume), 'token'))
      return [uid, gid, mode & 0o777]
    }
    t.same(await placed(owned(1000)), [1000, 0, 0o600])
    t.same(await placed(owned(1001)), [1001, 0, 0o600], 'of another user now')
    t.same(await placed({ ...owned(1001), group: 2000 }), [1001, 2000, 0o600])
    t.same(await placed(owned(undefined)), [0, 0, 0o600])
  })

  t.test('tokens are only for the agent, and a durable one survives a reboot', async (t) => {
    const { store, dataDirectory, memoryDirectory } = await testVolumes(t)
    t.equal(await store.savedToken('u', 'a'), undefined)
    await store.saveToken('u', 'a', 'one', { durable: true })
    await store.saveToken('u', 'a', 'two', { durable: false })
    await store.saveToken('u', 'b', 'three', { durable: false })
    t.equal(await store.savedToken('u', 'a'), 'two')
    const [onDisk, inMemory] = [dataDirectory, memoryDirectory].map((one) => join(one, 'pods/u/tokens'))
    t.same(await readdir(onDisk ?? ''), ['a'])
    for (const path of [onDisk, inMemory]) {
      t.equal((await stat(path ?? '')).mode & 0o777, 0o700)
      t.equal((await stat(join(path ?? '', 'a'))).mode & 0o777, 0o600)
    }
    await rm(inMemory ?? '', { recursive: true })
    t.same([await store.savedToken('u', 'a'), await store.savedToken('u', 'b')], ['one', undefined])
    t.same(await store.podUIDs(), ['u'])
    await t.rejects(store.saveToken('..', 'a', 'x', { durable: true }), { name: 'VolumeError' })
    await t.rejects(store.savedToken('u', '../a'), { name: 'VolumeError' })
    await store.remove('u')
    t.equal(await store.savedToken('u', 'a'), undefined)
  })

  t.test('scratch folders stay as they are, on disk or in memory of their size', async (t) => {
    const { store, dataDirectory } = await testVolumes(t)
    const onDisk: WantedVolume = { name: 'disk', kind: 'emptyDir', memory: false, group: 2000 }
    const path = await store.place('uid-1', onDisk)
    t.equal(path, join(dataDirectory, 'pods/uid-1/volumes/disk'))
    const { mode, gid } = await stat(path)
    t.same([mode & 0o7777, gid], [0o2777, 2000])
    await writeFile(join(path, 'kept'), 'x')
    await store.place('uid-1', onDisk)
    t.same(await readdir(path), ['kept'])
    const inMemory: WantedVolume = { name: 'memory', kind: 'emptyDir', memory: true, sizeBytes: 1024 ** 2 }
    const memory = await store.place('uid-1', inMemory)
    t.match(mountsAt(await mountPoints(), memory), [{ type: 'tmpfs' }])
    await t.rejects(writeFile(join(memory, 'big'), Buffer.alloc(2 * 1024 ** 2)), { code: 'ENOSPC' })
    await store.place('uid-1', inMemory)
    t.equal(mountsAt(await mountPoints(), memory).length, 1, 'mounted once')
  })

  t.test('a folder in memory and its parts are sticky, as a tmpfs of the kubelet is', async (t) => {
    const { store } = await testVolumes(t)
    for (const [uid, group, wanted] of [
      ['alone', undefined, 0o1777],
      ['grouped', 2000, 0o3777],
    ] as const) {
      const volume: WantedVolume = { name: 'm', kind: 'emptyDir', memory: true, ...(group !== undefined && { group }) }
      const path = await store.place(uid, volume)
      await store.part(uid, volume, 'a/b', mount)
      for (const one of [path, join(path, 'a'), join(path, 'a/b')]) {
        const { mode, gid } = await stat(one)
        t.same([mode & 0o7777, gid], [wanted, group ?? 0], one)
      }
    }
  })

  t.test('what is mounted in a folder of the machine stays when a pod with a part of the folder goes', async (t) => {
    const { store, folder } = await testVolumes(t)
    const disk = join(folder, 'disk')
    const volume: WantedVolume = { name: 'h', kind: 'hostPath', path: disk, type: 'Directory' }
    await mkdir(join(disk, 'sub/usb'), { recursive: true })
    await makeShared(disk)
    const part = await store.part('u', volume, 'sub', mount)
    await mountMemory(join(disk, 'sub/usb'), ['size=1m'])
    t.equal(mountsAt(await mountPoints(), part).length, 2, 'the pod sees it')
    await store.remove('u')
    t.equal(mountsAt(await mountPoints(), join(disk, 'sub/usb')).length, 1)
    t.same(mountsAt(await mountPoints(), part), [])
  })

  t.test('a pod with the folder of the kubelet sees files of other pods, but no copies of Secrets', async (t) => {
    const volumes = await testVolumes(t)
    const { directory, store } = await withKubelet(volumes, quietLog(t))
    const disk = join(volumes.folder, 'disk')
    await mkdir(disk)
    const data: WantedVolume = {
      ...{ name: 'data', kind: 'claim', uid: 'pv-uid', volume: 'pv-1', source: 'local', path: disk, type: '' },
      ...{ claim: 'default/data', isForOnePod: false },
    }
    await store.place('app', data)
    await store.place('app', { name: 'cache', kind: 'emptyDir', memory: false })
    await store.place('app', { name: 'fast', kind: 'emptyDir', memory: true })
    await store.place('app', files(file('password', 'x')))
    const pods = () => readdir(join(directory, 'pods')).then((names) => names.sort())
    const driven = join(directory, 'pods/other/volumes/kubernetes.io~csi/pv-2/mount')
    const csi = { ...noCsiVolumes, place: async () => ({ path: driven, hasGroup: false }) }
    const withDriver = volumeStore(volumes, { csi, kubelet: { directory, log: quietLog(t) } })
    await withDriver.place('other', { ...data, source: 'csi', uid: 'other', csi: {} } as WantedVolume)
    t.same(await pods(), [], 'a pod with the volume of a driver sees no others')
    await store.messageFile('idle', 'main', 0)
    await store.place('backup', { name: 'pods', kind: 'hostPath', path: join(directory, 'pods'), type: 'Directory' })
    t.same(await pods(), ['app', 'backup', 'idle', 'other'])
    await writeFile(join(disk, 'file'), 'written')
    const at = (name: string) => join(directory, 'pods/app/volumes', name)
    t.equal(await readFile(at('kubernetes.io~local-volume/pv-1/file'), 'utf8'), 'written')
    t.same((await readdir(at(''))).sort(), ['kubernetes.io~empty-dir', 'kubernetes.io~local-volume'])
    t.same((await readdir(at('kubernetes.io~empty-dir'))).sort(), ['cache', 'fast'])
    await store.unmountParts('app')
    t.same(
      mountsAt(await mountPoints(), join(directory, 'pods')),
      [],
      'the machine does not wait for them when it stops',
    )
    await store.place('app', data)
    t.equal(mountsAt(await mountPoints(), at('kubernetes.io~local-volume/pv-1')).length, 1)
    await store.remove('app')
    t.same(await pods(), ['backup', 'idle', 'other'])
    t.equal(await readFile(join(disk, 'file'), 'utf8'), 'written')
    await store.remove('backup')
    t.same(await pods(), [])
  })

  t.test('a path of the host is of the type the volume asks for', async (t) => {
    const { store, folder } = await testVolumes(t)
    const host = (path: string, type: string): WantedVolume => ({
      name: 'h',
      kind: 'hostPath',
      path: `${folder}/${path}`,
      type,
    })
    await t.rejects(store.place('u', host('none', 'Directory')), {
      name: 'VolumeError',
      message: `hostPath type check failed: ${folder}/none is not a directory`,
    })
    t.equal(await store.place('u', host('made/deep', 'DirectoryOrCreate')), join(folder, 'made/deep'))
    t.equal(await store.place('u', host('made/file', 'FileOrCreate')), join(folder, 'made/file'))
    await t.rejects(store.place('u', host('made/file', 'Directory')), /is not a directory/)
    await t.rejects(store.place('u', host('made/file', 'Socket')), /is not a socket file/)
    t.equal(await store.place('u', { name: 'n', kind: 'hostPath', path: '/dev/null', type: 'CharDevice' }), '/dev/null')
    await t.rejects(store.place('u', host('../x', '')), { name: 'VolumeError' })
    await store.remove('u')
    t.ok(await stat(join(folder, 'made/file')), 'what is the host’s stays')
  })

  t.test('a part of a volume is inside it, whatever links are laid there', async (t) => {
    const { store, folder } = await testVolumes(t)
    const volume: WantedVolume = { name: 'data', kind: 'emptyDir', memory: false }
    const path = await store.place('u', volume)
    const made = await store.part('u', volume, 'a/b', mount)
    await writeFile(join(made, 'seen'), 'x')
    t.equal(await readFile(join(path, 'a/b/seen'), 'utf8'), 'x')
    t.equal((await stat(join(path, 'a/b'))).mode & 0o777, 0o777, 'with the rights of the volume')
    await symlink('a', join(path, 'inner'))
    const again = await store.part('u', volume, 'inner/b/seen', mount)
    t.equal(await readFile(again, 'utf8'), 'x', 'a file, through a link that stays inside')
    await mkdir(join(folder, 'secret'))
    await symlink(join(folder, 'secret'), join(path, 'out'))
    await symlink('../../../../../..', join(path, 'up'))
    for (const subPath of ['out', 'out/x', 'up', 'up/etc', 'up/no-such-thing']) {
      await t.rejects(store.part('u', volume, subPath, mount), { name: 'VolumeError', message: /leads out/ }, subPath)
    }
    await t.rejects(store.part('u', volume, 'a/b/seen/x', mount), { name: 'VolumeError' })
    const config = files(file('a', 'one'))
    await store.place('u', config)
    t.equal(await readFile(await store.part('u', config, 'a', mount), 'utf8'), 'one')
    const empty = await store.part('u', config, 'b/c', mount)
    t.same(await readdir(empty), [], 'what is not among the files is made, as an empty folder')
    await store.place('u', files(file('a', 'two')))
    t.same(await readdir(empty), [], 'and stays when the files change: a container has it mounted')
  })

  t.test('files that were placed are used as they are when they cannot be written again', async (t) => {
    const { store } = await testVolumes(t)
    const config = files(file('a', 'one'))
    const earlier: WantedVolume = { name: config.name, kind: 'earlierFiles' }
    await t.rejects(store.place('u', earlier), { name: 'VolumeError' })
    const path = await store.place('u', config)
    t.equal(await store.place('u', earlier), path)
    t.equal(await readFile(await store.part('u', earlier, 'a', mount), 'utf8'), 'one')
    await t.rejects(store.place('another', earlier), { name: 'VolumeError' })
  })

  t.test('a hosts file changes where it is mounted, and is not stored with secrets', async (t) => {
    const { store, memoryDirectory } = await testVolumes(t)
    const path = await store.etcFile('u', 'hosts', 'one')
    const { ino, mode } = await stat(path)
    t.equal(mode & 0o777, 0o644)
    t.equal(mountsAt(await mountPoints(), join(memoryDirectory, 'messages')).length, 1, 'a file system of its own')
    t.equal(await store.etcFile('u', 'hosts', 'two'), path)
    const other = await store.etcFile('u', 'resolv.conf', 'three')
    t.equal(await readFile(other, 'utf8'), 'three')
    t.equal((await stat(path)).ino, ino)
    t.equal(await readFile(path, 'utf8'), 'two')
    await store.messageFile('u', 'main', 0)
    await store.remove('u')
    t.same(await store.podUIDs(), [])
  })

  t.test('nothing of a pod is left, and nothing of others is touched', async (t) => {
    const { store, folder, dataDirectory, memoryDirectory } = await testVolumes(t)
    const scratch: WantedVolume = { name: 's', kind: 'emptyDir', memory: false }
    const memory: WantedVolume = { name: 'm', kind: 'emptyDir', memory: true }
    const host: WantedVolume = { name: 'h', kind: 'hostPath', path: join(folder, 'host'), type: '' }
    for (const volume of [scratch, memory, host]) await store.place('u', volume)
    await store.part('u', memory, 'x', { containerName: 'main', index: 0 })
    await store.part('u', host, 'deep', { containerName: 'main', index: 1 })
    await writeFile(join(folder, 'host/deep/precious'), 'x')
    await store.place('other', scratch)
    t.same([...(await store.podUIDs())].sort(), ['other', 'u'])
    await store.remove('u')
    await store.remove('u')
    t.same(await store.podUIDs(), ['other'])
    t.same(mountsAt(await mountPoints(), join(memoryDirectory, 'pods')), [])
    t.equal(await readFile(join(folder, 'host/deep/precious'), 'utf8'), 'x')
    t.same(await readdir(join(dataDirectory, 'pods')), ['other'])
    await t.rejects(store.remove('../..'), { name: 'VolumeError' })
    await t.rejects(store.place('u', { ...scratch, name: '..' }), { name: 'VolumeError' })
  })
})
