import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { quietLog } from '../../../../daemon/testing/quiet-log.ts'
import { testFolder } from '../../../../daemon/testing/test-folder.ts'
import type { ShownVolume } from '../../../pods/volumes/kubelet-places.ts'
import type { MountedFolder, MountPoint } from '../mounts.ts'
import { type FolderMounts, type KubeletPaths, kubeletPaths } from './kubelet-paths.ts'

const local = ['kubernetes.io~local-volume', 'pv-1']
const share = ['kubernetes.io~nfs', 'pv-2']

/** The mounts of a machine, of which nothing is mounted. One file system. */
function fakeMounts() {
  const list: (MountPoint & MountedFolder)[] = [{ path: '/', type: 'ext4', source: 'sda', device: '8:1', root: '/' }]
  const calls: string[] = []
  const fake = {
    calls,
    list,
    /** Below these paths nothing can be mounted, nor unmounted. */
    failing: new Set<string>(),
    add: (point: MountPoint & MountedFolder) => void list.push(point),
  }
  const mounts: FolderMounts = {
    points: async () => list,
    async bind(source, path) {
      if (fake.failing.has(source)) throw new Error(`${source} does not answer`)
      calls.push(`mount ${path}`)
      const covering = list.findLast((one) => one.path !== '/' && source.startsWith(one.path))
      const root = covering === undefined ? source : covering.root
      fake.add({ path, type: 'ext4', source: 'sda', device: covering?.device ?? '8:1', root })
    },
    async unmount(path) {
      if (fake.failing.has(path)) throw new Error(`Cannot unmount ${path}`)
      calls.push(`unmount ${path}`)
      list.splice(
        list.findLastIndex((one) => one.path === path),
        1,
      )
    },
  }
  return { ...fake, mounts }
}

/** A machine with pods and their volumes. `again`: an agent that starts. */
async function machine(t: Test) {
  const folder = testFolder(t, { kubelet: { pods: {} }, memory: {}, kept: {}, disk: { file: 'data' }, nas: {} })
  const kubelet = join(folder, 'kubelet')
  const pods = join(folder, 'memory')
  const volumes = new Map<string, readonly ShownVolume[]>()
  const log = quietLog(t)
  const fake = fakeMounts()
  const again = () =>
    kubeletPaths({
      ...{ kubeletDirectory: kubelet, log, mounts: fake.mounts },
      asideOf: (podUID) => join(pods, podUID),
      podUIDs: async () => [...volumes.keys()],
      isHere: async (podUID) => volumes.has(podUID),
      volumesOf: async (podUID) => volumes.get(podUID) ?? [],
      keep: async (podUID) => void (await mkdir(join(folder, 'kept', podUID), { recursive: true })),
    })
  const paths = again()
  const see = async (podUID: string, agent: KubeletPaths = paths) => {
    volumes.set(podUID, [])
    await agent.mounted(podUID, join(kubelet, 'pods'))
  }
  const remove = (podUID: string, agent: KubeletPaths = paths) =>
    agent.remove(podUID, async () => {
      volumes.delete(podUID)
      await rm(join(pods, podUID), { recursive: true, force: true })
    })
  const at = (podUID: string, ...place: readonly string[]) => join(kubelet, 'pods', podUID, 'volumes', ...place)
  volumes.set('a', [{ place: local, path: join(folder, 'disk') }])
  const shown = () => readdir(join(kubelet, 'pods')).then((names) => names.sort())
  return { ...fake, folder, kubelet, volumes, log, paths, again, see, remove, at, shown }
}

test('volumes are at the paths of the kubelet as long as a pod sees them', async (t) => {
  const { kubelet, volumes, folder, paths: agent, see, remove, at, shown, ...world } = await machine(t)
  volumes.set('idle', [])
  await agent.show('a')
  await agent.mounted('a', '/srv')
  t.same([await shown(), world.calls], [[], []], 'no pod sees them: nothing is made')
  await see('backup')
  t.same(await shown(), ['a', 'backup', 'idle'], 'each pod has a folder, as node agents of Velero demand')
  t.same(world.calls, [`mount ${at('a', ...local)}`])
  t.same(await readdir(join(folder, 'kept')), ['a', 'backup', 'idle'], 'a later agent removes them')
  volumes.set('b', [{ place: local, path: join(folder, 'disk') }])
  await agent.show('b')
  await agent.show('b')
  t.same(world.calls.slice(1), [`mount ${at('b', ...local)}`], 'once')
  await remove('b')
  t.same(await shown(), ['a', 'backup', 'idle'])
  await see('backup-2')
  await remove('backup')
  t.equal(world.calls.length, 3, 'another one sees them')
  await remove('backup-2')
  t.same([await shown(), world.list.length], [[], 1])
  await agent.show('a')
  t.same(await shown(), [])
  t.same(await readFile(join(folder, 'disk/file'), 'utf8'), 'data')
  t.same(world.log.messages('warn'), [])
  t.ok((await stat(join(kubelet, 'pods'))).isDirectory())
})

test('an agent that starts again shows nothing twice, and removes what an earlier one has shown', async (t) => {
  const { again, see, remove, volumes, calls, list, shown, folder } = await machine(t)
  await see('backup')
  const second = again()
  await second.show('a')
  t.equal(calls.length, 1)
  // The machine is started again: mounts and what is in memory are gone, and so is the pod that saw them.
  list.splice(1)
  await rm(join(folder, 'memory/backup'), { recursive: true })
  const third = again()
  volumes.delete('backup')
  await third.show('a')
  t.equal(calls.length, 1, 'no pod sees them')
  await remove('a', third)
  await remove('backup', third)
  t.same(await shown(), [])
})

