/** A node proves that an address is its own: with the key of its certificate, which the authority of the fleet has signed. */
import { createPrivateKey, type KeyObject, sign, verify, X509Certificate } from 'node:crypto'
import { nodeNameOf, nodesGroup } from '../../../api/identity.ts'
import { certificatesIn } from '../../../api/text/pem.ts'
import { type Challenge, type Proof, signedText } from './probe-message.ts'

/** PEM, all three. */
export type ProofCredentials = { readonly ca: string; readonly certificate: string; readonly key: string }

export interface Prover {
  /** Throws if the credentials are invalid. */
  prove(challenge: Challenge): Proof
  /** The node that has proven the address; undefined: none of the fleet. Never throws. */
  proven(challenge: Challenge, proof: Proof): string | undefined
}

/** Certificates and keys are read again when they change, as at a renewal. */
export function prover(credentials: () => ProofCredentials): Prover {
  let read: ReadCredentials | undefined
  const current = (): ReadCredentials => {
    const from = credentials()
    if (read?.from !== from) read = readCredentials(from)
    return read
  }
  return {
    prove(challenge) {
      const { key, certificate } = current()
      const signature = sign(digestFor(key), signedText(challenge), key)
      return { nonce: challenge.nonce, signature, certificate: certificate.raw }
    },
    proven(challenge, proof) {
      try {
        return provenBy(current().authorities, challenge, proof)
      } catch {
        // An invalid certificate, or one with a key that OpenSSL does not accept.
        return undefined
      }
    },
  }
}

type ReadCredentials = {
  readonly from: ProofCredentials
  readonly key: KeyObject
  readonly certificate: X509Certificate
  readonly authorities: readonly X509Certificate[]
}

function readCredentials(from: ProofCredentials): ReadCredentials {
  const [certificate = ''] = certificatesIn(from.certificate)
  return {
    from,
    key: createPrivateKey(from.key),
    certificate: new X509Certificate(certificate),
    authorities: certificatesIn(from.ca).map((pem) => new X509Certificate(pem)),
  }
}

/**
 * Dates are not held against the clock: it may be years off after a boot without a network, and a machine that still has the key of a
 * node of the fleet's message is that node.
 */
function provenBy(
  authorities: readonly X509Certificate[],
  challenge: Challenge,
  { certificate: der, signature }: Proof,
): string | undefined {
  const certificate = new X509Certificate(der)
  const node = nodeOfSubject(certificate.subject)
  const isSigned = authorities.some((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
  if (node === undefined || certificate.ca || !isSigned) return undefined
  const { publicKey } = certificate
  return verify(digestFor(publicKey), signedText(challenge), publicKey, signature) ? node : undefined
}

/** `O=system:nodes\nCN=system:node:pi-1`. */
function nodeOfSubject(subject: string): string | undefined {
  const lines = subject.split('\n')
  const names = lines.filter((line) => line.startsWith('CN='))
  const [name] = names
  if (names.length !== 1 || name === undefined || !lines.includes(`O=${nodesGroup}`)) return undefined
  return nodeNameOf(name.slice('CN='.length))
}

/** Ed25519 has its own. */
function digestFor({ asymmetricKeyType }: KeyObject): string | null {
  return asymmetricKeyType === 'ed25519' ? null : 'sha256'
}
