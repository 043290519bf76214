/** A new certificate for a node that has one, or had one: asked for with it, for a key of its own. */
import { X509Certificate } from 'node:crypto'
import type { HardwareIdentity } from '../../api/node/hardware-identity.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import { newKey, privateKeyPem } from '../../certs/authority.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable, statusMessage } from '../../daemon/api-client.ts'
import type { Clock } from '../../daemon/clock.ts'
import { certificateProblem, progressOf, signingRequest, signingRequestsPath } from './certificate-request.ts'

export type RenewalRequest = {
  readonly nodeName: string
  readonly hardware: HardwareIdentity
  /** PEM: the authorities that may have signed it. */
  readonly trusted: string
}

export type RenewalNeeds = {
  /** As this node. */
  readonly api: Pick<ApiClient, 'get' | 'post'>
  readonly clock: Clock
  /** An operator may have to approve it: how often to look, and how long until it is requested again. */
  readonly pollMs?: number
  readonly patienceMs?: number
}

/** PEM, both. Rejects with the controller's message when no certificate is issued. */
export async function renewedCertificate(
  { nodeName, hardware, trusted }: RenewalRequest,
  { api, clock, pollMs = 2_000, patienceMs = 12 * 3600_000 }: RenewalNeeds,
  signal: AbortSignal,
): Promise<{ readonly certificate: string; readonly key: string }> {
  const key = newKey()
  const asked = signingRequest(nodeName, key, hardware)
  const path = `${signingRequestsPath}/${asked.metadata.name}`
  const endMs = clock.monotonicMs() + patienceMs
  let answer = await api.post(signingRequestsPath, asked, signal)
  for (let waits = 0; ; waits++) {
    if (answer.status >= 300) throw new Error(`Refused: ${answer.status} ${statusMessage(answer.body) ?? ''}`)
    const progress = progressOf(answer.body)
    switch (progress.state) {
      case 'issued': {
        const problem = problemOf(progress.certificate, key, nodeName, trusted)
        if (problem !== undefined) throw new Error(`The controller issued an unusable certificate: ${problem}`)
        return { certificate: progress.certificate, key: privateKeyPem(key) }
      }
      case 'denied':
        throw new Error(`Denied (${progress.reason}): ${progress.message}`)
      case 'failed':
        throw new Error(`Not signed: ${progress.message}`)
      case 'strange':
        throw new Error('The answer of the controller is not a CertificateSigningRequest')
      case 'pending':
      case 'approved':
        if (clock.monotonicMs() >= endMs) {
          throw new Error(
            `Not approved yet: ${asked.metadata.name}: kubectl certificate approve ${asked.metadata.name}`,
          )
        }
    }
    // At once most are signed; one that an operator must look at is not asked for every second.
    await clock.sleep(Math.min(60_000, pollMs * 1.5 ** Math.min(waits, 10)), signal)
    signal.throwIfAborted()
    answer = (await newAnswer(api, path, signal)) ?? answer
  }
}

/** Undefined: no answer for now. The request remains in the API under its name. */
async function newAnswer(api: RenewalNeeds['api'], path: string, signal: AbortSignal): Promise<ApiAnswer | undefined> {
  try {
    const answer = await api.get(path, signal)
    return answer.status >= 500 || answer.status === 429 ? undefined : answer
  } catch (error) {
    if (error instanceof ApiUnreachable) return undefined
    throw error
  }
}

function problemOf(pem: string, key: ReturnType<typeof newKey>, nodeName: string, trusted: string): string | undefined {
  const problems = certificatesIn(trusted).map((one) =>
    certificateProblem(pem, { key, nodeName, authority: new X509Certificate(one) }),
  )
  return problems.includes(undefined) ? undefined : (problems[0] ?? 'no authority is trusted')
}
