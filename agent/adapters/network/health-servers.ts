/** HTTP servers for the health checks of load balancers: any request to a port gets the same answer. */
import { createServer, type Server } from 'node:http'
import type { HealthServers } from '../../network/services/health-check-manager.ts'
import { boundConnections } from '../http/bounded-connections.ts'

/** At one port. A balancer asks every few seconds. */
const mostConnections = 32

/** `host`: all addresses of IPv4, as those of the Services. */
export function healthServers(host = '0.0.0.0'): HealthServers {
  const servers = new Map<number, Server>()
  return {
    async open(port, answer) {
      const server = createServer(
        { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 1_000 },
        (request, response) => {
          request.resume()
          const { status, headers, body } = answer()
          response.writeHead(status, headers).end(body)
        },
      )
      boundConnections(server, mostConnections)
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
