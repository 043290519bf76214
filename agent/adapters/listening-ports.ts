/** Who listens on which TCP port, from `/proc`: what it costs to look through all open files is paid once. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Listener } from '../doctor/ports.ts'

/** Undefined where the kernel shows no sockets. Of other users' programs only root sees which they are. */
export async function listeningPorts(root: string): Promise<readonly Listener[] | undefined> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => textOf(join(root, 'proc/net', name))))
  const shown = tables.filter((table) => table !== undefined)
  if (shown.length === 0) return undefined
  const sockets = shown.flatMap((table) => table.split('\n').slice(1).flatMap(listening))
  const owners = sockets.length === 0 ? new Map<string, string>() : await ownersOf(root)
  return sockets.map(({ port, inode }) => ({ port, by: owners.get(inode) }))
}

/** `sl local_address rem_address st …`, all in hexadecimal; 0A is LISTEN. */
function listening(line: string): readonly { readonly port: number; readonly inode: string }[] {
  const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
  if (state !== '0A' || local === undefined || inode === undefined) return []
  return [{ port: Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16), inode }]
}

/** A socket's number → who has it open. */
async function ownersOf(root: string): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>()
  const pids = (await readdir(join(root, 'proc'))).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    const folder = join(root, 'proc', pid)
    const files = await readdir(join(folder, 'fd')).catch(() => [])
    const links = await Promise.all(files.map((file) => readlink(join(folder, 'fd', file)).catch(() => '')))
    const inodes = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
    if (inodes.length === 0) continue
    const name = (await textOf(join(folder, 'comm')))?.trim() ?? 'a program'
    for (const inode of inodes) owners.set(inode, `${name} (process ${pid})`)
  }
  return owners
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
