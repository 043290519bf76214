/** A certificate that browsers trust, for the dashboard: read from files, and again when they change. */
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'

export type CertificateFiles = { readonly certificate: string; readonly key: string }

/** PEM. */
export type CertificateTexts = { readonly certificate: string; readonly key: string }

export type DashboardCertificateNeeds = {
  readonly files: CertificateFiles
  readonly clock: Clock
  readonly log: Log
  /** Called after each change. */
  readonly onChange: () => void
}

export type DashboardCertificate = Loop & { readonly current: () => CertificateTexts }

/** Twice in the minute within which a change is used. */
const checkMs = 30_000

/** Rejects if the files cannot be read, or do not belong together. Later problems are logged, and the last certificate stays. */
export async function openDashboardCertificate(needs: DashboardCertificateNeeds): Promise<DashboardCertificate> {
  const { files, clock, log, onChange } = needs
  let version = await versionOf(files)
  let texts = await readTexts(files)
  const check = async () => {
    const now = await versionOf(files)
    if (now === version) return
    texts = await readTexts(files)
    version = now
    onChange()
    log.info('Dashboard certificate changed', { file: files.certificate })
  }
  return {
    name: 'dashboard-certificate',
    current: () => texts,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(checkMs, signal)
        await check().catch((error: unknown) => log.warn('Dashboard certificate not read', { error }))
      }
    },
  }
}

async function versionOf({ certificate, key }: CertificateFiles): Promise<string> {
  const found = await Promise.all([stat(certificate), stat(key)])
  return found.map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`).join(', ')
}

async function readTexts({ certificate, key }: CertificateFiles): Promise<CertificateTexts> {
  try {
    const texts = { certificate: await readFile(certificate, 'utf8'), key: await readFile(key, 'utf8') }
    createSecureContext({ cert: texts.certificate, key: texts.key })
    return texts
  } catch (cause) {
    throw new Error(`Cannot use the certificate ${certificate} with the key ${key}`, { cause })
  }
}
