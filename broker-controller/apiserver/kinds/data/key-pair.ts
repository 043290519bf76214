/** Whether a certificate and a key belong together, in the words of Go's tls.X509KeyPair, which kube-apiserver warns with. */
import { createPrivateKey, X509Certificate } from 'node:crypto'

/** A chain of certificates or a key is far below this; a Secret may have 1 MiB. */
const mostCharacters = 256 * 1024

/**
 * Compares the first certificate of one PEM file with the first key of another; undefined: they belong together. The text
 * has no part of the key. It does not repeat OpenSSL's reason why a certificate or key cannot be parsed.
 */
export function keyPairProblem(certificatePem: string, keyPem: string): string | undefined {
  const certificate = firstBlock(certificatePem, /^CERTIFICATE$/)
  if (certificate === undefined) return missing('certificate', certificatePem)
  const key = firstBlock(keyPem, /^(.+ )?PRIVATE KEY$/)
  if (key === undefined) return missing('key', keyPem)
  const parsed = parse(() => new X509Certificate(certificate))
  if (parsed === undefined) return 'tls: failed to parse certificate'
  const privateKey = parse(() => createPrivateKey(key))
  if (privateKey === undefined) return 'tls: failed to parse private key'
  return parse(() => parsed.checkPrivateKey(privateKey)) ? undefined : 'tls: private key does not match public key'
}

function firstBlock(text: string, label: RegExp): string | undefined {
  const found = text.slice(0, mostCharacters).matchAll(/-----BEGIN ([A-Z0-9 ]{1,64})-----[^-]*-----END \1-----/g)
  for (const [block, name = ''] of found) if (label.test(name)) return block
  return undefined
}

function missing(input: 'certificate' | 'key', text: string): string {
  if (!text.includes('-----BEGIN ')) return `tls: failed to find any PEM data in ${input} input`
  const wanted = input === 'key' ? 'PEM block with type ending in "PRIVATE KEY"' : '"CERTIFICATE" PEM block'
  return `tls: failed to find ${wanted} in ${input} input`
}

function parse<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
