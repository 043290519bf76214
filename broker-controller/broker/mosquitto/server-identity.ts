/** The certificate of an external MQTT server, and its key: kept in its folder, and issued again in time. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Authority, dayMs, wrongDate } from '../../../certs/authority.ts'
import { readIfThere } from '../../../certs/files.ts'
import { type Issued, issueServer } from '../../../certs/issue.ts'
import { mosquittoFiles } from './server-configuration.ts'

/** Issued again when less is left of its five years. */
const leastLeftMs = 180 * dayMs

/** The one in the folder as long as it has these names, is of this authority and lasts; else a new one. Throws while the clock is wrong and there is none. */
export async function keptServerCertificate(
  folder: string,
  authority: Authority,
  names: readonly string[],
  nowMs: number,
): Promise<Issued> {
  const [chain, key] = await Promise.all(
    [mosquittoFiles.certificate, mosquittoFiles.key].map((name) => readIfThere(join(folder, name))),
  )
  const kept =
    chain !== undefined && key !== undefined && belongTogether(chain, key) ? { certificate: chain, key } : undefined
  if (kept !== undefined && isCurrent(kept.certificate, authority, names, nowMs)) return kept
  const wrong = wrongDate(nowMs, authority)
  if (wrong === undefined) {
    const issued = issueServer(authority, { names, nowMs })
    return { key: issued.key, certificate: `${issued.certificate.trimEnd()}\n${authority.certificate}` }
  }
  if (kept === undefined) throw new Error(wrong)
  return kept
}

/** Not after a power cut between the two files. */
function belongTogether(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}

function isCurrent(pem: string, authority: Authority, names: readonly string[], nowMs: number): boolean {
  const certificate = new X509Certificate(pem)
  const leftMs = Date.parse(certificate.validTo) - nowMs
  const isOurs = certificate.checkIssued(new X509Certificate(authority.certificate))
  const hasNames = names.every((name) => hasName(certificate, name))
  return isOurs && hasNames && leftMs > Math.min(leastLeftMs, (authority.notAfterMs - nowMs) / 2)
}

function hasName(certificate: X509Certificate, name: string): boolean {
  const [address = ''] = name.split('%') // with the interface it is on: fe80::1%eth0
  return (isIP(address) === 0 ? certificate.checkHost(name) : certificate.checkIP(address)) !== undefined
}
