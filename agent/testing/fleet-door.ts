/** A small working double of the API that a joining machine meets: real TLS, a real authority, one token. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { TLSSocket } from 'node:tls'
import type { CertificateSigningRequest } from '../../api/certificate-signing-request.ts'
import { type BootstrapToken, judgeToken, parseToken, tokenRefusal } from '../../api/node/bootstrap-token.ts'
import { type Authority, openAuthority } from '../../certs/authority.ts'
import { checkNodeCSR } from '../../certs/csr-check.ts'
import { issueServer } from '../../certs/issue.ts'
import { signNodeCSR } from '../../certs/testing/sign-node-csr.ts'

export type FleetDoor = {
  readonly url: URL
  readonly caHash: string
  readonly authority: Authority
  /** Every request that came in, oldest first: `POST /apis/… as system:node:pi`. */
  readonly visits: readonly string[]
  /** The signing requests it was given. */
  readonly requests: readonly CertificateSigningRequest[]
  close(): Promise<void>
}

export type FleetDoorHabits = {
  readonly folder: string
  readonly token: BootstrapToken
  /** How many times a request is looked at before it is approved; none by default. */
  readonly looksBeforeApproval?: number
  /** The message of a denial, given to everybody. */
  readonly deny?: string
  /** The message of a denial, given to the first request only. */
  readonly denyFirst?: string
  /** Why requests wait for an operator: the message, and whether one has approved meanwhile. */
  readonly waits?: { readonly because: string; readonly isApproved: () => boolean }
  /** Its clock stands at this time; the clock of this machine unless given. */
  readonly nowMs?: number
  /** Signs with this one instead of its own. */
  readonly signWith?: Authority
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => boolean
  readonly serverNames?: readonly string[]
  readonly showAuthority?: boolean
  /** More data of kube-public/cluster-info. */
  readonly info?: { readonly [name: string]: string }
}

export async function openFleetDoor(habits: FleetDoorHabits): Promise<FleetDoor> {
  const now = () => habits.nowMs ?? Date.now()
  const authority = await openAuthority(habits.folder, Date.now())
  const names = habits.serverNames ?? ['localhost', '127.0.0.1']
  const { certificate, key } = issueServer(authority, { names, nowMs: Date.now() })
  const visits: string[] = []
  const requests = new Map<string, { readonly csr: CertificateSigningRequest; looks: number }>()

  const respond = (response: ServerResponse, status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json', date: new Date(now()).toUTCString() })
    response.end(JSON.stringify(body))
  }
  const refuse = (response: ServerResponse, code: number, message: string) =>
    respond(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code })

  const shown = (name: string): CertificateSigningRequest | undefined => {
    const kept = requests.get(name)
    if (kept === undefined) return undefined
    const denial = habits.deny ?? ([...requests.keys()][0] === name ? habits.denyFirst : undefined)
    if (denial !== undefined) {
      const denied = { type: 'Denied', status: 'True', reason: 'NodeNameInUse', message: denial }
      return { ...kept.csr, status: { conditions: [denied] } }
    }
    if (kept.looks++ < (habits.looksBeforeApproval ?? 0)) return kept.csr
    if (habits.waits?.isApproved() === false) {
      const condition = { type: 'Waiting', status: 'True', reason: 'NodeExists', message: habits.waits.because }
      return { ...kept.csr, status: { conditions: [condition] } }
    }
    const pem = Buffer.from(kept.csr.spec.request, 'base64').toString()
    const signed = signNodeCSR(habits.signWith ?? authority, pem, { nowMs: Date.now() })
    const approved = { type: 'Approved', status: 'True', reason: 'AutoApproved' }
    return { ...kept.csr, status: { conditions: [approved], certificate: Buffer.from(signed).toString('base64') } }
  }

  const clusterInfo = () => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-info', namespace: 'kube-public' },
    data: { mqttPort: '8883', ...habits.info },
  })

  const refusalOf = (authorization = ''): string | undefined => {
    const presented = parseToken(authorization.replace('Bearer ', ''))
    const judgement = presented ? judgeToken(habits.token, presented, now()) : ({ verdict: 'unknown' } as const)
    return judgement.verdict === 'ok' ? undefined : tokenRefusal(judgement, presented?.id ?? '', now())
  }

  const keepRequest = (csr: CertificateSigningRequest, response: ServerResponse) => {
    const pem = Buffer.from(csr.spec.request, 'base64').toString()
    const answer = checkNodeCSR(pem, { signerName: csr.spec.signerName, usages: csr.spec.usages ?? [] })
    if (!answer.ok) return refuse(response, 422, answer.reason)
    const { name = '' } = csr.metadata
    if (requests.has(name)) return refuse(response, 409, `${name} already exists`)
    requests.set(name, { csr, looks: 0 })
    return respond(response, 201, csr)
  }

  const serve = (request: IncomingMessage, response: ServerResponse, body: string) => {
    const peer = (request.socket as TLSSocket).getPeerCertificate().subject?.CN
    const who = typeof peer === 'string' ? peer : 'somebody'
    visits.push(`${request.method} ${request.url} as ${who}`)
    if (habits.answer?.(request, response)) return
    if (request.url === '/api/v1/namespaces/kube-public/configmaps/cluster-info') {
      return who === 'somebody' ? refuse(response, 403, 'forbidden') : respond(response, 200, clusterInfo())
    }
    const refusal = refusalOf(request.headers.authorization)
    if (refusal !== undefined) return refuse(response, 401, refusal)
    if (request.method === 'POST') return keepRequest(JSON.parse(body), response)
    const found = shown(request.url?.split('/').at(-1) ?? '')
    return found === undefined ? refuse(response, 404, 'not found') : respond(response, 200, found)
  }

  const server = createServer(
    {
      key,
      cert: certificate,
      ...(habits.showAuthority === false
        ? {}
        : { cert: certificate + authority.certificate, ca: authority.certificate }),
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => serve(request, response, body))
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: new URL(`https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`),
    caHash: authority.hash,
    authority,
    visits,
    get requests() {
      return [...requests.values()].map(({ csr }) => csr)
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
