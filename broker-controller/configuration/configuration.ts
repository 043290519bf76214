/** ControllerConfiguration: flags before file before defaults, decoded once, all problems reported at once. */
import { isIP } from 'node:net'
import { isAbsolute, join, resolve } from 'node:path'
import { dnsSubdomainProblem } from '../../api/names.ts'
import { tunnelPort } from '../../api/network/pod-network.ts'
import { quantityToNumber, tryParseQuantity } from '../../api/quantity.ts'
import { bool, type Described, double, integer, list, object, oneOf, optional, text } from '../../api/schema.ts'
import { parseDuration } from '../../daemon/duration.ts'
import type { LogFormat, LogLevel } from '../../daemon/log.ts'
import { ConfigurationError, type FieldOf } from '../../daemon/process/configuration-file.ts'
import { type AuditLogSettings, defaultAuditLog } from '../apiserver/audit/audit-file.ts'
import {
  PodSecuritySchema,
  type PodSecuritySettings,
  podSecuritySettings,
} from '../apiserver/pod-security/pod-security-settings.ts'
import type { ControllerFlags } from '../commands/command-line.ts'
import { type AutoscalerSettings, defaultAutoscalerSettings } from '../controllers/autoscaling/horizontal-controller.ts'
import type { LoadBalancerSettings } from '../controllers/balancers/load-balancer-controller.ts'
import { defaultEventCleanup } from '../controllers/event-cleanup.ts'
import {
  type IngressSettings,
  IngressSettingsSchema,
  ingressSettings,
} from '../controllers/ingress/ingress-settings.ts'
import {
  defaultNodeLifecycleSettings,
  type NodeLifecycleSettings,
} from '../controllers/node-lifecycle/node-lifecycle-settings.ts'
import { defaultTerminatedPodGCThreshold } from '../controllers/pods/pod-cleanup.ts'
import {
  defaultTaintEvictionSettings,
  type TaintEvictionSettings,
} from '../controllers/pods/taint-eviction-controller.ts'
import {
  HomeAssistantSchema,
  type HomeAssistantSettings,
  homeAssistantSettings,
} from '../integrations/home-assistant/home-assistant-settings.ts'
import { NotifySchema, type NotifySettings, notifySettings } from '../integrations/notifications/notify-settings.ts'
import { type CheckpointWindowSettings, defaultCheckpointWindow } from '../store/checkpoints/checkpoint-window.ts'
import { defaultStoreMaxBytes, type StoreLimits, storeLimits } from '../store/room/store-limits.ts'
import { type ExternalBrokerSettings, externalBrokerSettings } from './broker-configuration.ts'
import { type EtcdSettings, etcdSettings } from './etcd-configuration.ts'
import { loadBalancerSettings } from './load-balancer-configuration.ts'
import { type NetworkRanges, networkRanges } from './network-ranges.ts'
import { type PodNetworkSettings, podNetworkOfNewFleet, podNetworkSettings } from './pod-network-configuration.ts'

