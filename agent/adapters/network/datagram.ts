/** Answers to datagrams. */
import type { Socket } from 'node:dgram'

/** The source of a datagram, as its sender wrote it. */
export type DatagramSource = { readonly address: string; readonly port: number }

/**
 * Resolves when the kernel has taken or refused it, or the socket is closed. Never throws or rejects: a sender that forges packets can
 * use the source port 0, and `Socket.send` throws for it.
 */
export function sendDatagram(socket: Socket, message: Buffer, { address, port }: DatagramSource): Promise<void> {
  return new Promise((resolve) => {
    try {
      socket.send(message, port, address, () => resolve())
    } catch {
      resolve()
    }
  })
}
