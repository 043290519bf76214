/** The two ways to Docker: dockerode for requests with a body and for processes, and the bounded reader for what Docker reports. */
import { Agent } from 'node:http'
import { inspect } from 'node:util'
import Dockerode from 'dockerode'
import { type EngineReader, engineReader } from './connection.ts'

export type Engine = {
  /** Only for calls whose answers Docker itself determines: it keeps an answer in memory whole. */
  readonly docker: Dockerode
  readonly answers: EngineReader
}

/** The engine that listens at `socketPath`. */
export function dockerEngine(socketPath: string): Engine {
  return { docker: client(socketPath), answers: engineReader(socketPath) }
}

/** A client that ignores the environment: dockerode would read DOCKER_HOST. */
function client(socketPath: string): Dockerode {
  // No connection is kept for the next call: a dockerd that shuts down refuses new connections but serves open ones, and
  // containers started then are left broken. `keepAlive` stays true: for a request with `Connection: close` Docker does not read
  // the body to its end and does not notice that the client closed the connection, so an aborted pull would never end. dockerode
  // formats its options, including the agent, in a debug log at each call, which took minutes for a hundred calls.
  const agent = Object.assign(new Agent({ keepAlive: true }), {
    keepSocketAlive: () => false,
    [inspect.custom]: () => 'connections to Docker',
  })
  const link = { socketPath, agent, host: undefined, protocol: 'http', timeout: undefined } as const
  return new Dockerode(link)
}