/** The file. Names are Kubernetes' where it has one: those of kube-controller-manager and kube-apiserver. */
export const ControllerConfigurationSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('ControllerConfiguration'),
  apiPort: optional(integer),
  mqttPort: optional(integer),
  mqttBroker: optional(text),
  bindAddress: optional(text),
  advertiseAddress: optional(text),
  hosts: optional(list(text)),
  logFormat: optional(oneOf('json', 'text', 'journal')),
  logLevel: optional(oneOf('error', 'warn', 'info', 'debug')),
  nodeMonitorPeriod: optional(text),
  nodeMonitorGracePeriod: optional(text),
  nodeStartupGracePeriod: optional(text),
  nodeConnectionLossDebounce: optional(text),
  nodeHeartbeatTolerance: optional(text),
  nodeLeaseDurationLimit: optional(text),
  nodeEvictionRate: optional(double),
  secondaryNodeEvictionRate: optional(double),
  unhealthyZoneThreshold: optional(double),
  largeClusterSizeThreshold: optional(integer),
  terminatedPodGCThreshold: optional(integer),
  horizontalPodAutoscalerSyncPeriod: optional(text),
  horizontalPodAutoscalerDownscaleStabilization: optional(text),
  horizontalPodAutoscalerTolerance: optional(double),
  horizontalPodAutoscalerCPUInitializationPeriod: optional(text),
  horizontalPodAutoscalerInitialReadinessDelay: optional(text),
  plannedAbsenceLimit: optional(text),
  linkSuspicionPatience: optional(text),
  flappingLosses: optional(integer),
  conditionTaints: optional(list(text)),
  evictUnmanagedPods: optional(bool),
  eventTTL: optional(text),
  clusterSigningDuration: optional(text),
  expiredCertificateWindow: optional(text),
  expiredCertificateQuarantine: optional(bool),
  checkpointWindow: optional(text),
  allocateNodeCIDRs: optional(bool),
  clusterCIDR: optional(text),
  serviceCIDR: optional(text),
  nodeCIDRMaskSize: optional(integer),
  podNetwork: optional(oneOf('node', 'routed')),
  podNetworkTunnel: optional(oneOf('vxlan', 'wireguard')),
  wireguardPort: optional(integer),
  clusterDomain: optional(text),
  loadBalancer: optional(oneOf('pool', 'nodes', 'none')),
  loadBalancerPool: optional(list(text)),
  ingress: optional(IngressSettingsSchema),
  etcdServers: optional(list(text)),
  etcdCAFile: optional(text),
  etcdCertFile: optional(text),
  etcdKeyFile: optional(text),
  etcdPrefix: optional(text),
  etcdQuotaBackendBytes: optional(integer),
  storeMaxSize: optional(text),
  auditLogPath: optional(text),
  auditLogMaxSize: optional(integer),
  auditLogMaxBackup: optional(integer),
  auditLogMaxAge: optional(integer),
  podSecurity: optional(PodSecuritySchema),
  dashboard: optional(bool),
  dashboardHistory: optional(oneOf('WhileOpen', 'Always')),
  dashboardCertFile: optional(text),
  dashboardKeyFile: optional(text),
  notify: optional(NotifySchema),
  homeAssistant: optional(HomeAssistantSchema),
})
export type ControllerConfigurationFile = Described<typeof ControllerConfigurationSchema>

export type ControllerConfiguration = NetworkRanges & {
  readonly listen: {
    /** 0: any that is free. */
    readonly apiPort: number
    readonly mqttPort: number
    /** undefined: all addresses. */
    readonly bindAddress: string | undefined
  }
  /** undefined: the broker is embedded, on `mqttPort`. */
  readonly externalBroker: ExternalBrokerSettings | undefined
  /** undefined: this machine's first address. */
  readonly advertiseAddress: string | undefined
  /** Names and addresses beyond those of this machine. */
  readonly hosts: readonly string[]
  readonly log: { readonly format: LogFormat; readonly level: LogLevel }
  readonly nodeLifecycle: NodeLifecycleSettings
  readonly taintEviction: TaintEvictionSettings
  /** Finished pods beyond this many are removed, the oldest first; 0: none. */
  readonly terminatedPodGCThreshold: number
  readonly autoscaler: AutoscalerSettings
  readonly eventLifetimeMs: number
  readonly certificates: {
    /** The longest life of a node's certificate. */
    readonly signingMs: number
    /** For this long after its end a node's certificate serves to get a new one; 0: not at all. */
    readonly expiredWindowMs: number
    /** Nodes whose certificate has ended wait for an operator's approval. */
    readonly quarantine: boolean
  }
  /** For how long after a restore checkpoints of nodes are accepted. */
  readonly checkpoints: CheckpointWindowSettings
  /** undefined: the pods of a node reach those of no other by their addresses, and Services have no data path. */
  readonly podNetwork: PodNetworkSettings | undefined
  /** Where the addresses of Services of the type LoadBalancer come from. */
  readonly loadBalancer: LoadBalancerSettings
  /** undefined: the fleet has no proxy for Ingresses. */
  readonly ingress: IngressSettings | undefined
  /** undefined: the store is a file of the data directory. */
  readonly etcd: EtcdSettings | undefined
  /** How much the objects of the fleet and of one namespace may have. */
  readonly storeLimits: StoreLimits
  /** undefined: requests are not written down. */
  readonly auditLog: AuditLogSettings | undefined
  readonly podSecurity: PodSecuritySettings
  readonly dashboard: DashboardSettings
  /** undefined: problems are sent nowhere. */
  readonly notify: NotifySettings | undefined
  /** undefined: Home Assistant is not served. */
  readonly homeAssistant: HomeAssistantSettings | undefined
}

