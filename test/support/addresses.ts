/** Addresses of a test's own: several test files run on this machine at once, and each makes networks. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * The first three numbers of a `/20` that no other test of this machine gets while this process lives: `10.64.16`, and
 * with it `10.64.17` to `10.64.31`. No engine's bridge and no test machine uses them (those are in 10.128.0.0/9), and
 * no Service: by default those are in 10.96.0.0/12.
 */
export async function ownAddresses(): Promise<string> {
  for (;;) {
    const prefix = `10.${64 + randomInt(32)}.${randomInt(16) * 16}`
    if (await take(prefix)) return prefix
  }
}

/**
 * The first three numbers of a `/24` of machines or of an engine's bridge, from 10.128.0.0/9 without 10.244.0.0/16: a node with an
 * address of the fleet's clusterCIDR, which is that by default, has no part in the network of pods. It may be taken.
 */
export function machineAddresses(): string {
  return `10.${randomInt(128, 244)}.${randomInt(0, 256)}`
}

/** The kernel keeps the book: a name of a socket is one process's, until it ends, however it ends. */
async function take(prefix: string): Promise<boolean> {
  const server = createServer().listen(`\0bramble-test-addresses-${prefix}`).unref()
  try {
    await once(server, 'listening')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return false
    throw new Error(`Cannot ask for the addresses ${prefix}`, { cause: error })
  }
}
