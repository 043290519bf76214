/** The CertificateSigningRequest of a node: created, posted, polled until it is answered, and its certificate checked. */
import { createHash, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import {
  type CertificateSigningRequest,
  CertificateSigningRequestSchema,
  nodeClientSigner,
  nodeClientUsages,
  waitingCondition,
} from '../../api/certificate-signing-request.ts'
import { decode } from '../../api/decode.ts'
import { nodeIdentity, nodesGroup } from '../../api/identity.ts'
import { type HardwareIdentity, hardwareIdentityAnnotation } from '../../api/node/hardware-identity.ts'
import { newKey } from '../../certs/authority.ts'
import { createCSR } from '../../certs/csr.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable } from '../../daemon/api-client.ts'
import { backoffMs } from '../../daemon/backoff.ts'
import { clockSkewMs, describeSkew, JoinError, strangeAnswer, tokenRefused, unreachable } from './failures.ts'
import type { JoinNeeds, JoinRequest } from './join-request.ts'
import { keepPendingKey, readPendingKey, removePendingKey } from './pending-key.ts'

export const signingRequestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

const worthWarningMs = 60_000
const polling = { firstMs: 500, maxMs: 2_000 }
/** An operator takes minutes, not seconds. */
const waitingPolling = { firstMs: 2_000, maxMs: 10_000 }
const waitingMs = 3_600_000
const progressEveryMs = 60_000
/** Each name that was denied before is tried again under another one; the controller removes them after an hour. */
const mostRequests = 10

export type IssuedCertificate = { readonly certificate: string; readonly key: KeyObject }

type Asked = { readonly key: KeyObject; readonly name: string; readonly answer: ApiAnswer; readonly isNew: boolean }

/**
 * The certificate, PEM, signed by `authority`, and its key. Rejects with a `JoinError`; a key is kept only while its request
 * waits for an operator.
 */
export async function requestCertificate(
  request: JoinRequest,
  { client, authority }: { readonly client: ApiClient; readonly authority: X509Certificate },
  needs: JoinNeeds,
): Promise<IssuedCertificate> {
  const { dataDir, nodeName } = request
  const asked = await ask(request, client, needs)
  const { key } = asked
  try {
    const certificate = await answered(request, asked, client, needs)
    await removePendingKey(dataDir)
    const problem = certificateProblem(certificate, { key, nodeName, authority })
    if (problem === undefined) return { certificate, key }
    throw new JoinError(
      `The controller issued an unusable certificate: ${problem}`,
      'Look at the log of the controller, then run the same command again.',
    )
  } catch (error) {
    if (error instanceof JoinError && error.isFinal) await removePendingKey(dataDir)
    throw error
  }
}

/** Continues with a pending request of an earlier run; else creates one. */
async function ask(request: JoinRequest, client: ApiClient, needs: JoinNeeds): Promise<Asked> {
  const { url, nodeName, token } = request
  const { signal, hardware } = needs
  const key = (await readPendingKey(request)) ?? newKey()
  for (let attempt = 0; ; attempt++) {
    const csr = signingRequest(nodeName, key, hardware, `${token.id} ${attempt}`)
    const { name = '' } = csr.metadata
    const posted = await reached(url, client.post(signingRequestsPath, csr, signal), signal)
    if (posted.status !== 409 || attempt === mostRequests) return { key, name, answer: posted, isNew: true }
    const there = await reached(url, client.get(`${signingRequestsPath}/${name}`, signal), signal)
    const { state } = there.status === 200 ? progressOf(there.body) : ({ state: 'strange' } as const)
    if (state === 'pending' || state === 'approved' || state === 'issued') {
      return { key, name, answer: there, isNew: false }
    }
  }
}

async function answered(request: JoinRequest, asked: Asked, client: ApiClient, needs: JoinNeeds): Promise<string> {
  const { url, nodeName } = request
  const { clock, signal, print } = needs
  const { name } = asked
  const skewMs = clockSkewMs(asked.answer.dateHeader, clock.wallMs())
  warnOfSkew(skewMs, print)

  const { approvalMs = 120_000 } = needs
  const startMs = clock.monotonicMs()
  let answer: ApiAnswer | ApiUnreachable = asked.answer
  let waiting: Waiting | undefined
  for (let tries = 0; ; tries++) {
    const nowMs = clock.monotonicMs()
    const progress = judged(request, answer, skewMs)
    if (progress.state === 'issued') return progress.certificate
    if (tries === 0) print(requestedText(asked, nodeName))
    waiting ??= await waitingFor(progress, request, asked, needs)
    if (waiting !== undefined) printWaiting(waiting, name, nowMs, print)
    const [limitMs, pace] = waiting === undefined ? [approvalMs, polling] : [waitingMs, waitingPolling]
    if (nowMs - startMs >= limitMs) throw tooLate(url, answer, notYet(name, limitMs, progress.state))
    await clock.sleep(50 + backoffMs(tries, pace, Math.random), signal)
    answer = await lookAgain(client, name, signal)
    if (signal.aborted && waiting !== undefined) throw stopped(name)
    signal.throwIfAborted()
  }
}

function warnOfSkew(skewMs: number | undefined, print: JoinNeeds['print']): void {
  if (skewMs !== undefined && Math.abs(skewMs) > worthWarningMs) print(`Warning: ${describeSkew(skewMs)}`)
}

function requestedText({ name, isNew }: Asked, nodeName: string): string {
  return `${isNew ? 'Requested' : 'Still requesting'} a certificate as node ${nodeName} (request ${name})`
}

async function lookAgain(client: ApiClient, name: string, signal: AbortSignal): Promise<ApiAnswer | ApiUnreachable> {
  const path = `${signingRequestsPath}/${name}`
  try {
    signal.throwIfAborted()
    // A call may wait too, when the server is busy (429).
    return await client.get(path, signal)
  } catch (error) {
    return ifStopped(error, signal)
  }
}

/** For an operator: since when, and when that was last printed. */
type Waiting = { readonly sinceMs: number; printedMs: number }

/** Keeps the key of a request that waits for an operator. undefined: it does not. */
async function waitingFor(
  progress: Progress,
  request: JoinRequest,
  { name, key }: Asked,
  needs: JoinNeeds,
): Promise<Waiting | undefined> {
  if (progress.state !== 'pending' || progress.waitsBecause === undefined) return undefined
  const sinceMs = needs.clock.monotonicMs()
  await keepPendingKey(request, key)
  const report = needs.waits ?? needs.print
  report(waitingText(name, request.nodeName, progress.waitsBecause))
  return { sinceMs, printedMs: sinceMs }
}

function printWaiting(waiting: Waiting, name: string, nowMs: number, print: JoinNeeds['print']): void {
  if (nowMs - waiting.printedMs < progressEveryMs) return
  waiting.printedMs = nowMs
  print(`Still waiting for the approval of ${name}, ${Math.round((nowMs - waiting.sinceMs) / 60_000)} min`)
}

function waitingText(name: string, nodeName: string, because: string): string {
  return [
    `The request ${name} waits for an operator: ${because}.`,
    `To let this machine be node ${nodeName}, run on the controller:  kubectl certificate approve ${name}`,
    'If the name is that of another machine, stop this command and give this one another name with --node-name.',
    'Waiting for the approval. This may be interrupted: run the same command again to resume.',
  ].join('\n')
}

/** How the request stands. Throws when it cannot come to anything any more. */
function judged(
  { url, token, nodeName }: JoinRequest,
  answer: ApiAnswer | ApiUnreachable,
  skewMs: number | undefined,
): Progress {
  if (answer instanceof ApiUnreachable) return { state: 'pending' }
  if (answer.status === 401) throw tokenRefused(token.id, answer.body, skewMs)
  const progress = answer.status < 300 ? progressOf(answer.body) : ({ state: 'strange' } as const)
  switch (progress.state) {
    case 'strange':
      throw strangeAnswer(url, 'asking for a certificate', answer)
    case 'denied':
      throw new JoinError(
        `The controller denied this machine the name ${nodeName} (${progress.reason}): ${progress.message}`,
        progress.reason === 'NodeNameInUse'
          ? "Give this machine a name of its own ('--node-name NAME', or another hostname). If it is that node, with a new card or data directory, run 'kubectl delete node NAME' first; an Event of the Node describes both machines."
          : 'Ask an administrator of the controller.',
        { isNameTaken: progress.reason === 'NodeNameInUse', isFinal: true },
      )
    case 'failed':
      throw new JoinError(
        `The controller could not sign the certificate: ${progress.message}`,
        'Look at the log of the controller.',
        { isFinal: true },
      )
    default:
      return progress
  }
}

function notYet(name: string, waitedMs: number, state: Progress['state']) {
  const what = state === 'approved' ? 'was approved, but not signed' : 'was not approved'
  return new JoinError(
    `The request ${name} ${what} within ${waitedMs / 1000} s`,
    `Look at it with 'kubectl describe csr ${name}' and at the log of the controller; 'kubectl certificate approve ${name}' lets this machine in. Then join again.`,
  )
}

function tooLate(url: URL, answer: ApiAnswer | ApiUnreachable, otherwise: JoinError): JoinError {
  return answer instanceof ApiUnreachable ? unreachable(url, answer) : otherwise
}

function stopped(name: string) {
  return new JoinError(
    `stopped while the request ${name} waits for an operator`,
    'Run the same command again to resume.',
  )
}

/** Throws a JoinError when there was no answer, or what `signal` was aborted with. */
export async function reached(url: URL, asked: Promise<ApiAnswer>, signal: AbortSignal): Promise<ApiAnswer> {
  const answer = await asked.catch(ifUnreachable)
  if (!(answer instanceof ApiUnreachable)) return answer
  signal.throwIfAborted()
  throw unreachable(url, answer)
}

/** An aborted call rejects with the signal's reason: its caller looks at the signal. */
function ifStopped(error: unknown, signal: AbortSignal): ApiUnreachable {
  return signal.aborted ? new ApiUnreachable('Stopped', 'ECANCELED', { cause: error }) : ifUnreachable(error)
}

function ifUnreachable(error: unknown): ApiUnreachable {
  if (error instanceof ApiUnreachable) return error
  throw error
}

/**
 * A node's request for its client certificate. Named after the key, so that no two machines' requests meet, and after
 * `series`, which separates the requests for one key.
 */
export function signingRequest(
  nodeName: string,
  key: KeyObject,
  hardware: HardwareIdentity,
  series = '',
): CertificateSigningRequest {
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const digest = createHash('sha256').update(publicKey).update(series).digest('hex')
  const pem = createCSR({ commonName: nodeIdentity(nodeName).user, organization: nodesGroup, key })
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name: `node-csr-${digest.slice(0, 40)}`,
      annotations: { [hardwareIdentityAnnotation]: JSON.stringify(hardware) },
    },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: nodeClientSigner,
      usages: [...nodeClientUsages],
    },
  }
}