export const emptyControllerConfiguration: ControllerConfigurationFile = {
  apiVersion: 'bramble.dev/v1alpha1',
  kind: 'ControllerConfiguration',
}

type Given = {
  readonly flags: ControllerFlags
  readonly file: ControllerConfigurationFile
  /** The default if it is not configured: whether the program runs on a terminal. */
  readonly isTerminal: boolean
}

const dayMs = 24 * 3600_000
/** An empty fleet has less than 1 MiB, a namespace a quarter, and an object up to 3 MiB. */
const leastStoreBytes = 16 * 2 ** 20

type Fields = ReturnType<typeof fieldReaders>

/** Reads one field each, and adds to `problems` what is wrong with it. */
function fieldReaders({ flags, file }: Given, problems: string[]) {
  const check = <T>(value: T, fine: boolean, problem: string): T => {
    if (!fine) problems.push(problem)
    return value
  }
  return {
    check,
    port(name: 'apiPort' | 'mqttPort', otherwise: number) {
      const value = flags[name] ?? file[name] ?? otherwise
      return check(value, value >= 0 && value <= 65_535, `${name}: ${value} must be a port, 0 to 65535`)
    },
    span(name: FieldOf<ControllerConfigurationFile, string>, otherwiseMs: number, leastMs: number) {
      const written = file[name]
      const ms = written === undefined ? otherwiseMs : (parseDuration(written) ?? Number.NaN)
      const least = leastMs > 0 ? ` of at least ${leastMs}ms` : ''
      const problem = `${name}: ${JSON.stringify(written)} must be a duration${least} (like 10s or 5m)`
      return check(ms, ms >= leastMs, problem)
    },
    share(name: FieldOf<ControllerConfigurationFile, number>, otherwise: number) {
      const value = file[name] ?? otherwise
      const most = name === 'nodeEvictionRate' || name === 'secondaryNodeEvictionRate' ? 1000 : 1
      return check(value, value >= 0 && value <= most, `${name}: ${value} must be between 0 and ${most}`)
    },
    count(name: FieldOf<ControllerConfigurationFile, number>, otherwise: number, least = 0) {
      const value = file[name] ?? otherwise
      return check(value, value >= least, `${name}: ${value} must be ${least} or more`)
    },
    address(name: 'bindAddress' | 'advertiseAddress', flag: string) {
      const value = flags[name] ?? file[name]
      const fine = value === undefined || isIP(value) > 0 || (name === 'advertiseAddress' && isName(value))
      const kind = name === 'bindAddress' ? 'an IP address' : 'an IP address or a host name'
      return check(value, fine, `${flags[name] === undefined ? name : flag}: ${JSON.stringify(value)} must be ${kind}`)
    },
  }
}

/**
 * Throws ConfigurationError with everything that is wrong. Without `podNetwork` it is the configuration of a new fleet: that of one that is
 * there follows from its store (`fleetPodNetwork`).
 */
