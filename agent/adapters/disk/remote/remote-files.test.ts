import { ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { isRoot, skipWithout } from '../../../../test/support/missing-parts.ts'
import { testVolumes } from '../../../../test/support/volumes.ts'
import { aContainer } from '../../../testing/builders.ts'
import { mountHung, noFuse } from '../../../testing/hung-filesystem.ts'
import { filesystemUsage } from '../filesystem-usage.ts'
import { folderCounter } from '../folder-usage.ts'
import { mountPoints, mountsAt } from '../mounts.ts'
import { nodeLogs } from '../node-logs.ts'
import { readPodDisks } from '../pod-disks.ts'
import { volumeStore } from '../volume-store.ts'
import { remoteFiles } from './remote-files.ts'

const skip = skipWithout('root', isRoot()) || noFuse
const mount = { containerName: 'main', index: 0 }

async function temporary(t: Test): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'bramble-remote-')))
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}

test('files of a remote mount are read and made by other processes', async (t) => {
  const folder = await temporary(t)
  const nas = { path: folder, type: 'nfs4', source: '10.0.0.5:/export' }
  const files = remoteFiles()
  t.equal(await files.kindOf(nas, folder), 'directory')
  t.equal(await files.kindOf(nas, join(folder, 'file')), undefined)
  await files.makeFile(nas, join(folder, 'file'))
  t.equal(await files.kindOf(nas, join(folder, 'file')), 'regular empty file')
  await files.makeFolder(nas, join(folder, 'a/b'))
  t.ok((await stat(join(folder, 'a/b'))).isDirectory())
  await t.rejects(files.makeFolder(nas, join(folder, 'file/b')), { name: 'VolumeError', message: /Not a directory/ })
})

test('a folder that was replaced on its server is reported; other errors are answers', async (t) => {
  const nas = { path: '/mnt/nas', type: 'nfs4', source: '10.0.0.5:/export' }
  const answering = (text: string) =>
    remoteFiles(10_000, (_, __, options) => spawn('sh', ['-c', `echo '${text}' >&2; exit 1`], options))
  const stale = "stat: cannot statx '/mnt/nas': Stale file handle"
  t.match(await answering(stale).silence(nas), {
    why: /^the folder mounted at \/mnt\/nas .* was removed or replaced on the server/,
    isReplaced: true,
  })
  t.equal(await answering("stat: cannot statx '/mnt/nas': Permission denied").silence(nas), undefined)
})

test('an SMB share whose server is gone does not answer, although its calls end', async (t) => {
  const nas = { path: '/mnt/smb', type: 'cifs', source: '//10.0.0.5/files' }
  const down = "stat: cannot statx '/mnt/smb': Host is down"
  let isDown = true
  const files = remoteFiles(10_000, (_, __, options) =>
    spawn('sh', ['-c', isDown ? `echo "${down}" >&2; exit 1` : 'echo directory'], options),
  )
  const silent = 'the file system mounted at /mnt/smb (cifs, //10.0.0.5/files) does not answer'
  await t.rejects(files.kindOf(nas, '/mnt/smb'), { name: 'VolumeError', message: silent })
  t.same(await files.silence(nas), { why: silent })
  isDown = false
  while ((await files.silence(nas)) !== undefined) await setTimeout(50)
  t.equal(await files.kindOf(nas, '/mnt/smb'), 'directory')
})

test('a part of a volume on a remote mount is held by another process, and no link leads out of it', async (t) => {
  const folder = await temporary(t)
  const root = join(folder, 'volume')
  const nas = { path: folder, type: 'nfs4', source: '10.0.0.5:/export' }
  await mkdir(join(root, 'there'), { recursive: true, mode: 0o750 })
  await writeFile(join(root, 'there/file'), 'text')
  await symlink('there', join(root, 'inside'))
  await symlink('..', join(root, 'outside'))
  const files = remoteFiles()
  const file = await files.hold(nas, root, 'inside/file')
  t.equal(file.folder, false)
  t.equal(await readFile(file.link, 'utf8'), 'text')
  await file.release()
  const made = await files.hold(nas, root, 'there/new one/deep')
  t.equal(made.folder, true)
  t.equal(await realpath(made.link), join(root, 'there/new one/deep'))
  t.equal((await stat(join(root, 'there/new one'))).mode & 0o777, (await stat(root)).mode & 0o777)
  await made.release()
  await t.rejects(files.hold(nas, root, 'outside'), { name: 'VolumeError', message: /leads out of the volume/ })
  await t.rejects(files.hold(nas, root, 'outside/x'), { message: /leads out of the volume/ })
  await t.rejects(files.hold(nas, root, 'there/file/x'), { name: 'VolumeError', message: /cannot be used/ })
})

