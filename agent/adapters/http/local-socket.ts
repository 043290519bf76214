/** A unix socket that only this process's user can open, from the moment of its creation. */
import { chmod, lstat, mkdir, mkdtemp, rename, rm, unlink } from 'node:fs/promises'
import type { Server } from 'node:net'
import { dirname, join } from 'node:path'

/**
 * Socket path of the agent whose in-memory volumes are in this folder. It fits a socket address (107 bytes including
 * the random suffix).
 */
export function localSocketPath(memoryDirectory: string): string {
  return `${memoryDirectory}.sock`
}

const groupOrOthersWrite = 0o022

/**
 * Listens on `path`, with mode 0600. Replaces a socket of an earlier process. Creates a missing folder with mode 0700; rejects if
 * another user may write in it. Returns a function that removes the socket.
 */
export async function listenPrivately(server: Server, path: string): Promise<() => Promise<void>> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await checkFolder(folder)
  // bind(2) applies only the umask, which belongs to the whole process. Therefore the socket is created in a folder that no other
  // user can enter.
  const aside = await mkdtemp(join(folder, '.socket-'))
  try {
    const made = join(aside, 's')
    await listening(server, made)
    await chmod(made, 0o600)
    await rename(made, path)
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
  return () => unlink(path).catch(() => undefined)
}

async function checkFolder(folder: string): Promise<void> {
  const found = await lstat(folder)
  if (!found.isDirectory()) throw new Error(`${folder} is not a directory`)
  if (found.uid !== process.geteuid?.()) throw new Error(`${folder} belongs to user ${found.uid}`)
  if ((found.mode & groupOrOthersWrite) !== 0)
    throw new Error(`Other users may write in ${folder}: chmod go-w ${folder}`)
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
