/** What the API, the broker and the loops of a controller share. */
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { type AddressRules, bridgeRules } from '../../api/node/reported-addresses.ts'
import { commonNameOfCSR } from '../../certs/csr-check.ts'
import { systemClock as clock, rfc3339 } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { limitLog } from '../../daemon/log-limit.ts'
import { type MetricsRegistry, metricsRegistry } from '../../daemon/metrics-registry.ts'
import { addProcessMetrics } from '../../daemon/process-metrics.ts'
import type { SystemdNotifier } from '../../daemon/watchdog/systemd-notifier.ts'
import { meterWorkQueues } from '../../daemon/work-queue-metrics.ts'
import { followApiServices } from '../apiserver/aggregator/api-services.ts'
import { openExtensions } from '../apiserver/aggregator/extensions.ts'
import { serviceAccountTokens } from '../apiserver/authentication/tokens/service-account-tokens.ts'
import { openAuthorizer } from '../apiserver/authorization/authorizer.ts'
import { webhookConversions } from '../apiserver/conversion/webhook-conversions.ts'
import { controllerCreation } from '../apiserver/handlers/controller-creation.ts'
import { controllerScales } from '../apiserver/handlers/controller-scales.ts'
import { serviceNetwork } from '../apiserver/handlers/service-network.ts'
import { followDefinitions } from '../apiserver/kinds/custom/follow-definitions.ts'
import type { LiveKinds } from '../apiserver/kinds/custom/live-kinds.ts'
import { podSecurityAdmission } from '../apiserver/pod-security/pod-security-admission.ts'
import { type AdmissionGateNeeds, admissionGate } from '../apiserver/policies/admission-gate.ts'
import { serviceConnections } from '../apiserver/proxy/service-connections.ts'
import { usageLedger } from '../apiserver/quota/quota-ledger.ts'
import { type StandardCheckNeeds, standardChecks } from '../apiserver/standard-checks.ts'
import { type ReadinessCheck, sharedCheck } from '../apiserver/system-paths.ts'
import { type WebhookServices, webhookCaller } from '../apiserver/webhooks/webhook-call.ts'
import { parseYamlBody } from '../apiserver/wire/yaml-body.ts'
import type { ControllerFlags } from '../commands/command-line.ts'
import type { ControllerConfiguration, ControllerConfigurationFile } from '../configuration/configuration.ts'
import type { PodNetworkSettings } from '../configuration/pod-network-configuration.ts'
import { anyAddress, serverNames } from '../configuration/server-names.ts'
import { authorityFolderName } from '../data-directory/data-directory.ts'
import { openBackupKeys } from '../own-certificates/backup-keys.ts'
import { frontProxy } from '../own-certificates/front-proxy.ts'
import { makeKeysToCopy } from '../own-certificates/keys-to-copy.ts'
import { openOwnCertificates } from '../own-certificates/own-certificates.ts'
import { openTokenKeys } from '../own-certificates/service-account-keys.ts'
import { followAuthority } from '../replicas/foreign-authority.ts'
import { lateCheckpointWindow } from '../replicas/late-checkpoint-window.ts'
import { openReplica } from '../replicas/open-replica.ts'
import { sessionBoard } from '../sessions/session-board.ts'
import { openCheckpointWindow } from '../store/checkpoints/checkpoint-window.ts'
import { contentProver } from '../store/checkpoints/content-proof.ts'
import { eventRecorder } from '../store/event-recorder.ts'
import { openRevocationList } from '../store/revocations.ts'
import type { OpenedStore, StoreUpkeep } from '../store/store.ts'
import { storageBoard } from '../usage/storage-board.ts'
import { unstoredReports } from '../usage/unstored-reports.ts'
import { usageBoard } from '../usage/usage-board.ts'
import { type BootstrapObjects, bootstrapObjects } from './bootstrap-objects.ts'
import { meterEventLoop } from './event-loop-metrics.ts'

export type BrokerControllerNeeds = {
  readonly configuration: ControllerConfiguration
  readonly flags: ControllerFlags
  /** As it was read. */
  readonly file: ControllerConfigurationFile
  readonly log: Log
  /** Is notified when the controller is ready, and while it is healthy; undefined: there is no service manager. */
  readonly service: SystemdNotifier | undefined
}