test('an unmount that fails keeps all that it leads to, and the pod', async (t) => {
  const { see, remove, failing, at, folder, volumes, list } = await machine(t)
  await see('backup')
  failing.add(at('a', ...local))
  await t.rejects(remove('a'), /Cannot unmount/)
  t.equal(volumes.has('a'), true, 'the pod is not removed')
  t.equal(await readFile(join(folder, 'disk/file'), 'utf8'), 'data')
  failing.clear()
  await remove('a')
  t.equal(list.length, 1)
})

test('a folder that is not empty stays, with its files', async (t) => {
  const { see, remove, at, shown, kubelet } = await machine(t)
  await see('backup')
  await writeFile(join(at('a', ...local), 'left'), 'data')
  await mkdir(join(kubelet, 'pods/of-a-kubelet/volumes/kubernetes.io~empty-dir/cache'), { recursive: true })
  await remove('a')
  await remove('backup')
  t.equal(await readFile(join(at('a', ...local), 'left'), 'utf8'), 'data')
  t.same(await shown(), ['a', 'of-a-kubelet'])
})

test('links that a pod has put there are not followed', async (t) => {
  const { see, remove, volumes, at, folder, calls, log, kubelet, list } = await machine(t)
  await see('backup')
  const victim = join(folder, 'victim')
  await mkdir(join(victim, 'pv-1'), { recursive: true })
  // In place of a folder that the agent makes folders and mounts in.
  volumes.set('b', [{ place: local, path: join(folder, 'disk') }])
  await mkdir(join(kubelet, 'pods/b/volumes'), { recursive: true })
  await symlink(victim, at('b', 'kubernetes.io~local-volume'))
  await see('backup')
  t.equal(calls.length, 1)
  t.same(log.messages('warn'), ['Volumes not shown at the paths of the kubelet'])
  await remove('b')
  // In place of the folder of a volume, and of the whole pod.
  await rename(at('a', 'kubernetes.io~local-volume'), at('a', 'moved'))
  list.splice(1, 1, {
    path: at('a', 'moved', 'pv-1'),
    type: 'ext4',
    source: 'sda',
    device: '8:1',
    root: join(folder, 'disk'),
  })
  await symlink(victim, at('a', 'kubernetes.io~local-volume'))
  await symlink(folder, join(kubelet, 'pods/c'))
  volumes.set('c', [{ place: local, path: join(folder, 'disk') }])
  await see('backup')
  await remove('c')
  await remove('a')
  t.same(calls.slice(1), [`unmount ${at('a', 'moved', 'pv-1')}`], 'a mount is found where it is now')
  t.same(await readdir(victim), ['pv-1'], 'nothing is removed there')
  t.same((await readdir(folder)).sort(), ['disk', 'kept', 'kubelet', 'memory', 'nas', 'victim'])
})

test('a share that was mounted again is shown as it is now', async (t) => {
  const { see, paths, volumes, add, list, at, calls, folder } = await machine(t)
  const nas = join(folder, 'nas')
  const mounted = (device: string) => add({ path: nas, type: 'ext4', source: 'nas:/', device, root: '/' })
  mounted('0:50')
  volumes.set('a', [{ place: share, path: nas }])
  await see('backup')
  await paths.show('a')
  t.equal(calls.length, 1)
  list.splice(1, 1)
  mounted('0:51')
  await paths.show('a')
  const target = at('a', ...share)
  t.same(calls.slice(1), [`unmount ${target}`, `mount ${target}`])
})

test('what a driver has mounted stays, and a share among it goes', async (t) => {
  const { see, remove, volumes, folder, at, add, calls, list } = await machine(t)
  volumes.set('a', [{ place: ['kubernetes.io~csi', 'smb', 'mount'], path: join(folder, 'nas') }])
  const driven = at('a', 'kubernetes.io~csi', 'driven', 'mount')
  await mkdir(driven, { recursive: true })
  await writeFile(join(driven, '../vol_data.json'), '{}')
  add({ path: driven, type: 'ext4', source: 'sdb', device: '8:16', root: '/' })
  await see('backup')
  await remove('backup')
  const own = at('a', 'kubernetes.io~csi', 'smb', 'mount')
  t.same(calls, [`mount ${own}`, `unmount ${own}`])
  t.same(await readdir(at('a', 'kubernetes.io~csi')), ['driven'])
  t.equal(list.at(-1)?.path, driven)
})

test('a volume that does not answer keeps no other from being shown, nor its pod from starting', async (t) => {
  const { see, paths, volumes, failing, folder, at, calls, log } = await machine(t)
  const nas = join(folder, 'nas')
  failing.add(nas)
  volumes.set('a', [
    { place: share, path: nas },
    { place: ['kubernetes.io~empty-dir', 'gone'], path: join(folder, 'gone') },
    { place: local, path: join(folder, 'disk') },
  ])
  await see('backup')
  t.same(calls, [`mount ${at('a', ...local)}`])
  t.equal(log.messages('warn').length, 2)
  failing.clear()
  await paths.show('a')
  t.same(calls.slice(1), [`mount ${at('a', ...share)}`])
})
