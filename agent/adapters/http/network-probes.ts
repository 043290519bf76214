/** HTTP, TCP and gRPC probes over sockets of Node.js. Every call ends within its timeout with an answer and never rejects. */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, createSecureContext, type SecureContext } from 'node:tls'
import { longestTimerMs } from '../../../daemon/clock.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { kubernetes } from '../../../daemon/process/version.ts'
import type { NetworkProbes, ProbeAnswer, Target } from '../../pods/probes/targets.ts'
import { type HttpAnswer, httpAnswerReader } from './http-answer.ts'

type Http = Target & { kind: 'http' }
type Tcp = Target & { kind: 'tcp' }
type Grpc = Target & { kind: 'grpc' }

const success: ProbeAnswer = { result: 'success', message: '' }
const mostRedirects = 10

/** As the kubelet sends it. */
const userAgent = `kube-probe/${kubernetes.major}.${kubernetes.minor}`

export function networkProbes(): NetworkProbes {
  return {
    ask(target, timeoutMs, stop) {
      return new Promise((resolve) => {
        const socket = heldSocket()
        const settle = (answer: ProbeAnswer) => {
          clearTimeout(timer)
          stop.removeEventListener('abort', cancel)
          socket.release()
          resolve(answer)
        }
        const fail = (why: string) => settle({ result: 'failure', message: `${nameOf(target)}: ${why}` })
        const cancel = () => settle({ result: 'unknown', message: 'The probe was cancelled' })
        const expire = () => fail(`no answer within ${timeoutMs / 1000}s`)
        const timer = setTimeout(expire, Math.min(timeoutMs, longestTimerMs))
        stop.addEventListener('abort', cancel, { once: true })
        if (stop.aborted) return cancel()
        attempt(target, socket).then(settle, (error: unknown) => fail(messageOf(error)))
      })
    },
  }
}

/**
 * What a probe has open. Lighter than an AbortSignal for each probe: with ten pods that are probed over HTTP, the agent spends
 * most of its CPU time on probes.
 */
interface HeldSocket {
  /** The probe uses this from now on; what it used before is destroyed, and so is this one when the probe is over. */
  use(socket: { destroy(): unknown }): void
  release(): void
}

function heldSocket(): HeldSocket {
  let current: { destroy(): unknown } | undefined
  let isOver = false
  return {
    use(socket) {
      current?.destroy()
      current = socket
      if (isOver) socket.destroy()
    },
    release() {
      isOver = true
      current?.destroy()
    },
  }
}

async function attempt(target: Http | Tcp | Grpc, held: HeldSocket): Promise<ProbeAnswer> {
  switch (target.kind) {
    case 'tcp':
      return askTcp(target, held)
    case 'http':
      return askHttp(target, held)
    case 'grpc':
      return askGrpc(target, held)
  }
}

function nameOf(target: Http | Tcp | Grpc): string {
  const { host, port } = target
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  switch (target.kind) {
    case 'http':
      return `Get "${target.scheme}://${address}${target.path}"`
    case 'tcp':
      return `dial tcp ${address}`
    case 'grpc':
      return `failed to connect service "${address}"`
  }
}

function askTcp({ host, port }: Tcp, held: HeldSocket): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    held.use(socket)
    socket.on('error', reject)
    socket.once('connect', () => resolve(success))
  })
}

