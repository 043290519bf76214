/**
 * A Secret with a certificate → what HAProxy reads, or why it would not. HAProxy refuses its whole configuration for one
 * certificate that OpenSSL does not take, so each is parsed here, written again from what was parsed, and held to the rules of
 * OpenSSL at security level 2, which Debian and Alpine use.
 */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Secret } from '../../../api/secret.ts'

/** `file`: the name of a file, which is that of its content. `pem`: certificates, then the key. */
export type CheckedCertificate = { readonly file: string; readonly pem: string } | { readonly problem: string }

const mostBytes = 64 * 1024
const longestChain = 10
/** OpenSSL refuses less. More costs the proxy 50 ms and more of a core for each connection. */
const rsaBits = { least: 2048, most: 8192 }
const curves = ['prime256v1', 'secp384r1', 'secp521r1']
/** Object identifiers in DER: sha256, sha384 and sha512 with RSA; ecdsa-with-SHA256, 384 and 512; Ed25519 (RFC 4055, 5758, 8410). */
const signatures = [
  ...['2a864886f70d01010b', '2a864886f70d01010c', '2a864886f70d01010d'],
  ...['2a8648ce3d040302', '2a8648ce3d040303', '2a8648ce3d040304', '2b6570'],
]

/** The problem is a sentence with a remedy for an Event; no part of the key is in it. Takes 1 to 3 ms. */
export function checkCertificate({ type, data = {} }: Secret): CheckedCertificate {
  if (type !== 'kubernetes.io/tls') {
    return {
      problem: `has the type ${JSON.stringify((type ?? '').slice(0, 60))}: create it with kubectl create secret tls`,
    }
  }
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('latin1')
  const [certificates, key] = [text('tls.crt'), text('tls.key')]
  if (certificates.length > mostBytes || key.length > mostBytes) return { problem: 'has more than 64 KiB in a key' }
  const chain = blocksOf(certificates, /^CERTIFICATE$/).map((pem) => parsed(() => new X509Certificate(pem)))
  const [leaf] = chain
  if (leaf === undefined) return { problem: 'has no certificate in PEM format in tls.crt' }
  if (chain.length > longestChain) return { problem: `has more than ${longestChain} certificates in tls.crt` }
  const [keyPem] = blocksOf(key, /^(EC |RSA )?PRIVATE KEY$/)
  const privateKey = keyPem === undefined ? undefined : parsed(() => createPrivateKey(keyPem))
  if (privateKey === undefined) return { problem: 'has no private key in PEM format without a password in tls.key' }
  if (parsed(() => leaf.checkPrivateKey(privateKey)) !== true) {
    return { problem: 'has a private key in tls.key that is not that of the certificate' }
  }
  // Clients have the authority itself; OpenSSL would judge its signature, too.
  const sent = chain.filter((one, index) => index === 0 || one === undefined || one.subject !== one.issuer)
  for (const one of sent) {
    const problem = one === undefined ? 'has a certificate in tls.crt that cannot be read' : weakness(one)
    if (problem !== undefined) return { problem }
  }
  const pem = `${sent.map((one) => one?.toString().trim()).join('\n')}\n${privateKey.export({ type: 'pkcs8', format: 'pem' })}`
  return { file: `${createHash('sha256').update(pem).digest('hex').slice(0, 24)}.pem`, pem }
}

function weakness(certificate: X509Certificate): string | undefined {
  const key = parsed(() => certificate.publicKey)
  const keyProblem = key === undefined ? 'with an unknown key' : keyWeakness(key)
  if (keyProblem !== undefined) return `has a certificate ${keyProblem}: issue another one`
  return signatures.includes(signatureOf(certificate.raw))
    ? undefined
    : 'has a certificate whose signature does not use SHA-256 or later: issue another one'
}

function keyWeakness({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): string | undefined {
  if (type === 'rsa') {
    const bits = details.modulusLength ?? 0
    return bits >= rsaBits.least && bits <= rsaBits.most
      ? undefined
      : `with an RSA key of ${bits} bits, not ${rsaBits.least} to ${rsaBits.most}`
  }
  if (type === 'ec')
    return curves.includes(details.namedCurve ?? '') ? undefined : 'with a curve other than P-256 to P-521'
  return type === 'ed25519' ? undefined : 'with a key that is not RSA, EC or Ed25519'
}

/** Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER, … }, … } (RFC 5280). */
function signatureOf(der: Buffer): string {
  const whole = elementAt(der, 0)
  const algorithm = elementAt(der, elementAt(der, whole.start).end)
  const { start, end } = elementAt(der, algorithm.start)
  return der.subarray(start, end).toString('hex')
}

/** Where the content of the element at `at` is. OpenSSL has parsed it, so the lengths are true. */
function elementAt(der: Buffer, at: number): { readonly start: number; readonly end: number } {
  const first = der[at + 1] ?? 0
  if (first < 0x80) return { start: at + 2, end: at + 2 + first }
  const count = first & 0x7f
  const length = der.subarray(at + 2, at + 2 + count).reduce((sum, byte) => sum * 256 + byte, 0)
  return { start: at + 2 + count, end: at + 2 + count + length }
}

function blocksOf(text: string, label: RegExp): readonly string[] {
  const found = text.matchAll(/-----BEGIN ([A-Z0-9 ]{1,64})-----[^-]*-----END \1-----/g)
  return [...found].filter(([, name = '']) => label.test(name)).map(([block]) => block)
}

function parsed<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
