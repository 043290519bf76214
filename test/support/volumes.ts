/** Real volumes in a test: in a folder of their own, unmounted and removed when it ends. Needs root. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mountPoints, mountsAt, unmount } from '../../agent/adapters/mounts.ts'
import { volumeStore } from '../../agent/adapters/volume-store.ts'
import type { VolumeStore } from '../../agent/pods/volumes/volume-store.ts'
import type { Ending } from './dockerd.ts'

export type TestVolumes = {
  readonly store: VolumeStore
  readonly folder: string
  readonly dataDirectory: string
  readonly memoryDirectory: string
}

export async function testVolumes(t: Ending): Promise<TestVolumes> {
  const folder = await mkdtemp(join(tmpdir(), 'bv-'))
  const [dataDirectory, memoryDirectory] = [join(folder, 'data'), join(folder, 'memory')]
  t.teardown(async () => {
    const mounted = async () => mountsAt(await mountPoints(), folder)
    for (const { path } of [...(await mounted())].reverse()) await unmount(path)
    if ((await mounted()).length === 0) await rm(folder, { recursive: true, force: true })
  })
  return { folder, dataDirectory, memoryDirectory, store: volumeStore({ dataDirectory, memoryDirectory }) }
}
