/** Joining a fleet: make sure it is the right one, ask for a certificate, wait for it, keep it. */
import type { KeyObject, X509Certificate } from 'node:crypto'
import { formatToken, type TokenParts } from '../../api/bootstrap-token.ts'
import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import type { HardwareIdentity } from '../../api/hardware-identity.ts'
import { keyText, newKey } from '../../certs/authority.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable, apiClient } from '../../daemon/api-client.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { KnownTime } from '../../daemon/server-check.ts'
import {
  clockSkewMs,
  clockTrouble,
  describeSkew,
  JoinError,
  strangeAnswer,
  tokenRefused,
  unreachable,
  wrongHash,
} from './failures.ts'
import { type Identity, writeIdentity } from './identity.ts'
import {
  certificateProblem,
  type Progress,
  progressOf,
  signingRequest,
  signingRequestsPath,
} from './signing-request.ts'
import { authorityIn, readServerChain } from './trust.ts'

export type JoinRequest = {
  /** `https://host:6443` */
  readonly url: URL
  readonly token: TokenParts
  /** `sha256:…` */
  readonly caHash: string
  readonly nodeName: string
  readonly dataDir: string
}

export type JoinNeeds = {
  readonly hardware: HardwareIdentity
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Progress and warnings, a line each, for whoever waits. */
  readonly tell: (line: string) => void
  /** How long to wait for the approval. */
  readonly approvalMs?: number
}

const worthTellingMs = 60_000
const polling = { firstMs: 500, maxMs: 2_000 }

/**
 * The identity this machine now has, already written to the data directory in place of any earlier one. Rejects with a
 * `JoinError` when it cannot be had; nothing is written then.
 */
export async function join(request: JoinRequest, needs: JoinNeeds): Promise<Identity> {
  const { url, nodeName } = request
  const { authority, knownTime } = await trustedAuthority(request, needs)
  const ca = authority.toString()
  needs.tell(`The authority of ${url.host} is the expected one`)

  const key = newKey()
  const client = apiClient({ url: url.origin, ca, knownTime, token: formatToken(request.token) })
  const certificate = await certificateFor(request, key, client, needs)
  const problem = certificateProblem(certificate, { key, nodeName, authority })
  if (problem !== undefined) {
    throw new JoinError(
      `The certificate that the controller gave is of no use: ${problem}`,
      'Look at the log of the controller; joining again does no harm.',
    )
  }
  needs.tell(`This machine has its certificate as node ${nodeName}`)

  const ours = { certificate, key: keyText(key) }
  const mqttPort = await mqttPortOf(url, apiClient({ url: url.origin, ca, knownTime, ...ours }), needs.signal)
  const identity = { nodeName, apiUrl: url.origin, mqttUrl: `mqtts://${url.hostname}:${mqttPort}`, ca, ...ours }
  await writeIdentity(request.dataDir, identity)
  return identity
}

type Trusted = { readonly authority: X509Certificate; readonly knownTime: KnownTime }

async function trustedAuthority(request: JoinRequest, { clock, signal }: JoinNeeds): Promise<Trusted> {
  const { url } = request
  const chain = await readServerChain(url, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw unreachable(url, error)
  })
  const authority = authorityIn(chain, request.caHash)
  if (authority === undefined) throw wrongHash(url.host, request.caHash, chain.map(caHash))
  const trouble = clockTrouble(chain, clock.wallMs()) // before OpenSSL says it without the times
  if (trouble !== undefined) throw trouble
  // A clock that shows a time before the authority we were told of is wrong: it is then at least as late as that.
  const begunMs = Math.max(...chain.map(({ validFrom }) => Date.parse(validFrom)))
  const knownTime = {
    isClockRight: () => clock.wallMs() >= begunMs,
    earliestMs: () => begunMs,
    learn: () => undefined,
  }
  return { authority, knownTime }
}

