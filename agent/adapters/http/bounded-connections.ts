/** Bounds the connections of a server. A new one is always accepted: connections that are held open do not keep others out. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A request is a line or two from this machine, so it arrives at once. */
const idleMs = 5_000
/** For an answer to be made and read. */
const answerMs = 30_000

/**
 * Beyond `most` the oldest connection is closed: of those without a request, else of all. A connection without traffic is
 * closed after 5 s, and after 30 s while it has a request.
 */
export function boundConnections(server: Server, most: number): void {
  /** In the order of their coming. True: a request of it is being answered. */
  const open = new Map<Socket, boolean>()
  const closeOldest = () => {
    const [idle] = [...open].find(([, isBusy]) => !isBusy) ?? []
    const [oldest] = open.keys()
    const victim = idle ?? oldest
    if (victim === undefined) return
    open.delete(victim)
    victim.destroy()
  }
  const note = (socket: Socket, isBusy: boolean) => {
    if (open.has(socket)) open.set(socket, isBusy)
  }
  server.timeout = idleMs
  server.on('connection', (socket: Socket) => {
    if (open.size >= most) closeOldest()
    open.set(socket, false)
    socket.once('close', () => open.delete(socket))
  })
  server.on('request', ({ socket }: { readonly socket: Socket }, response: ServerResponse) => {
    note(socket, true)
    socket.setTimeout(answerMs)
    response.once('close', () => {
      note(socket, false)
    })
  })
}
