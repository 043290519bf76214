/**
 * An NFS server for kernels that have none: its helper `mount.nfs` binds a folder of this machine, and its port answers. Programs that are started
 * afterwards find the helper in their PATH. Needs root.
 */
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'

type Ending = { teardown(end: () => unknown): void }

/** Binds what the server exports. Its messages are those of mount.nfs. */
const helper = `#!/bin/sh
from=\${1#*:}
[ -d "$from" ] || { echo "mount.nfs: mounting $1 failed, reason given by server: No such file or directory" >&2; exit 32; }
exec mount --bind "$from" "$2"
`

export type BoundNas = {
  readonly address: string
  /** What it exports, under this path. */
  readonly folder: string
  /** Without them it is not reached. */
  readonly mountOptions: readonly string[]
}

export async function boundNas(t: Ending, folder: string): Promise<BoundNas> {
  const [bin, files] = [join(folder, 'bin'), join(folder, 'export')]
  for (const each of [bin, files]) await mkdir(each, { recursive: true })
  await writeFile(join(bin, 'mount.nfs'), helper)
  await chmod(join(bin, 'mount.nfs'), 0o755)
  const path = process.env['PATH'] ?? ''
  process.env['PATH'] = `${bin}:${path}`
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    process.env['PATH'] = path
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return { address: '127.0.0.1', folder: files, mountOptions: [`port=${port}`] }
}
