/** An admission webhook whose author attacks the controller by what it answers, or does not. */
import type { Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Test } from 'tap'
import { isObject, parseJson } from '../../../api/text/json.ts'
import { openAuthority } from '../../../certs/authority.ts'
import { issueServer } from '../../../certs/issue.ts'
import { temporaryFolder } from '../../support/fleet.ts'

/** What it does with a request, whose review has this uid. */
export type WebhookAttack = (socket: TLSSocket, uid: string) => void

export type HostileWebhook = {
  /** `https://127.0.0.1:PORT` */
  readonly url: string
  readonly caBundle: string
  /** From the next request on. */
  attack(attack: WebhookAttack): void
  /** Requests so far. */
  readonly requests: number
}

export async function hostileWebhook(t: Test): Promise<HostileWebhook> {
  const nowMs = Date.now()
  const authority = await openAuthority(await temporaryFolder(t), nowMs)
  const { certificate: cert, key } = issueServer(authority, { names: ['127.0.0.1'], nowMs })
  let requests = 0
  let attack: WebhookAttack = (socket, uid) => answer(socket, allowed(uid))
  const open = new Set<Socket>()
  const server = createServer({ cert, key }, (socket) => {
    open.add(socket.on('error', () => undefined))
    socket.once('close', () => open.delete(socket))
    let received = ''
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('utf8')
      const body = received.slice(received.indexOf('\r\n\r\n') + 4)
      const uid = uidIn(body)
      if (uid === undefined) return
      received = ''
      requests += 1
      attack(socket, uid)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `https://127.0.0.1:${port}`,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
    attack(next) {
      attack = next
    },
    get requests() {
      return requests
    },
  }
}

/** undefined: the review is not whole yet. */
function uidIn(body: string): string | undefined {
  const review = parseJson(body)
  if (!isObject(review) || !isObject(review['request'])) return undefined
  return String(review['request']['uid'])
}

export function answer(socket: Socket, body: unknown, headers: readonly string[] = ['HTTP/1.1 200 OK']): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const length = `Content-Length: ${Buffer.byteLength(text)}`
  socket.write([...headers, 'Content-Type: application/json', length, '', text].join('\r\n'))
}

/** A review that allows the write, with more. */
export function allowed(uid: string, more: object = {}) {
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true, ...more } }
}

export function patching(uid: string, operations: readonly object[]) {
  const patch = Buffer.from(JSON.stringify(operations)).toString('base64')
  return allowed(uid, { patchType: 'JSONPatch', patch })
}

/** Writes the same bytes for as long as the other side reads. */
export function forever(socket: Socket, start: string, repeated: string): void {
  const bytes = Buffer.from(repeated.repeat(Math.ceil(65_536 / repeated.length)))
  socket.write(start)
  const on = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on('drain', on)
  on()
}

/** A byte every 100 ms. */
export function drip(socket: Socket, start: string): void {
  socket.write(start)
  const timer = setInterval(() => socket.write(' '), 100)
  socket.once('close', () => clearInterval(timer))
}