async function askHttp(target: Http, held: HeldSocket): Promise<ProbeAnswer> {
  const { scheme, host, port, path, headers } = target
  let url = new URL(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`)
  const named = Object.fromEntries(headers.map(({ name, value }) => [name, value]))
  const given = new Set(headers.map(({ name }) => name.toLowerCase()))
  const defaults = { 'User-Agent': userAgent, Accept: '*/*', Connection: 'close' }
  const sent = {
    ...Object.fromEntries(Object.entries(defaults).filter(([name]) => !given.has(name.toLowerCase()))),
    ...named,
  }
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const { status, location } = await fetchOnce(url, sent, held)
    if (status >= 300 && status < 400 && location !== undefined) {
      const next = new URL(location, url)
      // A redirect to another host is a success and is not followed (pkg/probe/http/http.go, RedirectChecker).
      if (next.hostname !== url.hostname) return { result: 'success', message: `redirected to ${next.href}` }
      url = next
      continue
    }
    // The body is read and discarded; the kubelet only logs it, at a high verbosity.
    if (status >= 200 && status < 400) return success
    return { result: 'failure', message: `HTTP probe failed with statuscode: ${status}` }
  }
  return { result: 'failure', message: `Get "${url.href}": stopped after ${mostRedirects} redirects` }
}

/**
 * Over a plain socket: in the agent's Node.js the HTTP client takes three times as much CPU time. Rejects when the connection
 * fails, ends early, or is not HTTP.
 */
function fetchOnce(url: URL, headers: { readonly [name: string]: string }, held: HeldSocket): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const request = requestText(url, headers)
    const answer = httpAnswerReader()
    const take = (bytes: Buffer) => {
      try {
        const done = answer.push(bytes)
        if (done === undefined) return
        resolve(done)
      } catch (error) {
        reject(error)
      }
      socket.destroy()
    }
    const socket = socketTo(url, take)
    held.use(socket)
    socket.on('error', reject)
    socket.once('end', () => {
      try {
        resolve(answer.end())
      } catch (error) {
        reject(error)
      }
    })
    socket.write(request)
  })
}

/**
 * Passes received bytes to `take`, which copies what it needs for longer than the call. A close by the peer does not close the
 * socket: its owner destroys it.
 */
function socketTo({ protocol, hostname, port }: URL, take: (bytes: Buffer) => void): Socket {
  // IPv6 addresses have brackets only in a URL.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (protocol === 'http:') {
    // Bypasses the stream's buffering, which costs as much as the reads themselves.
    const callback = (bytes: number) => {
      take(received.subarray(0, bytes))
      return true
    }
    return connect({ host, port: Number(port || 80), allowHalfOpen: true, onread: { buffer: received, callback } })
  }
  // As in Kubernetes the certificate of a pod is not verified (pkg/probe/http/http.go, New): there is no authority for it.
  const servername = isIP(host) === 0 ? host : ''
  podContext ??= createSecureContext({ ca: [] })
  const socket = connectSecurely({
    ...{ host, port: Number(port || 443), servername, rejectUnauthorized: false },
    ...{ allowHalfOpen: true, secureContext: podContext },
  })
  return socket.on('data', take)
}

/** One buffer for all sockets. */
const received = Buffer.allocUnsafeSlow(16 * 1024)

/**
 * Contains no authorities, because none is verified: loading those of Node.js takes some megabytes. Created for the first TLS
 * probe.
 */
let podContext: SecureContext | undefined

/** RFC 9110, 5.6.2 and 5.5. A line break in a value would start another header or request. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const controlCharacter = /[^\t\x20-\x7e\x80-\uffff]/

/** Throws the error of Go's client (net/http, Transport.roundTrip) for an invalid header. */
function requestText(url: URL, headers: { readonly [name: string]: string }): string {
  const isHostGiven = Object.keys(headers).some((name) => name.toLowerCase() === 'host')
  const lines = Object.entries({ ...(isHostGiven ? {} : { Host: url.host }), ...headers }).map(([name, value]) => {
    if (!headerName.test(name)) throw new Error(`net/http: invalid header field name ${JSON.stringify(name)}`)
    if (controlCharacter.test(value))
      throw new Error(`net/http: invalid header field value for ${JSON.stringify(name)}`)
    return `${name}: ${value}\r\n`
  })
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** grpc.health.v1.Health/Check: one small message each way, so no library is needed. */
async function askGrpc(target: Grpc, held: HeldSocket): Promise<ProbeAnswer> {
  const { host, port, service } = target
  // Loaded on demand: few pods have gRPC probes, and nothing else in the agent uses it.
  const { connect: http2Connect } = await import('node:http2')
  return new Promise((resolve, reject) => {
    const session = http2Connect(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
    held.use(session)
    session.on('error', reject)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': userAgent,
    })
    let status = ''
    const frames: Buffer[] = []
    const note = (headers: { readonly [name: string]: unknown }) => {
      if (headers['grpc-status'] !== undefined) status = String(headers['grpc-status'])
    }
    stream.once('response', note)
    stream.once('trailers', note)
    stream.on('data', (chunk: Buffer) => void (frames.length < 16 && frames.push(chunk)))
    stream.on('error', reject)
    stream.once('end', () => {
      session.close()
      resolve(grpcAnswer(status, Buffer.concat(frames)))
    })
    stream.end(healthRequest(service))
  })
}

/** A frame (not compressed, length) around field 1, a string. */
function healthRequest(service: string): Buffer {
  const name = Buffer.from(service)
  const message = name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0x0a), varint(name.length), name])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

function varint(number: number): Buffer {
  const bytes: number[] = []
  for (let rest = number; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest])
    bytes.push((rest & 0x7f) | 0x80)
  }
}

const servingStatus = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']

function grpcAnswer(status: string, frame: Buffer): ProbeAnswer {
  if (status === '12') {
    return {
      result: 'failure',
      message: 'this server does not implement the grpc health protocol (grpc.health.v1.Health)',
    }
  }
  if (status !== '0') return { result: 'failure', message: `health rpc failed with status ${status || 'unknown'}` }
  // Field 1, an enum; 0 if it is missing.
  const word = servingStatus[frame[5] === 0x08 ? (frame[6] ?? 0) : 0] ?? 'UNKNOWN'
  if (word === 'SERVING') return success
  return { result: 'failure', message: `service unhealthy (responded with "${word}")` }
}
