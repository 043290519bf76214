/** HTTP servers for the health checks of load balancers: any request to a port gets the same answer. */
import { createServer, type Server } from 'node:http'
import type { HealthServers } from '../../network/services/health-check-manager.ts'
import { boundConnections } from '../http/bounded-connections.ts'

/** At one port. A balancer asks every few seconds. */
const mostConnections = 32

/** In milliseconds. */
export type HealthServerTimes = {
  /** A connection on which nothing arrives is closed after this time. */
  readonly idleMs: number
  readonly headersTimeout: number
  readonly requestTimeout: number
  /** How often the two above are enforced. */
  readonly connectionsCheckingInterval: number
  /** Time for which a connection is kept after an answer. */
  readonly keepAliveTimeout: number
}

const usualTimes: HealthServerTimes = {
  idleMs: 5_000,
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 5_000, // Node.js checks every 30 s otherwise
  keepAliveTimeout: 1_000,
}

/** `host`: all IPv4 addresses, as those of the Services. */
export function healthServers(host = '0.0.0.0', times: Partial<HealthServerTimes> = {}): HealthServers {
  const { idleMs, ...limits } = { ...usualTimes, ...times }
  const servers = new Map<number, Server>()
  return {
    async open(port, answer) {
      const server = createServer(limits, (request, response) => {
        request.resume()
        const { status, headers, body } = answer()
        response.writeHead(status, headers).end(body)
      })
      boundConnections(server, mostConnections, idleMs)
      await new Promise<void>((resolve, reject) => {
        server.once('error', (cause) => reject(new Error(`Cannot listen on port ${port}`, { cause })))
        server.listen(port, host, resolve)
      })
      servers.set(port, server)
    },
    async close(port) {
      const server = servers.get(port)
      servers.delete(port)
      server?.closeAllConnections()
      await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
    },
  }
}