async function certificateFor(request: JoinRequest, key: KeyObject, client: ApiClient, needs: JoinNeeds) {
  const { url, nodeName } = request
  const { clock, signal, tell } = needs
  const asked = signingRequest(nodeName, key, needs.hardware)
  const path = `${signingRequestsPath}/${asked.metadata.name}`
  const posted = await reached(url, client.post(signingRequestsPath, asked, signal))
  const skewMs = clockSkewMs(posted.dateHeader, clock.wallMs())
  if (skewMs !== undefined && Math.abs(skewMs) > worthTellingMs) tell(`Warning: ${describeSkew(skewMs)}`)

  const { approvalMs = 120_000 } = needs
  const endMs = clock.monotonicMs() + approvalMs
  let answer: ApiAnswer | ApiUnreachable = posted
  for (let tries = 0; ; tries++) {
    const progress: Progress = answer instanceof ApiUnreachable ? { state: 'pending' } : judged(request, answer, skewMs)
    if (progress.state === 'issued') return progress.certificate
    if (tries === 0) tell(`Asked for a certificate as node ${nodeName} (request ${asked.metadata.name})`)
    if (clock.monotonicMs() >= endMs) {
      if (answer instanceof ApiUnreachable) throw unreachable(url, answer)
      throw notYet(asked.metadata.name ?? '', approvalMs, progress.state)
    }
    await clock.sleep(50 + backoffMs(tries, polling, Math.random), signal)
    signal.throwIfAborted()
    answer = await client.get(path, signal).catch(ifUnreachable)
  }
}

/** How the request stands. Throws when it cannot come to anything any more. */
function judged({ url, token, nodeName }: JoinRequest, answer: ApiAnswer, skewMs: number | undefined): Progress {
  if (answer.status === 401) throw tokenRefused(token.id, answer.body, skewMs)
  const progress = answer.status < 300 ? progressOf(answer.body) : ({ state: 'strange' } as const)
  switch (progress.state) {
    case 'strange':
      throw strangeAnswer(url, 'asking for a certificate', answer)
    case 'denied':
      throw new JoinError(
        `The controller denied this machine the name ${nodeName} (${progress.reason}): ${progress.message}`,
        progress.reason === 'NodeNameInUse'
          ? "Give this machine a name of its own ('--node-name NAME', or another hostname), or stop the agent of the other one first."
          : 'Ask whoever runs the controller.',
        { isNameTaken: progress.reason === 'NodeNameInUse' },
      )
    case 'failed':
      throw new JoinError(
        `The controller could not sign the certificate: ${progress.message}`,
        'Look at the log of the controller.',
      )
    default:
      return progress
  }
}

function notYet(name: string, waitedMs: number, state: Progress['state']) {
  const what = state === 'approved' ? 'was approved, but not signed' : 'was not approved'
  return new JoinError(
    `The request ${name} ${what} within ${waitedMs / 1000} s`,
    `Look at it with 'kubectl describe csr ${name}' and at the log of the controller, then join again; while an agent waits, 'kubectl certificate approve' lets it in.`,
  )
}

/** Asked with the new certificate, which is thereby seen to work. */
async function mqttPortOf(url: URL, client: ApiClient, signal: AbortSignal): Promise<number> {
  const answer = await reached(url, client.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', signal))
  const decoded = answer.status === 200 ? decode(ConfigMapSchema, answer.body) : undefined
  const port = Number(decoded?.ok ? decoded.value.data?.['mqttPort'] : undefined)
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port
  throw strangeAnswer(url, 'asking for the MQTT port in kube-public/cluster-info', answer)
}

async function reached(url: URL, asked: Promise<ApiAnswer>): Promise<ApiAnswer> {
  const answer = await asked.catch(ifUnreachable)
  if (answer instanceof ApiUnreachable) throw unreachable(url, answer)
  return answer
}

function ifUnreachable(error: unknown): ApiUnreachable {
  if (error instanceof ApiUnreachable) return error
  throw error
}
