/** The DNS settings of this machine, and the names that it resolves itself. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseResolver, type Resolver } from '../../pods/options/pod-dns.ts'
import { isLocal } from '../../pods/options/resolv-conf.ts'

/** A local resolver cannot be reached from a pod: its upstream servers are used then. */
export async function readResolver(root: string): Promise<Resolver> {
  const own = await read(join(root, 'etc/resolv.conf'))
  if (own.servers.some((server) => !isLocal(server))) return own
  const behind = await read(join(root, 'run/systemd/resolve/resolv.conf'))
  return behind.servers.length > 0 ? behind : own
}

/** Each pod on the machine's network has a copy in memory. */
const longestHosts = 64 * 1024

/** undefined: there is none, or it is longer than what each pod may copy. */
export async function readHosts(root: string): Promise<string | undefined> {
  const path = join(root, 'etc/hosts')
  try {
    const { size } = await stat(path)
    return size > longestHosts ? undefined : await readFile(path, 'utf8')
  } catch {
    return undefined
  }
}

async function read(path: string): Promise<Resolver> {
  return parseResolver(await readFile(path, 'utf8').catch(() => ''))
}
