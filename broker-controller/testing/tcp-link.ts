/** A TCP connection to a server that can be held and lost, as a `Connection`. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Connection } from './remote-store.ts'

export type TcpLink = Connection & { readonly port: number; close(): void }

/** Listens on a free port of 127.0.0.1, and passes on to `port`. */
export async function tcpLink(port: number): Promise<TcpLink> {
  const sockets = new Set<Socket>()
  let held: 'requests' | 'answers' | undefined
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    const pass = (from: Socket, to: Socket, what: typeof held) => {
      sockets.add(from)
      from.on('data', (bytes) => {
        if (held !== what) to.write(bytes)
      })
      from.on('error', () => undefined)
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
    pass(client, upstream, 'requests')
    pass(upstream, client, 'answers')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: ownPort } = server.address() as AddressInfo
  const destroyAll = () => {
    for (const socket of [...sockets]) socket.destroy()
  }
  return {
    port: ownPort,
    hold(what) {
      held = what
    },
    lose() {
      server.close()
      destroyAll()
    },
    restore() {
      held = undefined
      server.listen(ownPort, '127.0.0.1')
    },
    close() {
      destroyAll()
      server.close()
    },
  }
}
