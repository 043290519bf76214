/**
 * A connection to a server of the fleet's authority, also by a machine whose clock is wrong: where the system's clock is not
 * known to be right, a certificate's dates are held against the time it is at least. All else is checked as ever.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { type ConnectionOptions, checkServerIdentity, connect, type TLSSocket } from 'node:tls'
import { certificatesIn } from '../api/text/pem.ts'

export interface KnownTime {
  /** The system's clock is known to be right: it alone judges. */
  isClockRight(): boolean
  /** It is at least this late, in milliseconds since 1970, whatever the clock shows. */
  earliestMs(): number
  /** A trusted server proved that the time is at least this. */
  learn(wallMs: number): void
}

/** The date that certificates are judged by. */
export function judgingMs(knownTime: KnownTime | undefined, wallMs: number): number {
  return knownTime === undefined || knownTime.isClockRight() ? wallMs : knownTime.earliestMs()
}

export type ServerAddress = {
  readonly host: string
  readonly port: number
  /** PEM: the only trusted authorities. */
  readonly ca: string
  /** PEM, with its key: the client certificate. */
  readonly cert?: string
  readonly key?: string
  /** undefined: dates are judged by the system's clock. */
  readonly knownTime?: KnownTime | undefined
}

/**
 * Resolves once the server has proved its identity, before anything is sent to it; rejects with the error that Node or OpenSSL
 * has a code for. Aborted, it ends at once.
 */
export function connectToServer(address: ServerAddress, signal?: AbortSignal): Promise<TLSSocket> {
  const { knownTime, ...rest } = address
  const byKnownTime = knownTime !== undefined && !knownTime.isClockRight()
  const options: ConnectionOptions = {
    ...rest,
    minVersion: 'TLSv1.2',
    // Addresses are not sent as names, as TLS demands.
    servername: isIP(address.host) === 0 ? address.host : '',
    rejectUnauthorized: !byKnownTime,
  }
  return new Promise((resolve, reject) => {
    const socket = connect(options)
    const stop = () => socket.destroy(asError(signal?.reason))
    const settle = () => {
      signal?.removeEventListener('abort', stop)
      socket.off('error', failed).off('close', closed).off('secureConnect', secure)
    }
    const failed = (error: Error) => {
      settle()
      socket.on('error', () => undefined)
      reject(error)
    }
    const closed = () => failed(withCode('The connection was closed by the other side', 'ECONNRESET'))
    const secure = () => {
      const problem = byKnownTime ? problemOf(socket, address, knownTime) : undefined
      if (problem !== undefined) {
        socket.destroy()
        return failed(problem)
      }
      settle()
      resolve(socket)
    }
    socket.on('error', failed).on('close', closed).on('secureConnect', secure)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

const dateProblems = ['CERT_NOT_YET_VALID', 'CERT_HAS_EXPIRED']

function problemOf(socket: TLSSocket, address: ServerAddress, knownTime: KnownTime): Error | undefined {
  const shown = socket.getPeerX509Certificate()
  if (shown === undefined) return withCode('The server showed no certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')
  // Node and OpenSSL name one problem only; one of dates may stand before others.
  const found = socket.authorizationError
  const code = found instanceof Error ? String((found as { readonly code?: unknown }).code ?? '') : String(found ?? '')
  if (!socket.authorized && !dateProblems.includes(code)) {
    return found instanceof Error ? found : withCode(`The server's certificate is not accepted: ${code}`, code)
  }
  return certificateProblem(shown, address, knownTime)
}

const serverAuth = '1.3.6.1.5.5.7.3.1'

/** Signed by one of our authorities itself, for servers, for this host, and not known to have ended. */
function certificateProblem(
  shown: X509Certificate,
  { host, ca }: Pick<ServerAddress, 'host' | 'ca'>,
  knownTime: KnownTime,
): Error | undefined {
  const authority = authoritiesIn(ca).find((one) => one.ca && shown.checkIssued(one) && shown.verify(one.publicKey))
  if (authority === undefined) {
    return withCode('The certificate is not signed by an authority of this fleet', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY')
  }
  if (shown.ca || !(shown.keyUsage ?? []).includes(serverAuth)) {
    return withCode('The certificate is not one for servers', 'INVALID_PURPOSE')
  }
  const otherName = checkServerIdentity(host, shown.toLegacyObject())
  if (otherName !== undefined) return otherName
  // An authority never signs ahead of its time: the dates themselves show how late it is at least.
  const begunMs = Math.max(...[shown, authority].map(({ validFrom }) => Date.parse(validFrom)))
  const earliestMs = Math.max(knownTime.earliestMs(), begunMs)
  if ([shown, authority].some(({ validTo }) => Date.parse(validTo) < earliestMs)) {
    return withCode('The certificate has expired, by the last known time', 'CERT_HAS_EXPIRED')
  }
  knownTime.learn(begunMs)
  return undefined
}

function authoritiesIn(pem: string): readonly X509Certificate[] {
  return certificatesIn(pem).map((one) => new X509Certificate(one))
}

function withCode(message: string, code: string): Error {
  return Object.assign(new Error(message), { code })
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('Stopped', { cause: reason })
}
