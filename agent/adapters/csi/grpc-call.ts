/**
 * One call of a gRPC server on a Unix socket, on a connection of its own: a driver that restarts makes a new socket, and calls are rare. A
 * server that never answers costs the caller its deadline, and the agent one open socket until then.
 */
import type { ClientHttp2Session } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { startDeadline } from '../../../daemon/deadline.ts'
import { codeOf, messageOf } from '../../../daemon/errors.ts'
import { GrpcError, grpcCodes } from '../../pods/volumes/csi/grpc-error.ts'
import type { GrpcMethod } from './csi-messages.ts'

/** As gRPC's default for what is received. */
const longestAnswer = 4 * 1024 * 1024
const longestMessage = 1_000

/** Rejects with GrpcError. */
export async function grpcCall<Out, In>(
  socketPath: string,
  { path, request, answer }: GrpcMethod<Out, In>,
  body: In,
  deadlineMs: number,
): Promise<Out> {
  // Loaded on demand: without a driver nothing in the agent uses it.
  const { connect } = await import('node:http2')
  const bytes = await new Promise<Buffer>((resolve, reject) => {
    const end = (settle: () => void) => {
      stop()
      session.destroy()
      settle()
    }
    const fail = (code: number, message: string) => end(() => reject(new GrpcError(code, message)))
    const stop = startDeadline(deadlineMs, () =>
      fail(grpcCodes.deadlineExceeded, `${path} was not answered within ${deadlineMs / 1000} s`),
    )
    const unavailable = (error: unknown) =>
      fail(grpcCodes.unavailable, `${socketPath} cannot be reached: ${codeOf(error) ?? messageOf(error)}`)
    const session = connect('http://localhost', {
      createConnection: () => connectSocket(socketPath).once('error', unavailable),
      settings: { enablePush: false },
    })
    session.on('error', unavailable)
    session.on('close', () => unavailable(new Error('the connection was closed')))
    refusePushes(session)
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      'grpc-timeout': `${deadlineMs}m`,
      te: 'trailers',
    })
    const status = grpcStatus()
    const chunks: Buffer[] = []
    let length = 0
    stream.once('response', status.note)
    stream.once('trailers', status.note)
    stream.on('error', unavailable)
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > longestAnswer) fail(grpcCodes.resourceExhausted, `${path} was answered with more than 4 MiB`)
      else chunks.push(chunk)
    })
    stream.once('end', () => {
      const { code, message } = status.read()
      if (code !== grpcCodes.ok) fail(code, message)
      else end(() => resolve(Buffer.concat(chunks)))
    })
    stream.end(framed(request.encode(body)))
  })
  try {
    return answer.decode(unframed(bytes))
  } catch (cause) {
    throw new GrpcError(grpcCodes.internal, `${path} was answered with what is not its message: ${messageOf(cause)}`)
  }
}

/** A server may push before it has read the settings: an error of such a stream, which has no other listener, would end the agent. */
function refusePushes(session: ClientHttp2Session): void {
  session.on('stream', (pushed) => pushed.on('error', () => undefined).close())
}

type Headers = { readonly [name: string]: unknown }

/** In the trailers; of an answer without a message, in its headers. */
function grpcStatus() {
  let found: Headers = {}
  return {
    note(headers: Headers) {
      found = { ...found, ...headers }
    },
    read(): { readonly code: number; readonly message: string } {
      const status = found['grpc-status']
      // The connection ended in the call, or it is another server. The driver may still work on it.
      if (status === undefined) return { code: grpcCodes.unavailable, message: 'the answer has no status of gRPC' }
      const code = /^\d{1,3}$/.test(String(status)) ? Number(status) : grpcCodes.unknown
      return { code, message: decoded(String(found['grpc-message'] ?? '')).slice(0, longestMessage) }
    },
  }
}

/** Percent-encoded (gRPC over HTTP2, "Responses"). */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Not compressed, and the length. */
function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** Throws RangeError if it is not one whole message. */
function unframed(frame: Buffer): Buffer {
  if (frame.length < 5) throw new RangeError('The answer has no message')
  if (frame[0] !== 0) throw new RangeError('The message is compressed')
  const message = frame.subarray(5)
  if (frame.readUInt32BE(1) !== message.length) throw new RangeError(`The message has ${message.length} bytes`)
  return message
}
