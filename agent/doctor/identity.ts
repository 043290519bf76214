/** Checks of the node's identity: certificate, key and authority are valid, belong together and do not expire soon. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { certificatesIn } from '../../api/text/pem.ts'
import type { AgentIdentity } from '../join/identity.ts'
import { type DoctorFinding, ok, problem, warning } from './doctor-finding.ts'

const day = 86_400_000
const joinAgain =
  "Join again with a new token: 'bramble-controller token create --print-join-command' prints the line to run here"

const renewal =
  "The agent renews it long before: see 'journalctl -u bramble-agent' why it did not, and that it reaches the controller"

/** Undefined: the machine has not joined. */
export function identityFindings(identity: AgentIdentity | undefined, nowMs: number): readonly DoctorFinding[] {
  if (identity === undefined) {
    const remedy =
      "On the controller, 'bramble-controller token create --print-join-command' prints the line to run here"
    return [warning('identity', 'This machine has not joined a fleet', remedy)]
  }
  let certificate: X509Certificate
  let authorities: readonly X509Certificate[]
  let isKeyOurs: boolean
  try {
    certificate = new X509Certificate(identity.certificate)
    authorities = authoritiesIn(identity.ca)
    isKeyOurs = certificate.checkPrivateKey(createPrivateKey(identity.key))
  } catch {
    return [problem('identity', 'The certificate, the key or the authority in identity.json is damaged', joinAgain)]
  }
  return [
    names(identity, certificate, isKeyOurs),
    ofCertificate(certificate, authorities, nowMs),
    ofAuthorities(authorities, nowMs),
  ]
}

function names({ nodeName, apiUrl }: AgentIdentity, certificate: X509Certificate, isKeyOurs: boolean): DoctorFinding {
  const subject = certificate.subject.split('\n')
  if (!subject.includes(`CN=system:node:${nodeName}`)) {
    return problem(
      'identity',
      `The certificate is not that of node ${nodeName}, but of ${subject.join(', ')}`,
      joinAgain,
    )
  }
  if (!isKeyOurs) return problem('identity', 'The key does not belong to the certificate', joinAgain)
  return ok('identity', `This machine joined ${apiUrl} as node ${nodeName}`)
}

function ofCertificate(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
  nowMs: number,
): DoctorFinding {
  const check = 'node-certificate'
  if (!authorities.some((authority) => certificate.verify(authority.publicKey))) {
    return problem(check, "The node's certificate was not made by the fleet's authority in identity.json", joinAgain)
  }
  const { fromMs, toMs } = timesOf(certificate)
  if (nowMs < fromMs) return clockBehind(check, "The node's certificate", fromMs, nowMs)
  if (nowMs > toMs) {
    const found = `The node's certificate ended on ${date(toMs)}; the clock shows ${date(nowMs)}`
    const remedy =
      'Check the clock. If it is right, start the agent where it reaches the controller: for a year it gets a new one by itself; later join again with a new token'
    return problem(check, found, remedy)
  }
  const found = `The node's certificate is valid until ${date(toMs)}, ${daysOf(toMs - nowMs)} from now`
  return (toMs - nowMs) / (toMs - fromMs) < 0.1 ? warning(check, found, renewal) : ok(check, found)
}

function ofAuthorities(authorities: readonly X509Certificate[], nowMs: number): DoctorFinding {
  const check = 'authority'
  const times = authorities.map(timesOf)
  const lastMs = Math.max(...times.map(({ toMs }) => toMs))
  const firstMs = Math.min(...times.map(({ fromMs }) => fromMs))
  if (nowMs < firstMs) return clockBehind(check, "The fleet's authority", firstMs, nowMs)
  if (nowMs > lastMs) {
    return problem(
      check,
      `The fleet's authority ended on ${date(lastMs)}`,
      'Check the clock. If it is right, the fleet needs another authority, and every machine joins again',
    )
  }
  const found = `The fleet's authority is valid until ${date(lastMs)}`
  if (lastMs - nowMs > 90 * day) return ok(check, found)
  return warning(
    check,
    `${found}, ${daysOf(lastMs - nowMs)} from now`,
    "Change over to another one: 'bramble-controller certificates rollover begin' on the controller, with all machines on",
  )
}

function clockBehind(check: string, what: string, fromMs: number, nowMs: number): DoctorFinding {
  const found = `${what} begins on ${date(fromMs)}, but the clock of this machine shows ${date(nowMs)}: it is behind`
  return problem(check, found, "Let the machine reach a time server ('timedatectl'), or set the clock with 'date -s'")
}

function timesOf({ validFrom, validTo }: X509Certificate) {
  return { fromMs: Date.parse(validFrom), toMs: Date.parse(validTo) }
}

/** Throws when there is no authority, or one cannot be parsed. */
function authoritiesIn(pem: string): readonly X509Certificate[] {
  const found = certificatesIn(pem)
  if (found.length === 0) throw new Error('There is no certificate')
  return found.map((one) => new X509Certificate(one))
}

function date(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(0, 10) : 'an unknown day'
}

function daysOf(ms: number): string {
  const days = Math.floor(ms / day)
  return days === 1 ? '1 day' : `${days} days`
}
