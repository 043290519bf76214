/** Opens the Kubernetes API of a controller. */
import { totalmem } from 'node:os'
import { signerOf } from '../../certs/client-certificate.ts'
import { systemClock as clock } from '../../daemon/clock.ts'
import { type Log, storyOf } from '../../daemon/log.ts'
import { version } from '../../daemon/process/version.ts'
import { type DashboardCertificate, openDashboardCertificate } from '../../dashboard/server/dashboard-certificate.ts'
import { servedDashboard } from '../../dashboard/server/dashboard-requests.ts'
import { auditFile } from '../apiserver/audit/audit-file.ts'
import { auditLog } from '../apiserver/audit/audit-log.ts'
import { fleetBackups } from '../apiserver/fleet/fleet-backups.ts'
import { serviceAccountLimits } from '../apiserver/flow-control/flow-levels.ts'
import { apiServer } from '../apiserver/http/http-server.ts'
import { storedReleases } from '../releases/release-folder.ts'
import { assembledDashboard } from './assembled-dashboard.ts'
import { certificateFamilies } from './certificate-metrics.ts'
import type { BrokerControllerNeeds, Closing, ControllerParts } from './parts.ts'

/** The Kubernetes API. Rejects if its port cannot be opened. */
export async function openApi(
  { configuration, flags, log }: BrokerControllerNeeds,
  parts: ControllerParts,
  closing: Closing,
) {
  const { listen, certificates } = configuration
  const { shared, admission, origin, access, tokens, host, names } = parts
  const { revocations, own, registry, checkpoints, usage, sessions, readiness, replica } = parts
  let portOfApi: number | undefined
  const serverUrl = () => (portOfApi === undefined ? undefined : `https://${names.advertised}:${portOfApi}`)
  const dashboard = configuration.dashboard.enabled
    ? assembledDashboard(parts, configuration.dashboard, flags.dataDir, serverUrl)
    : undefined
  const page = await pageCertificate(configuration, log, () => api.renew(tls()))
  registry.add(() => certificateFamilies({ own, page }))
  const tls = () => ({ ...own.tls(), ...(page && { named: page.current() }) })
  const auditing = { settings: configuration.auditLog, clock, registry, log }
  const file = auditing.settings && auditFile({ ...auditing, settings: auditing.settings })
  if (file !== undefined) closing.add(() => file.close())
  const api = apiServer({
    ...shared,
    ...admission,
    access,
    apiServices: parts.registered.apiServices,
    extensions: parts.extensions.discovery,
    extensionProxy: parts.extensions.proxy,
    tokens,
    serverUrl,
    storage: parts.storage,
    releases: storedReleases(flags.dataDir),
    backups: (at) => fleetBackups(at, { ...shared, sessions, storage: parts.storage, backupKeys: parts.backupKeys }),
    ...(dashboard && { dashboard: servedDashboard(dashboard) }),
    usage,
    sessions,
    registry,
    tls: tls(),
    host,
    port: listen.apiPort,
    version,
    origin,
    checkpoints,
    contentProver: parts.contentProver,
    revocations,
    readiness,
    isOurs: (der) => signerOf(der, own.authority().trusted) !== undefined,
    lapsedWindowMs: certificates.expiredWindowMs,
    flowLimits: { 'workload-low': serviceAccountLimits(totalmem()) },
    ...(file && { audit: auditLog({ file, clock, registry }) }),
    ...(replica && { replica }),
  })
  const { port } = await openingPort('Kubernetes API', listen.apiPort, '--api-port', api.listen())
  portOfApi = port
  closing.add(() => api.run(AbortSignal.abort()))
  closing.add(async () => sessions.close())
  own.onChange(() => api.renew(tls()))
  revocations.onChange(() => {
    own.revoked().catch((error) => log.error('Kubeconfig not written', { error }))
  })
  return { api, port, server: `https://${names.advertised}:${port}`, dashboard, page }
}

/** Undefined where none is configured. */
async function pageCertificate(
  { dashboard: { certificate } }: BrokerControllerNeeds['configuration'],
  log: Log,
  onChange: () => void,
): Promise<DashboardCertificate | undefined> {
  return certificate && openDashboardCertificate({ files: certificate, clock, log, onChange })
}

export type OpenApi = Awaited<ReturnType<typeof openApi>>

/** The error of a port that cannot be opened names the flag that chooses another. */
export async function openingPort<T>(what: string, port: number, flag: string, opened: Promise<T>): Promise<T> {
  try {
    return await opened
  } catch (cause) {
    const inUse = storyOf(cause).includes('EADDRINUSE')
    throw new Error(`Port ${port} (${what}) ${inUse ? 'is in use' : 'cannot be opened'}: choose another with ${flag}`, {
      cause,
    })
  }
}
