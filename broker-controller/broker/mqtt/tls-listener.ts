/** The port: TCP connections wait for their turn, then for their handshake; those with a valid certificate are passed on. */
import { constants } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { Clock } from '../../../daemon/clock.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { BrokerLimits } from './broker-limits.ts'
import { addressOf } from './peer-certificate.ts'
import { pendingConnections } from './pending-connections.ts'

/** All PEM. */
export type BrokerTls = { readonly ca: string; readonly certificate: string; readonly key: string }

export type TlsListenerNeeds = {
  readonly tls: BrokerTls
  readonly limits: BrokerLimits
  readonly clock: Clock
  readonly log: LimitedLog
  readonly refused: (reason: 'Handshake' | 'HandshakeTimeout' | 'TooManyConnections') => void
  /** Call `accepted` when the CONNECT of the connection has been accepted; until then its time limit applies. */
  readonly onSecure: (socket: TLSSocket, accepted: () => void) => void
}

export interface TlsListener {
  /** Opens the port (0: any) and returns its number. Rejects when it cannot be opened, with Node.js' own error. */
  listen(port: number, host: string | undefined): Promise<number>
  /** For handshakes that begin from now on. Those in progress are closed at their end, because other authorities verified them. */
  renew(tls: BrokerTls): void
  /** Closes connections whose handshake or CONNECT is overdue. */
  checkTimes(): void
  /** Connections before an accepted CONNECT. */
  readonly pending: number
  /** Accepts no further connection. */
  close(): void
  /** Closes the remaining connections. */
  destroy(): void
}

export function tlsListener({ tls, limits, clock, log, refused, onSecure }: TlsListenerNeeds): TlsListener {
  /** Accepted sockets by the name of their connection, until they are closed. */
  const sockets = new Map<string, Socket>()
  /** How often the TLS settings were renewed before the handshake of a connection began. */
  const renewalsBefore = new WeakMap<Socket, number>()
  let renewals = 0
  const handshakes = createTlsServer({
    ...secureContext(tls),
    requestCert: true,
    rejectUnauthorized: true,
    noDelay: true,
  })
  const pending = pendingConnections<Socket>(
    {
      handshakes: limits.handshakes,
      handshakesPerAddress: limits.handshakesPerAddress,
      pending: limits.pendingConnections,
      pendingPerAddress: limits.pendingPerAddress,
      waitMs: limits.handshakeWaitMs,
      handshakeMs: limits.connectTimeoutMs,
    },
    (socket) => {
      renewalsBefore.set(socket, renewals)
      handshakes.emit('connection', socket)
    },
    (socket) => {
      tooMany(addressOf(socket))
      socket.destroy()
    },
  )
  handshakes.on('tlsClientError', (error, socket) => {
    const address = addressOf(socket)
    refused('Handshake')
    log.info(`Handshake/${address}`, 'TLS handshake failed', { address, error })
    socket.destroy() // a plain tls.Server leaves it open
  })
  handshakes.on('secureConnection', (socket) => {
    const accepted = sockets.get(connectionName(socket))
    if (accepted !== undefined && renewalsBefore.get(accepted) !== renewals) return void socket.destroy()
    onSecure(socket, () => {
      if (accepted !== undefined) pending.remove(accepted, clock.monotonicMs())
    })
  })

  const tooMany = (address: string | undefined) => {
    refused('TooManyConnections')
    log.warn(`TooManyConnections/${address}`, 'MQTT connection refused: too many wait for their handshake', { address })
  }
  const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
    const name = connectionName(socket)
    const address = addressOf(socket)
    socket.on('error', () => undefined)
    sockets.set(name, socket)
    socket.once('close', () => {
      if (sockets.get(name) === socket) sockets.delete(name)
      pending.remove(socket, clock.monotonicMs())
    })
    if (address !== undefined && pending.add(socket, address, clock.monotonicMs())) return
    tooMany(address)
    socket.destroy()
  })
  server.maxConnections = limits.maxConnections
  server.on('drop', (data) => tooMany(data && addressOf(data)))
  server.on('error', (error) => log.warn('listener', 'MQTT listener failed', { error }))

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen({ port, backlog, ...(host !== undefined && { host }) }, () => {
          server.off('error', reject)
          const address = server.address()
          resolve(typeof address === 'object' && address !== null ? address.port : port)
        })
      }),
    renew(next) {
      renewals += 1
      handshakes.setSecureContext(secureContext(next))
    },
    checkTimes() {
      for (const socket of pending.overdue(clock.monotonicMs())) {
        refused('HandshakeTimeout')
        const address = addressOf(socket)
        log.info(`HandshakeTimeout/${address}`, 'MQTT connection closed: no handshake and CONNECT in time', { address })
        socket.destroy()
      }
    },
    get pending() {
      return pending.size
    },
    close: () => void server.close(),
    destroy() {
      for (const socket of sockets.values()) socket.destroy()
    },
  }
}

/** Connections that the kernel keeps until they are accepted: a fleet reconnects within seconds. */
const backlog = 4096

function secureContext({ ca, certificate, key }: BrokerTls) {
  // A client that resumes a session does not send its certificate again, and need not have its key.
  const secureOptions = constants.SSL_OP_NO_TICKET
  return { ca, cert: certificate, key, minVersion: 'TLSv1.2', secureOptions } as const
}

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

/** Node.js does not expose the socket below a TLS socket, so it is found by the addresses of the connection. */
function connectionName({ remoteAddress, remotePort, localAddress, localPort }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
