/** The DNS settings of this machine, and the names that it resolves itself. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeDnsAddress } from '../../../api/network/cluster-dns.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { parseResolver, type Resolver } from '../../pods/options/pod-dns.ts'
import { isLocal } from '../../pods/options/resolv-conf.ts'

/** A local resolver cannot be reached from a pod: its upstream servers are used then. */
export async function readResolver(root: string): Promise<Resolver> {
  const own = await read(join(root, 'etc/resolv.conf'))
  if (own.servers.some((server) => !isLocal(server))) return own
  const behind = await read(join(root, 'run/systemd/resolve/resolv.conf'))
  return behind.servers.length > 0 ? behind : own
}

/** Its servers are read again after this time. */
const serversMs = 10_000

/**
 * The name servers that the machine itself asks, local ones included, for the server that forwards the questions of pods: without its
 * own address, which a machine may be configured to ask.
 */
export function machineServers(root: string, clock: Pick<Clock, 'monotonicMs'>): () => Promise<readonly string[]> {
  let last: { readonly servers: readonly string[]; readonly atMs: number } | undefined
  return async () => {
    const nowMs = clock.monotonicMs()
    if (last !== undefined && nowMs - last.atMs < serversMs) return last.servers
    const { servers } = await read(join(root, 'etc/resolv.conf'))
    last = { servers: servers.filter((server) => server !== nodeDnsAddress), atMs: nowMs }
    return last.servers
  }
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
