/**
 * Loop: the authority of a running controller, and the certificates that the controller issues for itself: the servers' and the
 * administrator's. They are issued at the start and renewed in time; listeners are notified of each change.
 */
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { certificatesIn } from '../../api/text/pem.ts'
import { type Authority, openAuthority, wrongDate } from '../../certs/authority.ts'
import type { KubeconfigServers } from '../../certs/kubeconfig.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { mutex } from '../../daemon/mutex.ts'
import type { Loop } from '../../daemon/run.ts'
import type { ClientCertificateSigner } from '../controllers/certificates/client-certificates.ts'
import type { CertificateSigner } from '../controllers/certificates/request-answers.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { type AdminKubeconfigNeeds, adminKubeconfig } from './admin-kubeconfig.ts'
import { clientCertificateSigner } from './client-certificate-signer.ts'
import { type NodeCertificateSignerNeeds, nodeCertificateSigner } from './node-certificate-signer.ts'
import { type ServerCertificateNeeds, serverCertificate, serverRenewalInMs } from './server-certificate.ts'

export type OwnCertificateNeeds = AdminKubeconfigNeeds &
  ServerCertificateNeeds &
  Omit<NodeCertificateSignerNeeds, 'authority'> & { readonly random: () => number }

/** PEM: the server's own with its authority's; `ca` are all that are trusted. */
export type ServingTls = { readonly certificate: string; readonly key: string; readonly ca: string }

export interface OwnCertificates extends Loop {
  authority(): Authority
  tls(): ServingTls
  /** Certificate in the administrator's kubeconfig, PEM; undefined: none was written yet. */
  administratorCertificate(): string | undefined
  readonly signer: CertificateSigner
  readonly clientSigner: ClientCertificateSigner
  /** Calls the listeners after each change, one after the other in the order in which they were added. */
  onChange(listener: () => Promise<void> | void): void
  /** Writes the administrator's kubeconfig for these servers, now and after each change. Resolves with its path. */
  writeKubeconfig(servers: KubeconfigServers): Promise<string>
  /** Replaces the administrator's kubeconfig if its certificate is revoked. */
  revoked(): Promise<void>
  /** Reads the folder of the authority again and issues all certificates again. */
  reload(): Promise<void>
}

/** A clock may jump, so no sleep is longer than this. While the clock is wrong it is checked as often. */
const checkMs = 60_000
const retryMs = 3600_000

/** Rejects if the authority cannot be read, or if the clock is wrong and no earlier server certificate is saved. */
export async function openOwnCertificates(needs: OwnCertificateNeeds): Promise<OwnCertificates> {
  const { dataDir, clock, random, log } = needs
  const folder = join(dataDir, authorityFolderName)
  const kubeconfig = adminKubeconfig(needs)
  const listeners: (() => Promise<void> | void)[] = []
  /** A renewal, a rollover and a revocation may come at the same time, and write the same files. */
  const locked = mutex()
  let authority = await openFleetAuthority(folder, clock, log)
  let server = await serverCertificate(authority, needs)
  /** All listeners were notified of the last change, and all kubeconfigs written. */
  let isComplete = true
  let share = random()

  const isClockWrong = () => wrongDate(clock.wallMs(), authority) !== undefined
  const dueInMs = () => (isComplete ? serverRenewalInMs(server, clock.wallMs(), share) : 0)

  const issueAll = async () => {
    isComplete = false
    server = await serverCertificate(authority, needs)
    share = random()
    // Before the kubeconfig: clients that are no longer trusted are disconnected even if the kubeconfig cannot be written.
    for (const listener of listeners) await listener()
    await writeKubeconfig()
  }

  const writeKubeconfig = async () => {
    isComplete = false
    isComplete = await kubeconfig.write(authority)
  }

  return {
    name: 'own-certificates',
    authority: () => authority,
    tls: () => ({ certificate: server.certificate, key: server.key, ca: authority.trusted }),
    administratorCertificate: kubeconfig.certificate,
    signer: nodeCertificateSigner({ ...needs, authority: () => authority }),
    clientSigner: clientCertificateSigner({ ...needs, authority: () => authority }),
    onChange: (listener) => void listeners.push(listener),
    async writeKubeconfig(servers) {
      kubeconfig.setServers(servers)
      await locked(writeKubeconfig)
      return needs.kubeconfig ?? kubeconfig.path
    },
    revoked: () =>
      locked(async () => {
        if (!kubeconfig.isRevoked()) return
        await writeKubeconfig()
        if (!isComplete) return
        log.warn('Administrator certificate was revoked; the kubeconfig has a new one', { path: kubeconfig.path })
      }),
    reload: () =>
      locked(async () => {
        authority = await openFleetAuthority(folder, clock, log)
        await issueAll()
        log.info('Authority reloaded', { caHash: authority.hash, trusted: certificatesIn(authority.trusted).length })
      }),
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(isClockWrong() ? checkMs : Math.min(checkMs, dueInMs()), signal)
        if (signal.aborted || isClockWrong() || dueInMs() > 0) continue
        try {
          await locked(issueAll)
          log.info('Own certificates renewed', { until: new X509Certificate(server.certificate).validTo })
        } catch (error) {
          log.error('Own certificates not renewed, trying again in an hour', { error })
          await clock.sleep(retryMs, signal)
        }
      }
    },
  }
}

async function openFleetAuthority(folder: string, clock: Clock, log: Log): Promise<Authority> {
  const authority = await openAuthority(folder, clock.wallMs())
  if (authority.created) log.info('Authority created', { folder, caHash: authority.hash })
  for (const path of authority.tightened) log.warn('File was readable by others', { path })
  return authority
}
