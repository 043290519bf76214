/** Kept connections: the next request may arrive while the answer before it is still being written. */
import type { Server } from 'node:https'
import type { Duplex } from 'node:stream'

/**
 * Makes every connection of HTTP/1.1 of this server be read as a stream. While an answer larger than the socket's high-water mark
 * drains, Node.js pauses the HTTP parser at the next request (`parserOnIncoming` in lib/_http_server.js). Where the
 * parser reads the TLS handle directly, a pause does not hold back the records that are already decrypted: the parser
 * is executed while it is paused and the connection dies with `Parse Error: Paused`. A stream keeps those records until
 * it is resumed. A listener for `data` makes Node.js take the parser off the handle (`unconsume`, same file).
 * Call it after the server is created: the HTTP server's own listener must have run first.
 */
export function readAsStreams(server: Server): void {
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol !== 'h2') socket.on('data', ignore)
  })
}

/** For a connection that leaves HTTP: what comes on it is kept until it has its next reader. */
export function readNoMore(socket: Duplex): void {
  socket.off('data', ignore)
}

function ignore(): void {
  // Listening is what counts.
}
