/** HTTP, TCP and gRPC probes over sockets of Node.js. Every call ends within its timeout with an answer and never rejects. */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, createSecureContext, type SecureContext } from 'node:tls'
import { startDeadline } from '../../../daemon/deadline.ts'
import { messageOf } from '../../../daemon/errors.ts'
import type { NetworkProbes, ProbeAnswer, Target } from '../../pods/probes/targets.ts'
import { askGrpc, hookAgent, probeAgent } from './grpc-probe.ts'
import { type HeldSocket, heldSocket } from './held-socket.ts'
import { type HttpAnswer, httpAnswerReader } from './http-answer.ts'

type Http = Target & { kind: 'http' }
type Tcp = Target & { kind: 'tcp' }
type Grpc = Target & { kind: 'grpc' }

const success: ProbeAnswer = { result: 'success', message: '' }
/** The tenth redirect is not followed (pkg/probe/http/http.go, RedirectChecker). */
const mostRedirects = 10

export function networkProbes(): NetworkProbes {
  const underWayFor = cancellations()
  return {
    ask(target, timeoutMs, stop) {
      return new Promise((resolve) => {
        const socket = heldSocket()
        const underWay = underWayFor(stop)
        const settle = (answer: ProbeAnswer) => {
          stopTimer()
          underWay.delete(cancel)
          socket.release()
          resolve(answer)
        }
        const fail = (why: string) => settle({ result: 'failure', message: `${nameOf(target)}: ${why}` })
        const cancel = () => settle({ result: 'unknown', message: 'The probe was cancelled' })
        const expire = () => fail(`no answer within ${timeoutMs / 1000}s`)
        const stopTimer = startDeadline(timeoutMs, expire)
        underWay.add(cancel)
        if (stop.aborted) return cancel()
        attempt(target, socket).then(settle, (error: unknown) => fail(messageOf(error)))
      })
    },
  }
}

/** What to call for the probes under way when a signal aborts. One listener for each signal: a listener for each probe takes more time. */
function cancellations(): (signal: AbortSignal) => Set<() => void> {
  const bySignal = new WeakMap<AbortSignal, Set<() => void>>()
  return (signal) => {
    const known = bySignal.get(signal)
    if (known !== undefined) return known
    const underWay = new Set<() => void>()
    bySignal.set(signal, underWay)
    const cancelAll = () => {
      for (const cancel of [...underWay]) cancel()
    }
    signal.addEventListener('abort', cancelAll, { once: true })
    return underWay
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
  const first = requests.get(target) ?? requestFor(target)
  const { headers } = first
  let url = first.url
  for (let redirects = 0; redirects < mostRedirects; redirects++) {
    const text = url === first.url ? first.text : requestText(url, headers)
    const { status, location } = await fetchOnce(url, text, held)
    if (status >= 300 && status < 400 && location !== undefined) {
      const next = new URL(location, url)
      // A redirect to another host is a success and is not followed (pkg/probe/http/http.go, RedirectChecker).
      if (next.hostname !== url.hostname) return unfollowed(target, ` to ${next.href}`)
      url = next
      continue
    }
    return answerOf(target, status)
  }
  return { result: 'failure', message: `Get "${url.href}": stopped after ${mostRedirects} redirects` }
}

/** The body is read and discarded; the kubelet only logs it, at a high verbosity. */
function answerOf(target: Http, status: number): ProbeAnswer {
  if (target.isHook || (status >= 200 && status < 300)) return success
  if (status >= 300 && status < 400) return unfollowed(target, '')
  return { result: 'failure', message: `HTTP probe failed with statuscode: ${status}` }
}

/** A success with a warning (pkg/probe/http/http.go, DoHTTPProbe). */
function unfollowed({ isHook }: Http, where: string): ProbeAnswer {
  if (isHook) return success
  return { result: 'success', message: `Probe terminated redirects${where}`, isWarning: true }
}

type HttpHeaders = Http['headers']

type FirstRequest = {
  readonly url: URL
  readonly headers: HttpHeaders
  readonly text: string
}

/** First request to each target, which is probed repeatedly. */
const requests = new WeakMap<Http, FirstRequest>()

function requestFor(target: Http): FirstRequest {
  const { scheme, host, port, path, headers, isHook } = target
  const url = new URL(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`)
  const given = new Set(headers.map(({ name }) => name.toLowerCase()))
  const defaults = [
    { name: 'User-Agent', value: isHook ? hookAgent : probeAgent },
    { name: 'Accept', value: '*/*' },
    { name: 'Connection', value: 'close' },
  ]
  const sent = [...defaults.filter(({ name }) => !given.has(name.toLowerCase())), ...headers]
  const request = { url, headers: sent, text: requestText(url, sent) }
  requests.set(target, request)
  return request
}

/**
 * Over a plain socket: in the agent's Node.js the HTTP client takes three times as much CPU time. Rejects when the connection
 * fails, ends early, or is not HTTP.
 */
function fetchOnce(url: URL, request: string, held: HeldSocket): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
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

/** Only the first of these is sent, and none if it is empty. */
const single: ReadonlySet<string> = new Set(['host', 'user-agent'])
/** Go's client sends its own (net/http, reqWriteExcludeHeader). */
const unsent: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer'])

/** Throws the error of Go's client (net/http, Transport.roundTrip) for an invalid header. A header may be given several times. */
function requestText(url: URL, headers: HttpHeaders): string {
  const seen = new Set<string>()
  const lines = headers.flatMap(({ name, value }) => {
    if (!headerName.test(name)) throw new Error(`net/http: invalid header field name ${JSON.stringify(name)}`)
    if (controlCharacter.test(value))
      throw new Error(`net/http: invalid header field value for ${JSON.stringify(name)}`)
    const key = name.toLowerCase()
    const isRepeated = single.has(key) && seen.has(key)
    seen.add(key)
    const isEmpty = value === '' && (single.has(key) || key === 'accept')
    if (isRepeated || isEmpty || unsent.has(key)) return []
    return `${name}: ${value}\r\n`
  })
  const hasHost = headers.find(({ name }) => name.toLowerCase() === 'host')?.value
  const host = hasHost ? '' : `Host: ${url.host}\r\n`
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${host}${lines.join('')}\r\n`
}
