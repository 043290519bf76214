import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** The first port of Linux' range of ephemeral ports. */
const firstOfKernel = 32_768
const first = 20_000

/** A free port of this machine outside of the kernel's range of ephemeral ports. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(first, firstOfKernel)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port)
  try {
    await once(server, 'listening')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return false
    throw error
  }
  server.close()
  await once(server, 'close')
  return true
}