type Progress =
  /** `waitsBecause`: it waits for an operator. */
  | { readonly state: 'pending'; readonly waitsBecause?: string }
  | { readonly state: 'approved' }
  | { readonly state: 'issued'; readonly certificate: string }
  | { readonly state: 'denied'; readonly reason: string; readonly message: string }
  | { readonly state: 'failed'; readonly message: string }
  /** Not a CertificateSigningRequest at all. */
  | { readonly state: 'strange' }

/** The state of the request in the API's answer. A denial counts whatever else is there. */
export function progressOf(body: unknown): Progress {
  const decoded = decode(CertificateSigningRequestSchema, body)
  if (!decoded.ok) return { state: 'strange' }
  const { conditions = [], certificate } = decoded.value.status ?? {}
  const condition = (type: string) => conditions.find((one) => one.type === type)
  const [denied, failed] = [condition('Denied'), condition('Failed')]
  if (denied) return { state: 'denied', reason: denied.reason ?? 'Denied', message: denied.message ?? '' }
  if (failed) return { state: 'failed', message: failed.message ?? '' }
  if (certificate) return { state: 'issued', certificate: Buffer.from(certificate, 'base64').toString() }
  if (condition('Approved')) return { state: 'approved' }
  const waiting = condition(waitingCondition)
  return { state: 'pending', ...(waiting && { waitsBecause: waiting.message ?? 'the controller gives no reason' }) }
}

/** Why this is not the certificate that was asked for; undefined when it is. */
export function certificateProblem(
  pem: string,
  wanted: { readonly key: KeyObject; readonly nodeName: string; readonly authority: X509Certificate },
): string | undefined {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    return 'it cannot be read'
  }
  if (!certificate.checkPrivateKey(wanted.key)) return "it is not for this machine's key"
  if (!certificate.verify(wanted.authority.publicKey)) return 'it is not signed by the authority'
  const { user } = nodeIdentity(wanted.nodeName)
  const subject = `O=${nodesGroup}\nCN=${user}`
  if (certificate.subject !== subject) return `it is for ${certificate.subject.replaceAll('\n', ', ')}, not for ${user}`
  return undefined
}
