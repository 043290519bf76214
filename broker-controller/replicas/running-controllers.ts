/** Which of the other controllers run now: those whose API accepts a connection. */
import { connect } from 'node:net'
import { withinOr } from '../../daemon/deadline.ts'

const connectMs = 1_000

/** `apiServers`: `https://HOST:PORT` of each. Resolves with those that run. */
export async function runningControllers(apiServers: readonly string[]): Promise<readonly string[]> {
  const running = await Promise.all(apiServers.map(async (server) => ((await isOpen(new URL(server))) ? [server] : [])))
  return running.flat()
}

async function isOpen({ hostname, port }: URL): Promise<boolean> {
  const socket = connect({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 443) })
  const opened = new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
  })
  try {
    return await withinOr(connectMs, false, opened)
  } finally {
    socket.destroy()
  }
}
