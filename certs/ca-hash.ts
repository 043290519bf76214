/** The short text by which a machine recognizes the fleet's authority before it trusts anything. */
import { createHash, X509Certificate } from 'node:crypto'

/** `sha256:` and the hex SHA-256 of the certificate's public key (its SubjectPublicKeyInfo in DER), as kubeadm's. */
export function caHash(certificate: string | Uint8Array | X509Certificate): string {
  const read = certificate instanceof X509Certificate ? certificate : new X509Certificate(Buffer.from(certificate))
  const publicKey = read.publicKey.export({ type: 'spki', format: 'der' })
  return `sha256:${createHash('sha256').update(publicKey).digest('hex')}`
}

/** One short text for a set of authorities (PEM, in their order): equal means that the same are trusted. */
export function trustHash(trusted: string): string {
  return createHash('sha256').update(trusted.replaceAll(/\s+/g, '')).digest('hex').slice(0, 32)
}

export function isCaHash(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}