export function controllerConfiguration(given: Given): ControllerConfiguration {
  const { flags, isTerminal } = given
  const file = { ...given.file, podNetwork: given.file.podNetwork ?? podNetworkOfNewFleet(given.file) }
  const problems: string[] = []
  const read = fieldReaders(given, problems)
  const hosts = [...flags.hosts, ...(file.hosts ?? [])]
  for (const host of hosts)
    read.check(
      host,
      isIP(host) > 0 || isName(host),
      `host ${JSON.stringify(host)} must be an IP address or a host name`,
    )

  const ranges = networkRanges(file, problems)
  const listen = {
    apiPort: read.port('apiPort', 6443),
    mqttPort: read.port('mqttPort', 8883),
    bindAddress: read.address('bindAddress', '--bind-address'),
  }
  const advertiseAddress = read.address('advertiseAddress', '--advertise-address')
  const homeAssistant = homeAssistantSettings(file.homeAssistant, problems)
  const podNetwork = podNetworkSettings(file, ranges, problems)
  const configuration: ControllerConfiguration = {
    listen,
    advertiseAddress,
    externalBroker: externalBrokerSettings(file, problems),
    hosts,
    log: {
      format: flags.logFormat ?? file.logFormat ?? (isTerminal ? 'text' : 'json'),
      level: flags.logLevel ?? file.logLevel ?? 'info',
    },
    nodeLifecycle: nodeLifecycleIn(file, read),
    taintEviction: {
      evictUnmanagedPods: file.evictUnmanagedPods ?? defaultTaintEvictionSettings.evictUnmanagedPods,
    },
    terminatedPodGCThreshold: read.count('terminatedPodGCThreshold', defaultTerminatedPodGCThreshold),
    autoscaler: autoscalerIn(read),
    eventLifetimeMs: read.span('eventTTL', defaultEventCleanup.lifetimeMs, 1_000),
    certificates: {
      signingMs: read.span('clusterSigningDuration', 365 * dayMs, 600_000),
      expiredWindowMs: read.span('expiredCertificateWindow', 365 * dayMs, 0),
      quarantine: file.expiredCertificateQuarantine ?? false,
    },
    checkpoints: { limitMs: read.span('checkpointWindow', defaultCheckpointWindow.limitMs, 60_000) },
    ...ranges,
    podNetwork,
    loadBalancer: loadBalancerSettings(
      file,
      {
        ...ranges,
        controllerHosts: [...hosts, listen.bindAddress, advertiseAddress],
        controllerPorts: [listen.apiPort, listen.mqttPort],
        tunnelPorts: [tunnelPort, ...(podNetwork?.wireguard === undefined ? [] : [podNetwork.wireguard.port])],
      },
      problems,
    ),
    ingress: ingressSettings(file.ingress, file.podNetwork === 'routed', problems),
    etcd: etcdSettings(flags.etcd, file, problems),
    storeLimits: storeLimitsIn(file.storeMaxSize, problems),
    auditLog: auditLogIn(given, read),
    podSecurity: podSecuritySettings(file.podSecurity, problems),
    dashboard: dashboardIn(file, problems),
    notify: notifySettings(file.notify, problems, homeAssistant?.broker),
    homeAssistant,
  }
  if (problems.length > 0) throw new ConfigurationError('The configuration is not valid:', problems)
  return configuration
}

function nodeLifecycleIn(file: ControllerConfigurationFile, read: Fields): NodeLifecycleSettings {
  const { check, span, share, count } = read
  const usual = defaultNodeLifecycleSettings
  return {
    ...usual,
    nodeMonitorPeriodMs: span('nodeMonitorPeriod', usual.nodeMonitorPeriodMs, 100),
    nodeMonitorGracePeriodMs: span('nodeMonitorGracePeriod', usual.nodeMonitorGracePeriodMs, 1_000),
    nodeStartupGracePeriodMs: span('nodeStartupGracePeriod', usual.nodeStartupGracePeriodMs, 1_000),
    nodeConnectionLossDebounceMs: span('nodeConnectionLossDebounce', usual.nodeConnectionLossDebounceMs, 0),
    nodeLeaseDurationLimitMs: span('nodeLeaseDurationLimit', usual.nodeLeaseDurationLimitMs, 0),
    nodeHeartbeatToleranceMs: span('nodeHeartbeatTolerance', usual.nodeHeartbeatToleranceMs, 0),
    nodeEvictionRate: share('nodeEvictionRate', usual.nodeEvictionRate),
    secondaryNodeEvictionRate: share('secondaryNodeEvictionRate', usual.secondaryNodeEvictionRate),
    unhealthyZoneThreshold: share('unhealthyZoneThreshold', usual.unhealthyZoneThreshold),
    largeClusterSizeThreshold: count('largeClusterSizeThreshold', usual.largeClusterSizeThreshold),
    plannedAbsenceLimitMs: span('plannedAbsenceLimit', usual.plannedAbsenceLimitMs, 0),
    linkSuspicionPatienceMs: span('linkSuspicionPatience', usual.linkSuspicionPatienceMs, 0),
    flappingLosses: count('flappingLosses', usual.flappingLosses),
    conditionTaints: (file.conditionTaints ?? []).map((type) =>
      check(
        type,
        /^[A-Z][A-Za-z0-9]{0,62}$/.test(type),
        `conditionTaints: ${JSON.stringify(type)} must be the type of a condition (like KernelDeadlock)`,
      ),
    ),
  }
}

