/**
 * Read-only HTTP on this machine. Any local user, and any pod on the host's network, can connect to a port of 127.0.0.1, so it
 * serves only health and metrics. Pod specifications, which contain environment values, are served on a unix socket for the
 * agent's own user.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { aborted } from '../../../daemon/aborted.ts'
import type { Log } from '../../../daemon/log.ts'
import { boundConnections } from './bounded-connections.ts'
import { answerFromNode, type EndpointView } from './endpoint-answers.ts'
import { listenPrivately } from './local-socket.ts'

export type LocalEndpointNeeds = { readonly view: EndpointView; readonly log: Log }
export type LocalEndpointSettings = {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The path of the socket that serves everything; short enough for a socket address (107 bytes including the random suffix). */
  readonly socketPath: string
}

export interface LocalEndpoint {
  /** Undefined while nothing listens. */
  url(): string | undefined
  run(signal: AbortSignal): Promise<void>
}

/** Each request may read all pods; a person and a scraper need two or three concurrent ones. */
const mostConnections = 64

/** The agent runs without a port or socket that it cannot open: its pods have precedence over queries. */
export function localEndpoint({ view, log }: LocalEndpointNeeds, settings: LocalEndpointSettings): LocalEndpoint {
  const { host, port, socketPath } = settings
  let url: string | undefined

  const served = (reach: 'port' | 'socket') => {
    const server = createServer(
      { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 1_000 },
      (request, response) => void answerFromNode(view, { reach, host }, request, response),
    )
    boundConnections(server, mostConnections)
    return server
  }

  const openPort = async (server: Server) => {
    try {
      const at = await listening(server, host, port)
      url = `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
      log.info('Local endpoint open', { url })
    } catch (error) {
      log.error('Cannot open the local endpoint, continuing without it', {
        error,
        remedy: `Another agent, or a kubelet, may have port ${port}: choose another with --healthz-port, or 0 for any`,
      })
    }
  }

  /** Resolves with a function that removes it. */
  const openSocket = async (server: Server): Promise<() => Promise<void>> => {
    try {
      const remove = await listenPrivately(server, socketPath)
      log.info('Local socket open', { path: socketPath })
      return remove
    } catch (error) {
      log.warn('Cannot open the local socket, continuing without it', { path: socketPath, error })
      return async () => undefined
    }
  }

  return {
    url: () => url,
    async run(signal) {
      const servers = { port: served('port'), socket: served('socket') }
      const [removeSocket] = await Promise.all([openSocket(servers.socket), openPort(servers.port)])
      await aborted(signal)
      url = undefined
      await removeSocket()
      for (const server of [servers.port, servers.socket]) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

function listening(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(new Error(`Cannot listen on ${host}:${port}`, { cause })))
    server.listen(port, host, () => {
      const address = server.address()
      if (address !== null && typeof address === 'object') resolve(address)
    })
  })
}
