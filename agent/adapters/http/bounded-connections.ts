/** Bounds the connections of a server. A new connection is always accepted, so that idle connections do not block others. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A request is a line or two from this machine, so it arrives within moments. */
const idleMs = 5_000
/** Time to create and send the response. */
const answerMs = 30_000

/**
 * Above `most` the oldest connection is closed: one without a request if possible. An idle connection is closed after `idle`
 * milliseconds, or after 30 s during a request.
 */
export function boundConnections(server: Server, most: number, idle = idleMs): void {
  /** In the order of arrival. True: a request is being answered. */
  const open = new Map<Socket, boolean>()
  const closeOldest = () => {
    const [free] = [...open].find(([, isBusy]) => !isBusy) ?? []
    const [oldest] = open.keys()
    const victim = free ?? oldest
    if (victim === undefined) return
    open.delete(victim)
    victim.destroy()
  }
  const note = (socket: Socket, isBusy: boolean) => {
    if (open.has(socket)) open.set(socket, isBusy)
  }
  server.timeout = idle
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