function autoscalerIn({ span, share }: Fields): AutoscalerSettings {
  const usual = defaultAutoscalerSettings
  return {
    syncPeriodMs: span('horizontalPodAutoscalerSyncPeriod', usual.syncPeriodMs, 1_000),
    downscaleStabilizationMs: span('horizontalPodAutoscalerDownscaleStabilization', usual.downscaleStabilizationMs, 0),
    tolerance: share('horizontalPodAutoscalerTolerance', usual.tolerance),
    cpuInitializationPeriodMs: span(
      'horizontalPodAutoscalerCPUInitializationPeriod',
      usual.cpuInitializationPeriodMs,
      0,
    ),
    initialReadinessDelayMs: span('horizontalPodAutoscalerInitialReadinessDelay', usual.initialReadinessDelayMs, 0),
  }
}

export type DashboardSettings = {
  readonly enabled: boolean
  /** Nodes report what they use also while no page is open. */
  readonly alwaysSample: boolean
  /** Files with a certificate that browsers trust, and its key. undefined: there is only that of the fleet. */
  readonly certificate: { readonly certificate: string; readonly key: string } | undefined
}

function dashboardIn(file: ControllerConfigurationFile, problems: string[]): DashboardSettings {
  const { dashboardCertFile: certificate, dashboardKeyFile: key } = file
  if ((certificate === undefined) !== (key === undefined)) {
    problems.push('dashboardCertFile and dashboardKeyFile must be given together')
  }
  for (const path of [certificate, key]) {
    if (path !== undefined && !isAbsolute(path)) problems.push(`${JSON.stringify(path)} must be an absolute path`)
  }
  return {
    enabled: file.dashboard ?? true,
    alwaysSample: file.dashboardHistory === 'Always',
    certificate: certificate !== undefined && key !== undefined ? { certificate, key } : undefined,
  }
}

function storeLimitsIn(written: string | undefined, problems: string[]): StoreLimits {
  if (written === undefined) return storeLimits(defaultStoreMaxBytes)
  const amount = tryParseQuantity(written)
  const bytes = amount === undefined ? Number.NaN : quantityToNumber(amount)
  if (bytes >= leastStoreBytes) return storeLimits(bytes)
  problems.push(`storeMaxSize: ${JSON.stringify(written)} must be a quantity of at least 16Mi (like 2Gi)`)
  return storeLimits(defaultStoreMaxBytes)
}

function auditLogIn({ flags, file }: Given, { check, count }: Fields): AuditLogSettings | undefined {
  const path = flags.auditLogPath ?? file.auditLogPath ?? join(resolve(flags.dataDir), 'audit.log')
  check(
    path,
    path === '' || isAbsolute(path),
    `auditLogPath: ${JSON.stringify(path)} must be an absolute path, or empty`,
  )
  const settings = {
    path,
    maxSize: flags.auditLogMaxSize ?? count('auditLogMaxSize', defaultAuditLog.maxSize, 1),
    maxBackup: flags.auditLogMaxBackup ?? count('auditLogMaxBackup', defaultAuditLog.maxBackup),
    maxAge: flags.auditLogMaxAge ?? count('auditLogMaxAge', defaultAuditLog.maxAge),
  }
  return path === '' ? undefined : settings
}

function isName(text: string): boolean {
  return dnsSubdomainProblem(text.toLowerCase()) === undefined
}
