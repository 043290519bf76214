/** The certificates of a server that is not trusted yet: before anything is sent to it, its authority must have the hash that was given. */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { connect, type DetailedPeerCertificate } from 'node:tls'
import { caHash } from './ca-hash.ts'

/** The certificates that the server shows, its own first. Nothing is verified, nothing is sent. Rejects with the socket's error. */
export async function readServerChain(url: URL, signal: AbortSignal): Promise<readonly X509Certificate[]> {
  signal.throwIfAborted()
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const socket = connect({
    host,
    port: Number(url.port || 443),
    rejectUnauthorized: false,
    ...(isIP(host) === 0 ? { servername: host } : {}),
  })
  const stop = () => void socket.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await new Promise<readonly X509Certificate[]>((resolve, reject) => {
      socket.once('secureConnect', () => resolve(chainOf(socket.getPeerCertificate(true))))
      socket.once('error', (error) => reject(error instanceof AggregateError ? error.errors[0] : error))
      socket.once('close', () => reject(Object.assign(new Error('The connection was closed'), { code: 'ECONNRESET' })))
    })
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

function chainOf(first: DetailedPeerCertificate): readonly X509Certificate[] {
  const chain: X509Certificate[] = []
  let next: DetailedPeerCertificate | undefined = first
  while (next?.raw !== undefined) {
    chain.push(new X509Certificate(next.raw))
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate // one that signed itself ends the chain
  }
  return chain
}

/** The certificate in the chain whose key has this hash: from here on it is the only one to trust. */
export function authorityIn(chain: readonly X509Certificate[], hash: string): X509Certificate | undefined {
  return chain.find((certificate) => certificate.ca && caHash(certificate) === hash)
}