test('a process that cannot be started fails its call, and does not end this one', async (t) => {
  const nas = { path: '/mnt/no-files-left', type: 'nfs4', source: '10.0.0.5:/export' }
  // As spawn with EMFILE: no streams, and the error in the next turn.
  const files = remoteFiles(undefined, () => {
    const child = Object.assign(new ChildProcess(), { kill: () => false })
    process.nextTick(() => child.emit('error', new Error('spawn sh EMFILE')))
    return child
  })
  await t.rejects(files.hold(nas, '/mnt/no-files-left', 'part'), { message: 'spawn sh EMFILE' })
  await t.rejects(files.makeFile(nas, '/mnt/no-files-left/file'), { message: 'spawn sh EMFILE' })
})

for (const reads of [false, true]) {
  const callers = reads ? 'callers cannot be killed' : 'callers can be killed'
  test(`a file system that does not answer holds up only the volumes on it; ${callers}`, { skip }, async (t) => {
    const { folder, dataDirectory, memoryDirectory } = await testVolumes(t)
    const nas = join(folder, 'nas')
    const server = await mountHung(t, nas, { reads })
    await symlink(join(nas, 'deep'), join(folder, 'link'))
    const store = volumeStore({ dataDirectory, memoryDirectory }, { remote: remoteFiles(300) })
    const hostPath = (path: string, type = '') => ({ name: 'data', kind: 'hostPath' as const, path, type })
    const noAnswer = {
      name: 'VolumeError',
      message: new RegExp(`^the file system mounted at ${nas} \\(fuse, nas:/export\\) does not answer$`),
    }
    // More than the threads of Node.js.
    const placed = [nas, join(nas, 'deep'), join(folder, 'link/x'), nas, nas, nas].map((path) =>
      store.place('u', hostPath(path)),
    )
    await Promise.all(placed.map((one) => t.rejects(one, noAnswer)))
    await t.rejects(store.place('u', hostPath(nas, 'Directory')), noAnswer)
    await t.rejects(store.part('u', hostPath(nas), 'sub/path', mount), noAnswer)
    await t.rejects(store.part('u', hostPath(folder), 'link', mount), noAnswer, 'a link of a volume to it')
    const local = join(folder, 'local')
    t.equal(await store.place('u', hostPath(local, 'DirectoryOrCreate')), local)
    const counter = folderCounter()
    t.match(await counter.usage(folder), { incomplete: `${nas} (fuse) is mounted in it` })
    t.match(await counter.usage(local), { inodesUsed: 1 })
    await counter.close()
    await store.remove('u')

    const logs = nodeLogs(folder)
    await mkdir(join(folder, 'var/log'), { recursive: true })
    await symlink(nas, join(folder, 'var/log/nas'))
    t.same(await logs(''), { kind: 'folder', names: ['nas'] })
    await t.rejects(logs('nas/file'), /^\/var\/log\/nas\/file is not read: .* is a remote file system \(fuse\)/)
    t.equal(await filesystemUsage()(join(nas, 'deep')), undefined)

    const memoryVolumes = join(memoryDirectory, 'pods/v/volumes')
    await mountHung(t, join(memoryVolumes, 'data'), { reads })
    const ofPod = aContainer({ identity: { podUID: 'v' } })
    const [used] = await readPodDisks([ofPod], { dataDirectory, memoryDirectory }, folderCounter())
    t.match(used?.volumes, [{ name: 'data', incomplete: /is mounted in it$/ }], 'mounted there by a container')

    server.answer()
    const again = async () => await store.place('u', hostPath(nas, 'Directory')).catch(() => undefined)
    while ((await again()) === undefined) await setTimeout(20)
    t.match(await filesystemUsage()(nas), { capacityBytes: 409_600, availableBytes: 204_800, usedBytes: 163_840 })

    const part = await store.part('u', hostPath(nas), '.', mount)
    const memory = { name: 'memory', kind: 'emptyDir', memory: true } as const
    const kept = await store.place('u', memory)
    t.same([await store.silence(nas), await store.silence(folder)], [undefined, undefined])
    server.hang()
    t.match(await store.silence(join(nas, 'deep')), { why: noAnswer.message })
    t.equal(await store.silence(local), undefined)
    await store.unmountParts('u')
    t.same(mountsAt(await mountPoints(), part), [], 'the machine does not wait for it when it stops')
    t.equal(mountsAt(await mountPoints(), kept).length, 1, 'a cancelled shutdown finds the files of the pod')
    server.answer()
    while ((await store.silence(nas)) !== undefined) await setTimeout(20)
    t.equal(await store.part('u', hostPath(nas), '.', mount), part)
    server.hang()
    t.equal(mountsAt(await mountPoints(), part).length, 1)
    await store.remove('u')
    t.same(mountsAt(await mountPoints(), part), [], 'the folder of its pod is removed while it hangs')
  })
}
