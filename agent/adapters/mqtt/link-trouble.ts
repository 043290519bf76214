/** Why a connection to the control plane failed, and what whoever runs the fleet can do about it. */
import { X509Certificate } from 'node:crypto'

export type Trouble = {
  /** Troubles of one kind are told once as long as they last. */
  readonly kind: string
  readonly remedy: string
}

export type OwnCertificate = { readonly validFrom: Date; readonly validTo: Date }

const asksAnew = 'The agent asks for a new one by itself; if the controller refuses, the log says why and what to do'
const joinAgain = 'Join again with a new token: bramble-agent join …'

/** TLS alerts and checks by OpenSSL's and Node's codes. */
const byCode: { readonly [code: string]: Trouble } = {
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
      "The controller's certificate does not name the address we use: start the controller with --host and that address, or join again by a name it has",
  },
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: {
    kind: 'own authority unknown',
    remedy: `The controller does not know the authority of this node's certificate: it was set up anew. ${joinAgain}`,
  },
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: {
    kind: 'own certificate expired',
    remedy: `The controller finds this node's certificate expired. ${asksAnew}`,
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
    remedy: `The controller got no certificate from us. ${joinAgain}`,
  },
  ENOTFOUND: { kind: 'network', remedy: 'The name of the controller is not known to the name server' },
  EAI_AGAIN: { kind: 'network', remedy: 'No name server answers: is the network up?' },
  ECONNREFUSED: { kind: 'network', remedy: 'The machine answers but nobody listens: is the controller running?' },
  EHOSTUNREACH: { kind: 'network', remedy: 'No way to the controller: is the network up?' },
  ENETUNREACH: { kind: 'network', remedy: 'No way to the controller: is the network up?' },
}

/** CONNACK's answers, MQTT 3.1.1 section 3.2.2.3. */
const byAnswer: { readonly [code: number]: Trouble } = {
  2: { kind: 'identifier', remedy: 'The broker refuses the name of this node: is another machine using it?' },
  3: { kind: 'network', remedy: 'The broker is not ready yet' },
  4: { kind: 'not authorized', remedy: `The broker does not accept this node. ${joinAgain}` },
  5: { kind: 'not authorized', remedy: `The broker does not accept this node. ${joinAgain}` },
}

/** OpenSSL could make nothing of what we gave it, before a word was sent. */
const spoiled: Trouble = {
  kind: 'own identity',
  remedy: `This node's certificate and key, in identity.json, are spoiled. ${joinAgain}`,
}

const network: Trouble = { kind: 'network', remedy: 'Is the controller running, and does the network reach it?' }

/** Of a PEM. One that is spoiled has no dates: connecting will say so. */
export function lifeOf(pem: string): OwnCertificate {
  try {
    const { validFrom, validTo } = new X509Certificate(pem)
    return { validFrom: new Date(validFrom), validTo: new Date(validTo) }
  } catch {
    return { validFrom: new Date(Number.NaN), validTo: new Date(Number.NaN) }
  }
}

/** Our own certificate is looked at first: a server that finds it expired may just hang up. */
export function troubleOf(error: Error, own: OwnCertificate, nowMs: number): Trouble {
  const { code } = error as { readonly code?: unknown }
  if (typeof code === 'string' && code.startsWith('ERR_OSSL_')) return spoiled
  if (nowMs > own.validTo.getTime()) {
    const remedy = `This node's certificate expired on ${day(own.validTo)}, if the clock (${day(new Date(nowMs))}) is right. ${asksAnew}`
    return { kind: 'own certificate expired', remedy }
  }
  if (nowMs < own.validFrom.getTime()) {
    const remedy = `The clock says ${day(new Date(nowMs))}, before this node's certificate was made: it will be tried again until time is synchronized`
    return { kind: 'clock', remedy }
  }
  if (typeof code === 'number') return byAnswer[code] ?? network
  return (typeof code === 'string' ? byCode[code] : undefined) ?? network
}

function otherAuthority(): Trouble {
  return {
    kind: 'other authority',
    remedy: `Whoever answers has a certificate of another authority than the one this node joined: the controller was set up anew, or the address is now another machine's. ${joinAgain}`,
  }
}

function day(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'unknown' : date.toISOString().slice(0, 16).replace('T', ' ')
}
