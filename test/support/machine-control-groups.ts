/** Control groups of a test machine, in every hierarchy this host has: what is in them is the machine. */
import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const mounted = '/sys/fs/cgroup'

/** The folders whose `cgroup.procs` the machine's first process must be written to. */
export async function controlGroups(id: string, memoryBytes: number | undefined): Promise<readonly string[]> {
  const folders = (await hierarchies()).map((hierarchy) => join(hierarchy, id))
  for (const folder of folders) {
    await mkdir(folder, { recursive: true })
    // Under v1 these begin empty, and then no process may come in.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) await take(join(folder, '..', file), join(folder, file))
  }
  if (memoryBytes !== undefined) {
    for (const file of ['memory/ID/memory.limit_in_bytes', 'ID/memory.max']) {
      const path = join(mounted, file.replace('ID', id))
      if (await exists(path)) await writeFile(path, String(memoryBytes))
    }
  }
  return folders
}

/** Nothing is in them any more. */
export async function removeControlGroups(id: string): Promise<void> {
  for (const hierarchy of await hierarchies()) await removeGroup(join(hierarchy, id))
}

/** Folders of the hierarchies: with v2 alone the mount itself, else one for each controller. */
async function hierarchies(): Promise<readonly string[]> {
  if (await exists(join(mounted, 'cgroup.procs'))) return [mounted]
  const names = await readdir(mounted)
  const found = await Promise.all(
    names.map(async (name) => ((await exists(join(mounted, name, 'cgroup.procs'))) ? [join(mounted, name)] : [])),
  )
  return found.flat()
}

async function removeGroup(folder: string): Promise<void> {
  const inside = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of inside) if (entry.isDirectory()) await removeGroup(join(folder, entry.name))
  // A process that was killed is in it until it is gone for good.
  for (let tries = 0; tries < 100; tries++) {
    const left = await rmdir(folder).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'EBUSY',
    )
    if (!left) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function take(from: string, to: string): Promise<void> {
  if (!(await exists(to)) || (await readFile(to, 'utf8')).trim() !== '') return
  await writeFile(to, await readFile(from, 'utf8'))
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
