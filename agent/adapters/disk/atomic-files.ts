/**
 * A folder of files that change atomically, in Kubernetes' layout (pkg/volume/util/atomic_writer.go): the files are in a
 * versioned folder, `..data` is a link to it, and each name is a link through `..data`. Readers see the old files or the new
 * ones, never both.
 */
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { VolumeFile } from '../../pods/volumes/volume-store.ts'

const dataLink = '..data'

/** `files` have paths inside the folder. Returns whether anything was written. */
export async function replaceFiles(
  folder: string,
  files: readonly VolumeFile[],
  group: number | undefined,
): Promise<boolean> {
  const current = await readlink(join(folder, dataLink)).catch(() => undefined)
  if (current !== undefined && (await isThere(join(folder, current), files, group))) {
    await finish(folder, current, files)
    return false
  }
  const fresh = await mkdtemp(`${folder}/..at-`)
  await own(fresh, 0o755, group)
  for (const { path, content, mode, owner } of files) {
    const target = join(fresh, path)
    await makeFolders(fresh, dirname(path), group)
    await writeFile(target, content, { mode: 0o600 })
    await own(target, mode, group, owner)
  }
  const name = fresh.slice(folder.length + 1)
  const aside = join(folder, '..data_new')
  await rm(aside, { force: true })
  await symlink(name, aside)
  await rename(aside, join(folder, dataLink))
  await finish(folder, name, files)
  return true
}

/** Whether files were written to this folder before. */
export async function hasFiles(folder: string): Promise<boolean> {
  const current = await readlink(join(folder, dataLink)).catch(() => undefined)
  return current !== undefined
}

/**
 * Links each name to its file and removes old names and the remains of an interrupted write. Folders that were made for a `subPath` stay: a
 * container has them mounted.
 */
async function finish(folder: string, current: string, files: readonly VolumeFile[]): Promise<void> {
  const names = new Set(files.map(({ path }) => path.split('/').find((part) => part !== '') ?? ''))
  const entries = await readdir(folder, { withFileTypes: true })
  const present = new Set(entries.map(({ name }) => name))
  for (const name of names) if (!present.has(name)) await symlink(join(dataLink, name), join(folder, name))
  const kept = new Set([dataLink, current, ...names])
  for (const entry of entries) {
    const { name } = entry
    if (kept.has(name) || (entry.isDirectory() && !name.startsWith('..'))) continue
    await rm(join(folder, name), { recursive: true, force: true })
  }
}

async function isThere(data: string, files: readonly VolumeFile[], group: number | undefined): Promise<boolean> {
  try {
    const entries = await readdir(data, { recursive: true, withFileTypes: true })
    if (entries.filter((entry) => !entry.isDirectory()).length !== files.length) return false
    for (const { path, content, mode, owner } of files) {
      const { mode: now, gid, uid } = await stat(join(data, path))
      if ((now & 0o7777) !== mode || (group !== undefined && gid !== group)) return false
      if (uid !== (owner ?? agentUser())) return false
      if (!content.equals(await readFile(join(data, path)))) return false
    }
    return true
  } catch {
    return false // An unreadable file is written again.
  }
}

async function makeFolders(root: string, path: string, group: number | undefined): Promise<void> {
  let folder = root
  for (const part of path.split('/').filter((one) => one !== '' && one !== '.')) {
    folder = join(folder, part)
    const made = await mkdir(folder, { recursive: true })
    if (made !== undefined) await own(folder, 0o755, group)
  }
}

async function own(path: string, mode: number, group: number | undefined, owner = agentUser()): Promise<void> {
  if (group !== undefined || owner !== agentUser()) await chown(path, owner, group ?? process.getgid?.() ?? 0)
  await chmod(path, mode)
}

function agentUser(): number {
  return process.getuid?.() ?? 0
}
