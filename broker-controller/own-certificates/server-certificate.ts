/** The server's certificate and its two files in the data directory. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Authority, wrongDate } from '../../certs/authority.ts'
import { type Issued, issueServer, yearMs } from '../../certs/issue.ts'
import type { Clock } from '../../daemon/clock.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import type { Log } from '../../daemon/log.ts'
import { renewalDueMs } from '../../daemon/renewal.ts'

export type ServerCertificateNeeds = {
  readonly dataDir: string
  /** DNS names and addresses of this server. */
  readonly names: readonly string[]
  /** Names of the fleet's other controllers: an address that moves between controllers is in each certificate. */
  readonly moreNames?: () => readonly string[]
  /** Life of the certificate, five years unless given. */
  readonly servingMs?: number
  readonly clock: Clock
  readonly log: Log
}

/** `isKept`: it is from an earlier run, because the clock was wrong when it was to be issued. */
export type ServerCertificate = Issued & { readonly isKept: boolean }

/** In the data directory. */
export const serverCertificateName = 'server.crt'
const files = { key: 'server.key', certificate: serverCertificateName }

/**
 * A new certificate with that of its authority behind it, saved: addresses change, so each start issues one. While the clock
 * is wrong, the saved certificate; rejects if there is none.
 */
export async function serverCertificate(
  authority: Authority,
  { dataDir, names, moreNames, servingMs, clock, log }: ServerCertificateNeeds,
): Promise<ServerCertificate> {
  const nowMs = clock.wallMs()
  const wrong = wrongDate(nowMs, authority)
  if (wrong !== undefined) {
    const kept = await keptCertificate(dataDir)
    if (kept === undefined) throw new Error(wrong)
    log.warn('Clock is wrong: the server uses its last certificate until the clock is set', { because: wrong })
    return { ...kept, isKept: true }
  }
  const { key, certificate } = issueServer(authority, {
    names: [...names, ...(moreNames?.() ?? [])],
    nowMs,
    ...(servingMs !== undefined && { lifeMs: servingMs }),
  })
  const chain = `${certificate.trimEnd()}\n${authority.certificate}`
  await replaceFile(join(dataDir, files.key), key, 0o600)
  await replaceFile(join(dataDir, files.certificate), chain, 0o644)
  return { key, certificate: chain, isKept: false }
}

/**
 * Time until the certificate and that of the administrator, which is issued with it for a year, are to be renewed. 0 for one that
 * was issued by a clock that was ahead.
 */
export function serverRenewalInMs({ certificate, isKept }: ServerCertificate, nowMs: number, share: number): number {
  const { validFrom, validTo } = new X509Certificate(certificate)
  const sinceMs = Date.parse(validFrom)
  const untilMs = Math.min(Date.parse(validTo), sinceMs + yearMs)
  return isKept || nowMs < sinceMs ? 0 : Math.max(0, renewalDueMs({ sinceMs, untilMs }, share) - nowMs)
}

/** undefined: there is none, or the files do not belong together, as after a power cut between the two. */
async function keptCertificate(dataDir: string): Promise<Issued | undefined> {
  const read = (name: string) => readFile(join(dataDir, name), 'utf8').catch(() => undefined)
  const [key, certificate] = await Promise.all([read(files.key), read(files.certificate)])
  if (key === undefined || certificate === undefined) return undefined
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { key, certificate } : undefined
}
