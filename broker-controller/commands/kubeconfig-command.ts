/** `bramble-controller kubeconfig`: a kubeconfig for a person or a program, with a certificate that the fleet signs. */
import { randomBytes } from 'node:crypto'
import {
  type CertificateSigningRequest,
  CertificateSigningRequestSchema,
  peopleSigner,
} from '../../api/certificate-signing-request.ts'
import { decode } from '../../api/decode.ts'
import { newKey, privateKeyPem } from '../../certs/authority.ts'
import { type ClientSubject, createClientCSR } from '../../certs/client-csr.ts'
import { kubeconfigText } from '../../certs/kubeconfig.ts'
import { type ApiClient, apiClient } from '../../daemon/api-client.ts'
import { systemClock } from '../../daemon/clock.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import { parseDuration } from '../../daemon/duration.ts'
import { invalidValue } from '../../daemon/process/command-line.ts'
import { kubeconfigRow } from './command-table.ts'
import { expectSuccess } from './connection/expect-success.ts'
import { kubeconfigPlace, readKubeconfig } from './connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from './run-command.ts'

/** `argv`: what follows `kubeconfig`. The exit code. Never rejects for what was typed or what the API answers. */
export async function kubeconfigCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(kubeconfigRow, argv, output, ({ values }) => {
    const { user = '', group: groups = [], ttl, output: path } = values
    if (user === '') return 'Name the user with --user'
    const ttlMs = parseDuration(ttl)
    if (ttlMs === undefined || ttlMs < shortestMs) return invalidValue('--ttl', ttl, 'use a duration of 10m or more')
    const place = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    return async () => {
      const access = await readKubeconfig(place.path, place.context)
      const key = newKey()
      const subject = { user, groups }
      const certificate = await signedBy(
        apiClient(access),
        subject,
        createClientCSR(subject, key),
        ttlMs,
        output.signal,
      )
      const text = kubeconfigText({ server: access.url, ca: access.ca, certificate, key: privateKeyPem(key), user })
      if (path === undefined) return text
      await replaceFile(path, text, 0o600)
      return `The kubeconfig of ${user} is ${path}. Bind a role to the user: kubectl create rolebinding --help\n`
    }
  })
}

const shortestMs = 10 * 60_000
const requestsPath = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

/** The certificate, PEM. The request is removed afterwards. */
async function signedBy(
  client: ApiClient,
  { user }: ClientSubject,
  pem: string,
  ttlMs: number,
  signal: AbortSignal,
): Promise<string> {
  const name = `kubeconfig-${randomBytes(6).toString('hex')}`
  const path = `${requestsPath}/${name}`
  const refused = `Cannot issue a certificate for ${user}`
  const request: CertificateSigningRequest = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: peopleSigner,
      usages: ['digital signature', 'client auth'],
      expirationSeconds: Math.floor(ttlMs / 1000),
    },
  }
  expectSuccess(refused, await client.post(requestsPath, request, signal))
  try {
    const message = 'Approved by bramble-controller kubeconfig'
    const approved = { type: 'Approved', status: 'True', reason: 'KubeconfigCommand', message }
    const verdict = { status: { conditions: [approved] } }
    const answer = await client.patch(`${path}/approval`, verdict, 'application/merge-patch+json', signal)
    expectSuccess(refused, answer)
    return await certificateAt(path, client, refused, signal)
  } finally {
    await client.delete(path).catch(() => undefined) // it is removed an hour after its approval in any case
  }
}

const attempts = 100
const waitMs = 100

async function certificateAt(path: string, client: ApiClient, refused: string, signal: AbortSignal): Promise<string> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const answer = await client.get(path, signal)
    expectSuccess(refused, answer)
    const decoded = decode(CertificateSigningRequestSchema, answer.body)
    const { conditions = [], certificate } = (decoded.ok && decoded.value.status) || {}
    if (certificate) return Buffer.from(certificate, 'base64').toString('utf8')
    const failed = conditions.find(({ type }) => type === 'Failed' || type === 'Denied')
    if (failed !== undefined) throw new Error(`${refused}: ${failed.message}`)
    await systemClock.sleep(waitMs, signal)
    signal.throwIfAborted()
  }
  throw new Error(`${refused}: the controller did not sign the request within 10 s. See its log`)
}
