/**
 * `/var/log/pods` and `/var/log/containers`: links to the log files of Docker. Pods may write there through a hostPath, so folders
 * are opened without following links. A link that has the name of a new one is replaced, and links to logs that are gone are removed;
 * files of others stay.
 */
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readlink, rmdir, stat, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { type LogLink, logLinks, type PodLogLinks } from '../../pods/sync/log-links.ts'
import { entryOf, listEntries, openFolder } from './open-folders.ts'

/** `root`: of the machine. */
export function logLinkFolders(root: string, log: Log): PodLogLinks {
  /** By pod UID. */
  const made = new Map<string, readonly LogLink[]>()
  const logged = new Set<string>()

  /** Each failure is logged once, until the same succeeds. */
  const attempt = async (failure: string, act: (varLog: FileHandle) => Promise<void>): Promise<boolean> => {
    try {
      const varLog = await open(join(root, 'var/log'), constants.O_RDONLY | constants.O_DIRECTORY)
      await act(varLog).finally(() => varLog.close())
      logged.delete(failure)
      return true
    } catch (error) {
      if (!logged.has(failure)) log.warn(failure, { error })
      logged.add(failure)
      return false
    }
  }

  return {
    async observe(podUID, containers) {
      const wanted = logLinks(containers)
      const before = made.get(podUID) ?? []
      const added = wanted.filter((one) => !before.some((other) => isSame(one, other)))
      const removed = before.filter((one) => !wanted.some((other) => isSame(one, other)))
      if (added.length === 0 && removed.length === 0) return
      const kept = wanted.filter((one) => !added.includes(one))
      for (const link of removed) await attempt('Link to a log not removed', (varLog) => removeLink(varLog, link))
      for (const link of added) {
        if (await attempt('Link to a log not made', (varLog) => makeLink(varLog, link))) kept.push(link)
      }
      if (kept.length === 0) made.delete(podUID)
      else made.set(podUID, kept)
    },
    async clean() {
      await attempt('Links to logs not cleaned', cleanLinks)
    },
  }
}

function isSame(one: LogLink, other: LogLink): boolean {
  return one.name === other.name && one.target === other.target && one.folders.join('/') === other.folders.join('/')
}

async function makeLink(varLog: FileHandle, { folders, name, target }: LogLink): Promise<void> {
  await within(varLog, folders, true, async (folder) => {
    const path = entryOf(folder, name)
    const known = await targetOf(path)
    if (known === target) return
    if (known !== undefined) await unlink(path)
    await symlink(target, path)
  })
}

/** The folders of a pod go with their last link. */
async function removeLink(varLog: FileHandle, { folders, name, target }: LogLink): Promise<void> {
  await within(varLog, folders, false, async (folder) => {
    const path = entryOf(folder, name)
    if ((await targetOf(path)) === target) await unlink(path)
  })
  for (let depth = folders.length; depth > 1; depth--) {
    await within(varLog, folders.slice(0, depth - 1), false, (parent) => removeEmpty(parent, folders[depth - 1] ?? ''))
  }
}

/** Links whose container was removed while no agent was running. */
async function cleanLinks(varLog: FileHandle): Promise<void> {
  await within(varLog, ['pods'], false, async (pods) => {
    for (const pod of await namesIn(pods)) {
      await within(pods, [pod], false, async (folder) => {
        for (const container of await namesIn(folder)) {
          await within(folder, [container], false, (logs) => removeDangling(logs, /\/[0-9a-f]{64}-json\.log$/))
          await removeEmpty(folder, container)
        }
      })
      await removeEmpty(pods, pod)
    }
  })
  await within(varLog, ['containers'], false, (links) => removeDangling(links, /^\/var\/log\/pods\//))
}

async function removeDangling(folder: FileHandle, ours: RegExp): Promise<void> {
  for (const name of await namesIn(folder)) {
    const path = entryOf(folder, name)
    if (ours.test((await targetOf(path)) ?? '') && (await isDangling(path))) await unlink(path)
  }
}

/** Opens the folder below `from` without following links; does nothing if it does not exist and is not to be made. */
async function within(
  from: FileHandle,
  [name, ...rest]: readonly string[],
  make: boolean,
  act: (folder: FileHandle) => Promise<void>,
): Promise<void> {
  if (name === undefined) return await act(from)
  const path = entryOf(from, name)
  // The umask of the agent is 0077; collectors that are not root may read these folders.
  const isNew = make && (await mkdir(path).then(() => true, unless(['EEXIST'], false)))
  const folder = await openFolder(path).catch(unless(make ? [] : ['ENOENT', 'ENOTDIR', 'ELOOP'], undefined))
  if (folder === undefined) return
  try {
    if (isNew) await folder.chmod(0o755)
    await within(folder, rest, make, act)
  } finally {
    await folder.close()
  }
}

async function namesIn(folder: FileHandle): Promise<readonly string[]> {
  return (await listEntries(folder)).map(({ name }) => name)
}

/** undefined: it does not exist, or is not a link. */
async function targetOf(path: Buffer): Promise<string | undefined> {
  return await readlink(path).catch(unless(['ENOENT', 'EINVAL'], undefined))
}

async function isDangling(path: Buffer): Promise<boolean> {
  return await stat(path).then(() => false, unless(['ENOENT'], true))
}

async function removeEmpty(parent: FileHandle, name: string): Promise<void> {
  await rmdir(entryOf(parent, name)).catch(unless(['ENOENT', 'ENOTDIR', 'ENOTEMPTY', 'EEXIST'], undefined))
}

/** Handles errors of these codes, by `value`. */
function unless<Value>(codes: readonly string[], value: Value): (error: unknown) => Value {
  return (error) => {
    if (codes.includes(codeOf(error))) return value
    throw error
  }
}