/** Runs what it is given at the end, the latest first. */
export type Closing = { add(close: () => Promise<void>): void }

/** Everything that the API and the loops share. */
export async function openParts(
  { configuration, flags, log }: BrokerControllerNeeds,
  { store, origin, problems, upkeep, guard, ...shares }: OpenedStore,
  kinds: LiveKinds,
  closing: Closing,
) {
  const { listen } = configuration
  const machine = { hostname: hostname(), interfaces: networkInterfaces() }
  const names = serverNames(machine, { ...configuration, bindAddress: listen.bindAddress })
  const revocations = await openRevocationList({ store, clock, log })
  const isShared = shares.election !== undefined
  if (isShared) await followAuthority(store, join(flags.dataDir, authorityFolderName), log)
  await shares.controllers?.refresh()
  const own = await openOwnCertificates({
    ...configuration.certificates,
    dataDir: flags.dataDir,
    names: names.all,
    moreNames: () => shares.controllers?.all().flatMap(({ hosts }) => hosts) ?? [],
    storeID: origin.id,
    kubeconfig: flags.kubeconfig,
    revokedBefore: revocations.before,
    clock,
    random: Math.random,
    log,
  })
  const objects = bootstrapObjects({ store, clock, log })
  if (!isShared) await objects.ensure()
  const definitions = await followDefinitions({ store, clock, log }, kinds)
  closing.add(() => definitions.run(AbortSignal.abort()))
  const registered = await followApiServices({ store, clock, log })
  closing.add(() => registered.loop.run(AbortSignal.abort()))
  const access = await openAuthorizer({ store, clock, log })
  const keyFolder = join(flags.dataDir, authorityFolderName)
  let tokenKeys = await openTokenKeys(keyFolder)
  closing.add(() => access.run(AbortSignal.abort()))
  const registry = openMeters(log, closing)
  const shared = {
    store,
    kinds,
    events: eventRecorder({ store, clock }),
    quotas: usageLedger({ store, kinds, clock }),
    clock,
    log,
  }
  const late = isShared ? lateCheckpointWindow(origin) : undefined
  if (upkeep !== undefined) registry.add(upkeep.metrics)
  const replica = openReplica({ ...shares, own, hosts: names.all, registry, clock, log })
  const sessions = sessionBoard({ clock })
  const connections = serviceConnections({ store, sessions, clock, random: Math.random })
  const webhooks = openWebhooks({ ...shared, registry, access }, connections, closing)
  const admission = {
    services: serviceNetwork(configuration.serviceCIDR, configuration.ipv6),
    podSecurity: podSecurityAdmission({ store, clock, registry }, configuration.podSecurity),
    addressRules: addressRulesOf(configuration.podNetwork),
    ...webhooks,
    commonNameOf: commonNameOfCSR,
  }
  const admitting = { ...shared, ...admission, access, random: Math.random, parseYaml: parseYamlBody }
  const { proxy, backupKeys, makeMissing } = keysToCopy(flags, log)
  own.onChange(proxy.reload)
  if (!isShared) await makeMissing()
  const clientAuthorities = () => own.authority().trusted
  return {
    shared,
    objects,
    extensions: openExtensions({ ...registered, connections, proxy, clientAuthorities, store, clock, log }),
    admission,
    creation: controllerCreation(admitting, kinds),
    scales: controllerScales(admitting, kinds),
    origin,
    guard,
    upkeep,
    readiness: readinessOf({ store, clock, problems, upkeep, replica, objects }),
    access,
    definitions,
    registered,
    tokens: serviceAccountTokens(() => tokenKeys, store),
    reloadTokenKeys: async () => {
      tokenKeys = await openTokenKeys(keyFolder)
    },
    names,
    host: listen.bindAddress ?? anyAddress(machine),
    revocations,
    own,
    contentProver: contentProver(own.authority),
    registry,
    late,
    checkpoints: late ?? (await openCheckpointWindow(shared, origin, configuration.checkpoints)),
    replica,
    usage: usageBoard({ clock }),
    storage: storageBoard(),
    unstored: unstoredReports({ clock }),
    backupKeys,
    makeMissingKeys: makeMissing,
    sessions,
  }
}

