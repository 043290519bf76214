/** The load of `api.ts`: what clients of the Kubernetes API do, over TLS on kept connections, and how long it takes. */
import { Agent, type RequestOptions, request } from 'node:https'
import { connect, type TLSSocket } from 'node:tls'
import type { ApiAccess } from '../../broker-controller/commands/connection/kubeconfig.ts'

export interface ApiLoad {
  /**
   * Resolves when `count` calls are answered, `writers` at a time, with the seconds they took. Rejects when a call is refused.
   */
  many(count: number, writers: number, call: (i: number) => Call): Promise<number>
  /** Bytes of the answer's body. Rejects on a refusal. */
  send(call: Call): Promise<number>
  /** The answer's body. Rejects on a refusal. */
  read(path: string): Promise<string>
  /** Opens a watch on a connection of its own; `onEvent` is called with each line. Resolves when the answer began. */
  watch(path: string, onEvent: () => void): Promise<void>
  close(): void
}

export type Call = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

const deadlineMs = 60_000
const newline = 10
/** Ends the lines of HTTP, and no event. */
const carriageReturn = 13

export function apiLoad({ url, ca, certificate, key }: ApiAccess): ApiLoad {
  const { hostname, port } = new URL(url)
  const tls = { ca, ...(certificate && { cert: certificate }), ...(key && { key }) }
  const kept = new Agent({ keepAlive: true, maxSockets: 64, ...tls })
  const watches: TLSSocket[] = []

  const optionsOf = ({ method, path, body }: Call, agent: Agent): [RequestOptions, string | undefined] => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const headers = {
      accept: 'application/json',
      ...(text !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
    }
    return [{ agent, hostname, port, method, path, headers }, text]
  }

  const exchange = (call: Call, onData: (part: Buffer) => void) =>
    new Promise<void>((resolve, reject) => {
      const [options, text] = optionsOf(call, kept)
      const asked = request({ ...options, timeout: deadlineMs }, (answer) => {
        answer.on('data', onData)
        answer.once('error', reject)
        answer.once('end', () => {
          const { statusCode = 0 } = answer
          if (statusCode < 300) resolve()
          else reject(new Error(`${call.method} ${call.path} was refused with ${statusCode}`))
        })
      })
      asked.once('timeout', () => asked.destroy(new Error(`No answer within ${deadlineMs} ms`)))
      asked.once('error', reject)
      asked.end(text)
    })

  const send: ApiLoad['send'] = async (call) => {
    let bytes = 0
    await exchange(call, (part) => {
      bytes += part.length
    })
    return bytes
  }

  return {
    send,
    async read(path) {
      const parts: Buffer[] = []
      await exchange({ method: 'GET', path }, (part) => void parts.push(part))
      return Buffer.concat(parts).toString()
    },
    async many(count, writers, call) {
      const started = performance.now()
      let next = 0
      const writer = async () => {
        for (let i = next++; i < count; i = next++) await send(call(i))
      }
      await Promise.all(Array.from({ length: writers }, writer))
      return (performance.now() - started) / 1000
    },
    watch: (path, onEvent) =>
      new Promise((resolve, reject) => {
        // The plain socket: 100 HTTP clients would take more time than the server, on the same processors.
        const socket = connect({ host: hostname, port: Number(port), ...tls }, () => {
          socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: application/json\r\n\r\n`)
        })
        watches.push(socket)
        let last = 0
        const countEvents = (part: Buffer) => {
          for (let at = part.indexOf(newline); at >= 0; at = part.indexOf(newline, at + 1)) {
            if ((at === 0 ? last : part[at - 1]) !== carriageReturn) onEvent()
          }
          last = part.at(-1) ?? last
        }
        socket.once('data', (part: Buffer) => {
          const status = part.toString('latin1', 0, 'HTTP/1.1 200'.length)
          if (status !== 'HTTP/1.1 200') return reject(new Error(`The watch was refused with ${status}`))
          resolve()
          countEvents(part)
          socket.on('data', countEvents)
        })
        socket.on('error', reject) // after the answer began it ends with close()
      }),
    close() {
      for (const one of [kept, ...watches]) one.destroy()
    },
  }
}
