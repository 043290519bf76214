/** Real volumes in a test: in a folder of their own, unmounted and removed when it ends. Needs root. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { mountPoints, mountsAt, unmount } from '../../agent/adapters/disk/mounts.ts'
import { type DiskVolumes, volumeFolders, volumeStore } from '../../agent/adapters/disk/volume-store.ts'
import type { Log } from '../../daemon/log.ts'
import type { Ending } from './dockerd.ts'

export type TestVolumes = {
  readonly store: DiskVolumes
  readonly folder: string
  readonly dataDirectory: string
  readonly memoryDirectory: string
}

export async function testVolumes(t: Ending): Promise<TestVolumes> {
  const folder = await mkdtemp(join(tmpdir(), 'bv-'))
  const [dataDirectory, memoryDirectory] = [join(folder, 'data'), join(folder, 'memory')]
  t.teardown(() => removeMounted(folder))
  return { folder, dataDirectory, memoryDirectory, store: volumeStore({ dataDirectory, memoryDirectory }) }
}

/** The volumes, with a folder of the kubelet. As on a machine with systemd, what is mounted below it reaches the pods that ask for that. */
export async function withKubelet({ folder, dataDirectory, memoryDirectory }: TestVolumes, log: Log) {
  const directory = join(folder, 'kubelet')
  await mkdir(join(directory, 'pods'), { recursive: true })
  await makeShared(directory)
  return { directory, store: volumeStore({ dataDirectory, memoryDirectory }, { kubelet: { directory, log } }) }
}

/** Mounts in the folder reach other mounts of it. */
export async function makeShared(folder: string): Promise<void> {
  await promisify(execFile)('mount', ['--bind', folder, folder])
  await promisify(execFile)('mount', ['--make-shared', folder])
}

/** Ends an agent with the test, and then what it left in memory for the one that comes after it. */
export function endOfAgent(t: Ending, dataDir: string): (end: () => Promise<unknown>) => void {
  return (end) =>
    t.teardown(async () => {
      await end()
      if (!existsSync(dataDir)) return
      const { memoryDirectory } = await volumeFolders(dataDir)
      await removeMounted(memoryDirectory)
      await rm(`${memoryDirectory}.starts`, { force: true })
    })
}

async function removeMounted(folder: string): Promise<void> {
  const mounted = async () => mountsAt(await mountPoints(), folder)
  for (const { path } of [...(await mounted())].reverse()) await unmount(path)
  if ((await mounted()).length === 0) await rm(folder, { recursive: true, force: true })
}
