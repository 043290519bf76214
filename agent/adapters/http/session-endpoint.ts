/** The agent's HTTP on the streams of sessions, for the node proxy of the API. Nothing listens for it. */
import { createServer } from 'node:http'
import type { Duplex } from 'node:stream'
import { answerFromNode, type EndpointView } from './endpoint-answers.ts'

/** Answers the requests that come on the stream. It ends with the stream. */
export function sessionEndpoint(view: EndpointView): (stream: Duplex) => void {
  // A session has one request. It is as long in coming as its controller, and ends with it.
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
    request.resume()
    void answerFromNode(view, { reach: 'controller' }, request, response)
  })
  return (stream) => void server.emit('connection', stream)
}
