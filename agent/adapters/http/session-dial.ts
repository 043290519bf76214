/** The node's end of a session: a connection to the API with the node's certificate, which then leaves HTTP. */
import { request } from 'node:https'
import type { Duplex } from 'node:stream'
import { sessionPath, sessionProtocol } from '../../../api/sessions.ts'
import { connectToServer, type KnownTime } from '../../../daemon/server-check.ts'

export type SessionDialSettings = {
  /** `https://HOST:PORT` */
  readonly url: string
  /** PEM, all three. */
  readonly ca: string
  readonly certificate: string
  readonly key: string
  readonly knownTime: KnownTime
}

/** A controller that is gone without a word is noticed by the kernel, two minutes after this. */
const keepAliveMs = 30_000

/** Rejects where the controller does not accept the session. */
export async function dialSession(id: string, settings: SessionDialSettings, signal: AbortSignal): Promise<Duplex> {
  const { url, ca, certificate, key, knownTime } = settings
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const address = { host, port: Number(port || 443), ca, cert: certificate, key, knownTime }
  const socket = await connectToServer(address, signal)
  socket.setKeepAlive(true, keepAliveMs)
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: sessionProtocol }
    const asked = request(new URL(sessionPath(id), url), { headers, signal, createConnection: () => socket })
    // Not once: it may fail again while its socket is torn down.
    asked.on('error', reject)
    asked.once('upgrade', (_, duplex, head) => {
      // Only now: its error would end the stream that is handed over.
      asked.off('error', reject).on('error', () => undefined)
      if (head.length > 0) duplex.unshift(head)
      resolve(duplex)
    })
    asked.once('response', (response) => {
      response.resume()
      socket.destroy()
      reject(new Error(`The controller does not accept the session: ${response.statusCode}`))
    })
    asked.end()
  })
}
