/**
 * The authority as a running controller has it, and the certificates it makes for itself: the servers' and the
 * administrator's. Made at the start, and again in good time before they end; whoever uses them is told.
 */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { administrator } from '../api/identity.ts'
import { certificatesIn } from '../api/text/pem.ts'
import { type Authority, openAuthority, wrongDate } from '../certs/authority.ts'
import { checkNodeCSR, signNodeCSR } from '../certs/csr.ts'
import { type Issued, issueAdmin, issueServer, yearMs } from '../certs/issue.ts'
import { type KubeconfigServers, kubeconfigText } from '../certs/kubeconfig.ts'
import type { Clock } from '../daemon/clock.ts'
import { replaceFile } from '../daemon/durable-file.ts'
import type { Log } from '../daemon/log.ts'
import { renewalDueMs } from '../daemon/renewal.ts'
import type { Loop } from '../daemon/run.ts'
import { authorityFolderName } from './commands/backup.ts'
import type { CertificateSigner } from './controllers/certificates/request-answers.ts'
import { storeMark } from './store/store-mark.ts'

export type OwnCertificateNeeds = {
  readonly dataDir: string
  /** Of this server: DNS names and addresses. */
  readonly names: readonly string[]
  /** Which store this is: node certificates carry its mark. */
  readonly storeID: string
  /** Where else the administrator's kubeconfig shall be. */
  readonly kubeconfig: string | undefined
  readonly servingMs: number
  /** The longest a node's certificate is good for. */
  readonly signingMs: number
  /** Certificates of this user whose life began before are revoked; undefined: none is. */
  readonly revokedBefore: (user: string) => number | undefined
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

/** PEM: the server's own with its authority's; `ca` are all that are trusted. */
export type ServingTls = { readonly certificate: string; readonly key: string; readonly ca: string }

export interface OwnCertificates extends Loop {
  authority(): Authority
  tls(): ServingTls
  readonly signer: CertificateSigner
  /** Told after each change, in the order of asking. */
  onChange(told: () => Promise<void> | void): void
  /** Writes the administrator's kubeconfig for these servers, now and whenever it changes; gives its path. */
  writeKubeconfig(servers: KubeconfigServers): Promise<string>
  /** Another administrator's kubeconfig is written where the last one's certificate was revoked. */
  revoked(): Promise<void>
  /** Reads the authority's folder again and makes everything anew. */
  reload(): Promise<void>
}

const serverFiles = { key: 'server.key', certificate: 'server.crt' }
/** A clock may jump: no sleep is trusted for longer. Who waits for a certificate of the right time waits for so long. */
const lookMs = 60_000
const retryMs = 3600_000

export async function openOwnCertificates(needs: OwnCertificateNeeds): Promise<OwnCertificates> {
  const { dataDir, names, servingMs, signingMs, clock, random, log } = needs
  const folder = join(dataDir, authorityFolderName)
  const kubeconfigPath = join(dataDir, 'kubeconfig')
  const listeners: (() => Promise<void> | void)[] = []
  let authority = await openFleetAuthority(folder, clock, log)
  let server = await serverCertificate()
  let kubeconfigServers: KubeconfigServers | undefined
  let administratorSinceMs: number | undefined
  /** Everybody was told of it, and every kubeconfig written. */
  let isWhole = true
  let share = random()

  function dateProblem(): string | undefined {
    return wrongDate(clock.wallMs(), authority)
  }

  /** How long until it is to be made anew. One made by a clock that was wrong is due when the clock is right. */
  const dueInMs = (): number => {
    const { validFrom, validTo } = new X509Certificate(server.certificate)
    const sinceMs = Date.parse(validFrom)
    // The administrator's is made with it, and is good for a year.
    const untilMs = Math.min(Date.parse(validTo), sinceMs + yearMs)
    const nowMs = clock.wallMs()
    return !isWhole || server.isKept || nowMs < sinceMs
      ? 0
      : Math.max(0, renewalDueMs({ sinceMs, untilMs }, share) - nowMs)
  }

  /** Made anew, for addresses change; by a clock that is wrong, the one from before. */
  async function serverCertificate(): Promise<Issued & { readonly isKept: boolean }> {
    const wrong = dateProblem()
    if (wrong !== undefined) {
      const kept = await keptServer(dataDir)
      if (kept === undefined) throw new Error(wrong)
      log.warn('Certificates are made when the clock is right; the server goes on with the one it has', {
        because: wrong,
      })
      return { ...kept, isKept: true }
    }
    const issued = issueServer(authority, { names, nowMs: clock.wallMs(), lifeMs: servingMs })
    const whole = { ...issued, certificate: `${issued.certificate.trimEnd()}\n${authority.certificate}` }
    await replaceFile(join(dataDir, serverFiles.key), whole.key, 0o600)
    await replaceFile(join(dataDir, serverFiles.certificate), whole.certificate, 0o644)
    return { ...whole, isKept: false }
  }

  const makeAnew = async () => {
    isWhole = false
    server = await serverCertificate()
    share = random()
    // First: who is trusted no more shall be out also where a kubeconfig cannot be written.
    for (const tell of listeners) await tell()
    await writeKubeconfigs()
  }

  /** In the data directory, and where else it is wanted. */
  const writeKubeconfigs = async () => {
    isWhole = kubeconfigServers === undefined
    if (kubeconfigServers === undefined || dateProblem() !== undefined) return
    const revokedMs = needs.revokedBefore(administrator.user)
    const admin = issueAdmin(authority, {
      nowMs: clock.wallMs(),
      ...(revokedMs !== undefined && { notBeforeMs: revokedMs }),
    })
    const text = kubeconfigText({ ...kubeconfigServers, ca: authority.trusted, ...admin })
    for (const wanted of new Set([kubeconfigPath, needs.kubeconfig ?? kubeconfigPath])) {
      await replaceFile(wanted, text, 0o600)
    }
    administratorSinceMs = Date.parse(new X509Certificate(admin.certificate).validFrom)
    isWhole = true
  }

  /** A renewal, a rollover and a revocation may come at one moment, and write the same files. */
  let last: Promise<void> = Promise.resolve()
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  return {
    name: 'own-certificates',
    authority: () => authority,
    tls: () => ({ certificate: server.certificate, key: server.key, ca: authority.trusted }),
    signer: {
      check(pem, terms) {
        const answer = checkNodeCSR(pem, terms)
        return answer.ok ? { ok: true, nodeName: answer.nodeName, keyHash: keyHashOf(answer.publicKey) } : answer
      },
      sign(pem, { expirationSeconds = Number.POSITIVE_INFINITY, isOlder = false, ...terms }) {
        const wrong = dateProblem()
        if (wrong !== undefined) throw new Error(wrong)
        return signNodeCSR(authority, pem, {
          nowMs: clock.wallMs(),
          ...terms,
          ...(!isOlder && { serialPrefix: storeMark(needs.storeID) }),
          expirationSeconds: Math.min(expirationSeconds, signingMs / 1000),
        })
      },
    },
    onChange: (told) => void listeners.push(told),
    async writeKubeconfig(servers) {
      kubeconfigServers = servers
      await inTurn(writeKubeconfigs)
      return needs.kubeconfig ?? kubeconfigPath
    },
    revoked: () =>
      inTurn(async () => {
        const beforeMs = needs.revokedBefore(administrator.user)
        if (beforeMs === undefined || administratorSinceMs === undefined || administratorSinceMs >= beforeMs) return
        await writeKubeconfigs()
        if (!isWhole) return
        log.warn('The certificate of administrators was revoked; there is another kubeconfig', { path: kubeconfigPath })
      }),
    reload: () =>
      inTurn(async () => {
        authority = await openFleetAuthority(folder, clock, log)
        await makeAnew()
        log.info('Authority read anew', { caHash: authority.hash, trusted: certificatesIn(authority.trusted).length })
      }),
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(dateProblem() === undefined ? Math.min(lookMs, dueInMs()) : lookMs, signal)
        if (signal.aborted || dateProblem() !== undefined || dueInMs() > 0) continue
        try {
          await inTurn(makeAnew)
          log.info('Own certificates renewed', { until: new X509Certificate(server.certificate).validTo })
        } catch (error) {
          log.error('Own certificates not renewed, trying again in an hour', { error })
          await clock.sleep(retryMs, signal)
        }
      }
    },
  }
}

/** undefined: there is none, or its two files are not of one certificate, as a power cut between them leaves them. */
async function keptServer(dataDir: string): Promise<Issued | undefined> {
  const read = (name: string) => readFile(join(dataDir, name), 'utf8').catch(() => undefined)
  const [key, certificate] = await Promise.all([read(serverFiles.key), read(serverFiles.certificate)])
  if (key === undefined || certificate === undefined) return undefined
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)) ? { key, certificate } : undefined
}

function keyHashOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(der).digest('hex')
}

async function openFleetAuthority(folder: string, clock: Clock, log: Log): Promise<Authority> {
  const authority = await openAuthority(folder, clock.wallMs())
  if (authority.created) log.info('Authority made', { folder, caHash: authority.hash })
  for (const path of authority.tightened) log.warn('File was readable by others', { path })
  return authority
}
