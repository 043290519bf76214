/** Questions to other name servers: a socket for each, which only that server reaches. */
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import { startDeadline } from '../../../daemon/deadline.ts'
import type { UpstreamSockets } from '../../network/names/forwarder.ts'

/** `port`: of the servers; another than 53 in tests. */
export function upstreamSockets(port = 53): UpstreamSockets {
  return {
    askUdp: (server, message, accepts, withinMs) =>
      new Promise((resolve, reject) => {
        const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4')
        let isOpen = true
        const end = (settle: () => void) => {
          if (!isOpen) return
          isOpen = false
          stop()
          socket.close()
          settle()
        }
        const fail = (cause: Error) => end(() => reject(new Error(`Name server ${server} was not reached`, { cause })))
        const stop = startDeadline(withinMs, () => fail(new Error(`No answer within ${withinMs} ms`)))
        socket.on('error', fail)
        socket.on('message', (bytes) => {
          const accepted = accepts(bytes)
          if (accepted !== undefined) end(() => resolve(accepted))
        })
        // Connected: the kernel takes datagrams from that address and port only, and reports a port that is closed.
        socket.once('connect', () => socket.send(message))
        socket.connect(port, server)
      }),
    askTcp: (server, message, accepts, withinMs) =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: server, port })
        let received = Buffer.alloc(0)
        const fail = (cause: Error) => {
          stop()
          socket.destroy()
          reject(new Error(`Name server ${server} was not reached over TCP`, { cause }))
        }
        const stop = startDeadline(withinMs, () => fail(new Error(`No answer within ${withinMs} ms`)))
        socket.on('error', fail)
        socket.once('end', () => fail(new Error('The server closed the connection')))
        socket.once('connect', () => {
          const length = Buffer.alloc(2)
          length.writeUInt16BE(message.length, 0)
          socket.write(Buffer.concat([length, message]))
        })
        socket.on('data', (chunk) => {
          received = Buffer.concat([received, chunk])
          // The length is one of 64 KiB at the most.
          if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
          const accepted = accepts(received.subarray(2, 2 + received.readUInt16BE(0)))
          if (accepted === undefined) return fail(new Error('The answer does not belong to the question'))
          stop()
          socket.destroy()
          resolve(accepted)
        })
      }),
  }
}
