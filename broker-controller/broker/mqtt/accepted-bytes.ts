/** The amount of data of a TLS connection that the kernel has accepted. */
import type { TLSSocket } from 'node:tls'

/**
 * Bytes that the kernel has accepted, with those of TLS. `writableLength` of a TLS socket falls only when a message is accepted whole, which
 * takes minutes for a large one on a slow link. Node.js has no public name for what waits below; its own socket timeouts
 * read the same property (`_onTimeout` in lib/net.js). Without it the result counts whole messages.
 */
export function acceptedBytes(socket: TLSSocket): number {
  const handle = property(property(socket, '_parent'), '_handle')
  const [written, waiting] = [property(handle, 'bytesWritten'), property(handle, 'writeQueueSize')]
  if (typeof written === 'number' && typeof waiting === 'number') return written - waiting
  return socket.bytesWritten - socket.writableLength
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