/** `makeMissing`: not by a standby, whose files are those of another controller. */
function keysToCopy({ dataDir }: ControllerFlags, log: Log) {
  const proxy = frontProxy({ dataDir, clock })
  const backupKeys = () => openBackupKeys(dataDir, rfc3339(clock.wallMs()))
  const makeMissing = () => makeKeysToCopy({ proxyAuthority: proxy.authority, backupKeys, log })
  return { proxy, backupKeys, makeMissing }
}

/** The metrics of this process are in the registry. */
function openMeters(log: Log, closing: Closing): MetricsRegistry {
  const registry = metricsRegistry()
  const stops = [addProcessMetrics(registry), meterEventLoop({ registry, clock, log }), meterWorkQueues(registry)]
  closing.add(async () => {
    for (const stop of stops.reverse()) stop()
  })
  return registry
}

type WebhookParts = Pick<AdmissionGateNeeds, 'store' | 'kinds' | 'registry' | 'access'> & { readonly log: Log }

/** Each sort of webhooks has connections of its own: those that hang leave the others alone. */
function openWebhooks({ log, ...parts }: WebhookParts, services: WebhookServices, closing: Closing) {
  const [caller, converting, limited] = [webhookCaller(services), webhookCaller(services), limitLog(log, clock)]
  const conversions = webhookConversions({ caller: converting, clock, registry: parts.registry, limited })
  closing.add(async () => {
    conversions.close()
    converting.close()
    caller.close()
    limited.close()
  })
  return { conversions, webhooks: admissionGate({ ...parts, caller, clock, limited, conversions }) }
}

export type ControllerParts = Awaited<ReturnType<typeof openParts>>

/** Without a network between nodes their addresses may be in the ranges, which nothing uses. */
function addressRulesOf(network: PodNetworkSettings | undefined): AddressRules {
  if (network === undefined) return bridgeRules
  const { clusterCIDR, serviceCIDR, ipv6 } = network
  return {
    isRouted: true,
    podRanges: [clusterCIDR, ...(ipv6 ? [ipv6.clusterCIDR] : [])],
    serviceRanges: [serviceCIDR, ...(ipv6 ? [ipv6.serviceCIDR] : [])],
  }
}

type ReadinessParts = Pick<StandardCheckNeeds, 'store' | 'clock'> & {
  /** undefined: the store is not etcd. */
  readonly problems: (() => Promise<readonly string[]>) | undefined
  readonly upkeep: StoreUpkeep | undefined
  readonly replica: { readonly readiness: ReadinessCheck; readonly isLeading: () => boolean } | undefined
  readonly objects: Pick<BootstrapObjects, 'lacksRoom'>
}

function readinessOf({ store, clock, problems, upkeep, replica, objects }: ReadinessParts): readonly ReadinessCheck[] {
  const etcd = (asked: NonNullable<typeof problems>): ReadinessCheck => ({
    name: 'etcd',
    of: ['healthz', 'readyz'],
    check: () => withoutProblems(asked),
    warnings: () => upkeep?.warnings() ?? [],
  })
  const isLeftForLater = () => objects.lacksRoom() || replica?.isLeading() === false
  const checks = [
    ...standardChecks({ store, clock, isEtcd: problems !== undefined, isLeftForLater }),
    ...(problems === undefined ? spaceCheck(upkeep) : [etcd(problems)]),
    ...(replica === undefined ? [] : [replica.readiness]),
  ]
  return checks.map((check) => sharedCheck(check, clock))
}

/**
 * Warns, and never fails: without room reads, deletions and statuses are answered, and those who would free space need the API.
 */
function spaceCheck(upkeep: StoreUpkeep | undefined): readonly ReadinessCheck[] {
  return upkeep === undefined
    ? []
    : [{ name: 'store-space', check: async () => undefined, warnings: () => upkeep.warnings() }]
}

async function withoutProblems(problems: () => Promise<readonly string[]>): Promise<void> {
  const found = await problems()
  if (found.length > 0) throw new Error(found.join('; '))
}
