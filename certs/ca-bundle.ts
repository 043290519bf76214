/** The certificates that a webhook's server is verified with, as clients give them: PEM in base64. */
import { X509Certificate } from 'node:crypto'
import { certificatesIn } from '../api/text/pem.ts'

/** Why servers cannot be verified with this `caBundle`; undefined: they can. What is empty stands for the authorities of the machine. */
export function caBundleProblem(base64 = ''): string | undefined {
  const text = Buffer.from(base64, 'base64').toString('utf8')
  if (text.trim() === '') return undefined
  const blocks = certificatesIn(text)
  if (blocks.length > 0 && blocks.every(isCertificate)) return undefined
  return 'unable to load root certificates: unable to parse bytes as PEM block'
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0
  } catch {
    return false
  }
}
