/**
 * File systems that may stop answering because their server or their process has. A file call on one would hold a thread of Node.js:
 * four such calls stop all file calls, and one keeps the process from exiting. /proc/self/mountinfo always answers.
 */
import { readlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type MountPoint, mountPoints } from '../mounts.ts'

const remoteTypes = /^(nfs4?|cifs|smb3|smbfs|ceph|9p|glusterfs|lustre|ocfs2|gfs2|afs|autofs|fuse|fuseblk|fuse\..+)$/
/** As the kernel's MAXSYMLINKS. */
const mostLinks = 40

/** A machine whose root is remote has nothing that answers without it. */
export function isRemote({ path, type }: Pick<MountPoint, 'path' | 'type'>): boolean {
  return path !== '/' && remoteTypes.test(type)
}

/** Steps of a path that lead nowhere else. */
const staying = new Set(['', '.'])

/**
 * The remote mount that `path` leads to or through, with links resolved; undefined if there is none. Calls are made on what is above a
 * remote mount only, and none at all on a machine without remote mounts.
 */
export async function remoteMountOn(
  path: string,
  points: () => Promise<readonly MountPoint[]> = mountPoints,
): Promise<MountPoint | undefined> {
  const remote = (await points()).filter(isRemote)
  if (remote.length === 0) return undefined
  const rest = path.split('/')
  let at = ''
  let links = 0
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (staying.has(part)) continue
    if (part === '..') {
      at = dirname(at || '/').replace(/^\/$/, '')
      continue
    }
    const next = `${at}/${part}`
    const found = remote.findLast((mount) => mount.path === next)
    if (found !== undefined) return found
    const target = await readlink(next).catch(() => undefined)
    if (target === undefined) {
      at = next
      continue
    }
    if (++links > mostLinks) return undefined // ELOOP for every call
    if (target.startsWith('/')) at = ''
    rest.unshift(...target.split('/'))
  }
  return undefined
}
