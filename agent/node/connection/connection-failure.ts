/** The cause of a failed connection to the control plane, and its remedy. */
import { codeOf } from '../../../daemon/errors.ts'
import type { CertificateDates } from '../certificate/certificate-dates.ts'

export type ConnectionFailure = {
  /** Failures of one kind are logged once during an outage. */
  readonly kind: string
  readonly remedy: string
}

const willRenew =
  'The agent asks for a new one by itself; if the controller refuses, the log has the reason and the remedy'
const joinAgain = 'Join again with a new token: bramble-agent join …'

const elsewhere =
  "If the controller has another address now, join again with the line of 'bramble-controller token create --print-join-command' and --no-run, and restart the agent"

/** TLS alerts and checks by OpenSSL's and Node's codes. */
const byCode: { readonly [code: string]: ConnectionFailure } = {
  CERT_HAS_EXPIRED: {
    kind: 'server certificate expired',
    remedy:
      "The controller's certificate has expired, or this machine's clock is wrong: compare `date` on both; restarting the controller gives it a new certificate",
  },
  CERT_NOT_YET_VALID: {
    kind: 'server certificate not yet valid',
    remedy: "This machine's clock is behind: check `date` and that time is synchronized (timedatectl)",
  },
  SELF_SIGNED_CERT_IN_CHAIN: otherAuthority(),
  DEPTH_ZERO_SELF_SIGNED_CERT: otherAuthority(),
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: otherAuthority(),
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: otherAuthority(),
  CERT_SIGNATURE_FAILURE: otherAuthority(),
  ERR_TLS_CERT_ALTNAME_INVALID: {
    kind: 'server name',
    remedy:
      "The controller's certificate does not contain the address that this node uses: start the controller with --host and that address, or join again with a name that it contains",
  },
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: {
    kind: 'own authority unknown',
    remedy: `The controller does not accept the authority of this node's certificate: it was set up again. ${joinAgain}`,
  },
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: {
    kind: 'own certificate expired',
    remedy: `The controller reports that this node's certificate has expired. ${willRenew}`,
  },
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: {
    kind: 'own certificate revoked',
    remedy: `This node's certificate was revoked. ${joinAgain}`,
  },
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: {
    kind: 'own certificate refused',
    remedy: `The controller refuses this node's certificate. ${joinAgain}`,
  },
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: {
    kind: 'own certificate missing',
    remedy: `The controller received no certificate from this node. ${joinAgain}`,
  },
  ENOTFOUND: { kind: 'network', remedy: 'The name server has no address for the name of the controller' },
  EAI_AGAIN: { kind: 'network', remedy: 'No name server answers: is the network up?' },
  ECONNREFUSED: {
    kind: 'network',
    remedy: `The machine answers, but nothing listens on this port: is the controller running? ${elsewhere}`,
  },
  EHOSTUNREACH: { kind: 'network', remedy: `There is no route to the controller: is the network up? ${elsewhere}` },
  ENETUNREACH: { kind: 'network', remedy: 'There is no route to the controller: is the network up?' },
}

/** Return codes of CONNACK, MQTT 3.1.1 section 3.2.2.3. */
const byReturnCode: { readonly [code: number]: ConnectionFailure } = {
  2: { kind: 'identifier', remedy: 'The broker refuses the name of this node: is another machine using it?' },
  3: { kind: 'network', remedy: 'The broker is not ready yet' },
  4: { kind: 'not authorized', remedy: `The broker does not accept this node. ${joinAgain}` },
  5: { kind: 'not authorized', remedy: `The broker does not accept this node. ${joinAgain}` },
}

/** OpenSSL cannot read the certificate or the key; nothing was sent. */
const unreadableIdentity: ConnectionFailure = {
  kind: 'own identity',
  remedy: `This node's certificate and key in identity.json are damaged. ${joinAgain}`,
}

const network: ConnectionFailure = {
  kind: 'network',
  remedy: `Is the controller running, and does the network reach it? ${elsewhere}`,
}

/** `own`: of this node's certificate. It is checked first: a server that finds it expired may only close the connection. */
export function connectionFailure(error: Error, own: CertificateDates, nowMs: number): ConnectionFailure {
  if (codeOf(error).startsWith('ERR_OSSL_')) return unreadableIdentity
  if (nowMs > own.validTo.getTime()) {
    const remedy = `This node's certificate expired on ${day(own.validTo)}, if the clock (${day(new Date(nowMs))}) is right. ${willRenew}`
    return { kind: 'own certificate expired', remedy }
  }
  if (nowMs < own.validFrom.getTime()) {
    const remedy = `The clock shows ${day(new Date(nowMs))}, which is before this node's certificate was made: the agent tries again until the time is synchronized`
    return { kind: 'clock', remedy }
  }
  return byCode[codeOf(error)] ?? byReturnCode[returnCodeOf(error)] ?? network
}

/** Return code of a CONNACK: the MQTT client sets it as the code of its error. */
function returnCodeOf(error: Error): number {
  return 'code' in error && typeof error.code === 'number' ? error.code : 0
}

function otherAuthority(): ConnectionFailure {
  return {
    kind: 'other authority',
    remedy: `The server has a certificate of another authority than the one this node joined: the controller was set up again, or the address now belongs to another machine. ${joinAgain}`,
  }
}

function day(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'unknown' : date.toISOString().slice(0, 16).replace('T', ' ')
}
