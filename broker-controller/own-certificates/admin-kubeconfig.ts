/** The administrator's certificate and the kubeconfigs that hold it. */
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { administrator } from '../../api/identity.ts'
import { type Authority, wrongDate } from '../../certs/authority.ts'
import { issueAdmin } from '../../certs/issue.ts'
import { type KubeconfigServers, kubeconfigText } from '../../certs/kubeconfig.ts'
import type { Clock } from '../../daemon/clock.ts'
import { replaceFile } from '../../daemon/durable-file.ts'

export type AdminKubeconfigNeeds = {
  readonly dataDir: string
  /** A second path for the kubeconfig. */
  readonly kubeconfig: string | undefined
  /** Certificates of this user that were issued before this time are revoked; undefined: none is. */
  readonly revokedBefore: (user: string) => number | undefined
  readonly clock: Clock
}

export interface AdminKubeconfig {
  /** In the data directory. */
  readonly path: string
  /** The servers that are written from now on. Until then `write` writes nothing. */
  setServers(servers: KubeconfigServers): void
  /** Issues a certificate and writes it to each kubeconfig. False: the clock is wrong, and nothing was written. */
  write(authority: Authority): Promise<boolean>
  /** The certificate that was written last, PEM; undefined: none was. */
  certificate(): string | undefined
  /** The certificate that was written last is revoked. */
  isRevoked(): boolean
}

export function adminKubeconfig({ dataDir, kubeconfig, revokedBefore, clock }: AdminKubeconfigNeeds): AdminKubeconfig {
  const path = join(dataDir, 'kubeconfig')
  let servers: KubeconfigServers | undefined
  let issuedMs: number | undefined
  let certificate: string | undefined
  return {
    path,
    certificate: () => certificate,
    setServers(next) {
      servers = next
    },
    async write(authority) {
      if (servers === undefined) return true
      const nowMs = clock.wallMs()
      if (wrongDate(nowMs, authority) !== undefined) return false
      const revokedMs = revokedBefore(administrator.user)
      const admin = issueAdmin(authority, { nowMs, ...(revokedMs !== undefined && { notBeforeMs: revokedMs }) })
      const text = kubeconfigText({ ...servers, ca: authority.trusted, ...admin })
      for (const wanted of new Set([path, kubeconfig ?? path])) await replaceFile(wanted, text, 0o600)
      certificate = admin.certificate
      issuedMs = Date.parse(new X509Certificate(certificate).validFrom)
      return true
    },
    isRevoked() {
      const beforeMs = revokedBefore(administrator.user)
      return beforeMs !== undefined && issuedMs !== undefined && issuedMs < beforeMs
    },
  }
}
