/**
 * The programs that listen on TCP ports, from `/proc`. All open files are searched at most once, and only if a port is in use.
 */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Listener } from '../ports.ts'

/** Bound on the search: on a busy machine it takes many seconds. */
const ownersMs = 2_000

/**
 * Those of `ports` that a program listens on; undefined where the kernel shows no sockets. Only root can see the programs of
 * other users. A program that is not found within `patienceMs` has no name.
 */
export async function listeningPorts(
  root: string,
  ports: readonly number[],
  patienceMs = ownersMs,
): Promise<readonly Listener[] | undefined> {
  const tables = await Promise.all(['tcp', 'tcp6'].map((name) => textOf(join(root, 'proc/net', name))))
  const shown = tables.filter((table) => table !== undefined)
  if (shown.length === 0) return undefined
  const all = shown.flatMap((table) => table.split('\n').slice(1).flatMap(listening))
  const sockets = all.filter(({ port }) => ports.includes(port))
  const owners = await ownersOf(root, new Set(sockets.map(({ inode }) => inode)), performance.now() + patienceMs)
  return sockets.map(({ port, inode }) => ({ port, by: owners.get(inode) }))
}

/** `sl local_address rem_address st …`, all in hexadecimal; 0A is LISTEN. */
function listening(line: string): readonly { readonly port: number; readonly inode: string }[] {
  const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
  if (state !== '0A' || local === undefined || inode === undefined) return []
  return [{ port: Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16), inode }]
}

/** Socket number → the program that has it open, for those found in time. */
async function ownersOf(
  root: string,
  sought: ReadonlySet<string>,
  untilMs: number,
): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>()
  const pids = sought.size === 0 ? [] : (await readdir(join(root, 'proc'))).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    if (owners.size === sought.size || performance.now() >= untilMs) break
    const folder = join(root, 'proc', pid)
    const files = await readdir(join(folder, 'fd')).catch(() => [])
    const links = await Promise.all(files.map((file) => readlink(join(folder, 'fd', file)).catch(() => '')))
    const inodes = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []).filter((one) => sought.has(one))
    if (inodes.length === 0) continue
    const name = (await textOf(join(folder, 'comm')))?.trim() ?? 'a program'
    for (const inode of inodes) owners.set(inode, `${name} (process ${pid})`)
  }
  return owners
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
