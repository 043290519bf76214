import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/** The first port of Linux' range of ephemeral ports. */
const firstOfKernel = 32_768
const first = 20_000

/**
 * A free port of this machine outside of the kernel's range of ephemeral ports. No other test gets it while this process lives: several
 * run at once, and what listens on it is often started later.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, firstOfKernel)
    if ((await isOurs(port)) && (await isFree(port))) return port
  }
}

/** The kernel keeps the book: a name of a socket is one process's, until it ends, however it ends. */
async function isOurs(port: number): Promise<boolean> {
  return listens(createServer().listen(`\0bramble-test-port-${port}`).unref())
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port)
  if (!(await listens(server))) return false
  server.close()
  await once(server, 'close')
  return true
}

async function listens(server: Server): Promise<boolean> {
  try {
    await once(server, 'listening')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return false
    throw error
  }
}
