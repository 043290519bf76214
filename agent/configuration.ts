/** AgentConfiguration: the kubelet's names and defaults, decoded once, with all problems in one error. */
import { isIP } from 'node:net'
import { labelKeyProblem, labelValueProblem } from '../api/names.ts'
import { isReservedNodeLabel } from '../api/node/node-labels.ts'
import { type Taint, TaintSchema } from '../api/node.ts'
import { milliValue, quantityToNumber, tryParseQuantity } from '../api/quantity.ts'
import {
  bool,
  type Described,
  integer,
  list,
  mapOf,
  numberOrText,
  object,
  oneOf,
  optional,
  text,
} from '../api/schema.ts'
import { parseDuration } from '../daemon/duration.ts'
import { ConfigurationError, type FieldOf } from '../daemon/process/configuration-file.ts'
import { type EvictionThresholds, evictionThresholds } from './eviction/eviction-settings.ts'
import type { MdnsSettings } from './network/mdns/mdns-names.ts'
import { type DeclaredDevices, DeviceSettingsSchema, declaredDevices } from './pods/containers/device-settings.ts'
import type { GarbagePolicy } from './pods/garbage/garbage-collector.ts'
import type { ImagePullerSettings } from './pods/images/image-puller.ts'
import { type ConfiguredPool, configuredPools, PoolSettingsSchema } from './pods/volumes/pool-settings.ts'
import type { LogLimits } from './runtime/runtime.ts'
import type { ShutdownSettings } from './shutdown/shutdown-groups.ts'
import type { DownloadRules } from './updates/download-allowance.ts'
import { downloadRules, UpdateSettingsSchema } from './updates/update-settings.ts'

/** The configuration file. Omitted fields have the kubelet's defaults. */
export const AgentConfigurationSchema = object({
  apiVersion: oneOf('bramble.dev/v1alpha1'),
  kind: oneOf('AgentConfiguration'),
  nodeStatusUpdateFrequency: optional(text),
  nodeStatusReportFrequency: optional(text),
  nodeLeaseDurationSeconds: optional(integer),
  metered: optional(bool),
  maxPods: optional(integer),
  podsPerCore: optional(integer),
  podPidsLimit: optional(integer),
  seccompDefault: optional(bool),
  evictionHard: optional(mapOf(text)),
  evictionSoft: optional(mapOf(text)),
  evictionSoftGracePeriod: optional(mapOf(text)),
  evictionMaxPodGracePeriod: optional(integer),
  evictionMinimumReclaim: optional(mapOf(text)),
  evictionPressureTransitionPeriod: optional(text),
  pressureStallWarning: optional(mapOf(text)),
  systemReserved: optional(mapOf(numberOrText)),
  kubeReserved: optional(mapOf(numberOrText)),
  registerNode: optional(bool),
  registerWithTaints: optional(list(TaintSchema)),
  nodeLabels: optional(mapOf(text)),
  nodeIP: optional(text),
  healthzPort: optional(integer),
  healthzBindAddress: optional(text),
  highTemperatureCelsius: optional(integer),
  restartDocker: optional(bool),
  enableRemoteReboot: optional(bool),
  agentUpdates: optional(UpdateSettingsSchema),
  osUpgrades: optional(bool),
  staticPodPath: optional(text),
  fileCheckFrequency: optional(text),
  shutdownGracePeriod: optional(text),
  shutdownGracePeriodCriticalPods: optional(text),
  shutdownGracePeriodByPodPriority: optional(list(object({ priority: integer, shutdownGracePeriodSeconds: integer }))),
  devices: optional(list(DeviceSettingsSchema)),
  pools: optional(list(PoolSettingsSchema)),
  multicastDNS: optional(object({ interfaces: optional(list(text)), services: optional(bool) })),
  imageGCHighThresholdPercent: optional(integer),
  imageGCLowThresholdPercent: optional(integer),
  serializeImagePulls: optional(bool),
  maxParallelImagePulls: optional(integer),
  imagePullProgressDeadline: optional(text),
  imageMinimumGCAge: optional(text),
  imageMaximumGCAge: optional(text),
  minimumContainerTTLDuration: optional(text),
  maximumDeadContainersPerContainer: optional(integer),
  maximumDeadContainers: optional(integer),
  containerLogMaxSize: optional(text),
  containerLogMaxFiles: optional(integer),
  podLogLinks: optional(bool),
})
export type AgentConfigurationFile = Described<typeof AgentConfigurationSchema>

/** cpu in cores, other resources in bytes. */
type Amounts = { readonly [resource: string]: number }

export type AgentConfiguration = EvictionThresholds & {
  readonly nodeStatusUpdateMs: number
  readonly nodeStatusReportMs: number
  readonly nodeLeaseDurationSeconds: number
  /** The connection to the controller is charged by volume: no usage is sent, and only Warning events. */
  readonly metered: boolean
  readonly maxPods: number
  readonly podsPerCore: number
  /** Processes and threads of one container; 0: no limit. */
  readonly podPidsLimit: number
  /** Containers without a seccomp profile have the engine's default one. */
  readonly seccompDefault: boolean
  readonly evictionMaxPodGraceSeconds: number
  readonly evictionPressureTransitionMs: number
  readonly systemReserved: Amounts
  readonly kubeReserved: Amounts
  readonly registerNode: boolean
  readonly registerWithTaints: readonly Taint[]
  readonly nodeLabels: { readonly [name: string]: string }
  /** One, or two of different IP families with the primary one first; none: the agent chooses. */
  readonly nodeIPs: readonly string[]
  /** 0: any free port. */
  readonly healthzPort: number
  readonly healthzBindAddress: string
  /** undefined: the limit of the hardware. */
  readonly highTemperatureCelsius: number | undefined
  /** Restart Docker through systemd when it does not answer. */
  readonly restartDocker: boolean
  /** Restart this machine when a client of the API requests it. */
  readonly enableRemoteReboot: boolean
  /** When releases of the agent may be downloaded. */
  readonly downloads: DownloadRules
  /** Install security updates of this machine when the controller wants them. */
  readonly osUpgrades: boolean
  /** The folder of static pod manifests; '' for none. */
  readonly staticPodPath: string
  readonly fileCheckMs: number
  readonly shutdown: ShutdownSettings
  /** Offered to pods as `bramble.dev/NAME`. */
  readonly devices: readonly DeclaredDevices[]
  /** Where volumes of claims are made; none: in the data directory. */
  readonly pools: readonly ConfiguredPool[]
  /** undefined: no names are published to the house. */
  readonly multicastDNS: MdnsSettings | undefined
  readonly garbage: GarbagePolicy
  readonly imagePulls: ImagePullerSettings
  /** Limits for each container. */
  readonly containerLogs: LogLimits
  /** Links to the logs of containers in /var/log/pods and /var/log/containers. */
  readonly podLogLinks: boolean
}

export const emptyAgentConfiguration: AgentConfigurationFile = {
  apiVersion: 'bramble.dev/v1alpha1',
  kind: 'AgentConfiguration',
}

/** A heartbeat every five minutes: 1.5 MB a month with the headers of TCP. NATs of mobile networks keep a connection longer. */
const meteredLeaseSeconds = 1_200

/** Throws ConfigurationError with all problems. `where` names the file in the message. */
export function agentConfiguration(file: AgentConfigurationFile, where = 'the defaults'): AgentConfiguration {
  const problems: string[] = []
  const {
    metered = false,
    podPidsLimit = -1,
    seccompDefault = true,
    systemReserved = {},
    kubeReserved = {},
    registerNode = true,
    registerWithTaints = [],
    nodeLabels = {},
    restartDocker = true,
    enableRemoteReboot = false,
    agentUpdates = {},
    osUpgrades = false,
    podLogLinks = false,
    staticPodPath = '/etc/bramble/manifests',
    devices = [],
    pools = [],
    containerLogMaxSize = '10Mi',
  } = file
  const { span, whole } = fieldReader(file, problems)
  const updateMs = span('nodeStatusUpdateFrequency', 10_000, 1_000)
  // As in the kubelet (pkg/kubelet/apis/config/v1beta1/defaults.go, SetDefaults_KubeletConfiguration): if only
  // nodeStatusUpdateFrequency is set, nodeStatusReportFrequency takes its value.
  const reportMs = file.nodeStatusUpdateFrequency === undefined ? 5 * 60_000 : updateMs
  const configuration: AgentConfiguration = {
    nodeStatusUpdateMs: updateMs,
    nodeStatusReportMs: span('nodeStatusReportFrequency', reportMs, 1_000),
    nodeLeaseDurationSeconds: whole('nodeLeaseDurationSeconds', metered ? meteredLeaseSeconds : 40, 4, 3600),
    metered,
    maxPods: whole('maxPods', 110, 0, 10_000),
    podsPerCore: whole('podsPerCore', 0, 0, 10_000),
    podPidsLimit: pidsLimitOf(podPidsLimit, problems),
    seccompDefault,
    ...evictionThresholds(file, problems),
    evictionMaxPodGraceSeconds: whole('evictionMaxPodGracePeriod', 0, 0, 86_400),
    evictionPressureTransitionMs: span('evictionPressureTransitionPeriod', 5 * 60_000),
    systemReserved: amountsOf('systemReserved', systemReserved, problems),
    kubeReserved: amountsOf('kubeReserved', kubeReserved, problems),
    registerNode,
    registerWithTaints,
    nodeLabels: labelsOf(nodeLabels, problems),
    nodeIPs: nodeIPsOf(file.nodeIP, problems),
    healthzPort: whole('healthzPort', 10248, 0, 65535),
    healthzBindAddress: addressOf('healthzBindAddress', file.healthzBindAddress, problems) ?? '127.0.0.1',
    highTemperatureCelsius:
      file.highTemperatureCelsius === undefined ? undefined : whole('highTemperatureCelsius', 0, 30, 120),
    restartDocker,
    enableRemoteReboot,
    downloads: downloadRules(agentUpdates, metered, problems),
    osUpgrades,
    podLogLinks,
    staticPodPath: folderOf('staticPodPath', staticPodPath, problems),
    fileCheckMs: span('fileCheckFrequency', 20_000, 1_000),
    shutdown: shutdownOf(file, problems),
    devices: declaredDevices(devices, problems),
    pools: configuredPools(pools, problems),
    multicastDNS: multicastOf(file.multicastDNS, problems),
    imagePulls: {
      parallel: parallelPulls(file, whole('maxParallelImagePulls', 2, 1, 1000)),
      stallMs: span('imagePullProgressDeadline', 60_000, 1_000),
    },
    containerLogs: {
      maxBytes: logBytesOf(containerLogMaxSize, problems),
      maxFiles: whole('containerLogMaxFiles', 5, 2, 1000),
    },
    garbage: {
      containers: {
        minAgeMs: span('minimumContainerTTLDuration', 0, 0),
        maxPerPodContainer: whole('maximumDeadContainersPerContainer', 1, -1, 10_000),
        maxContainers: whole('maximumDeadContainers', -1, -1, 1_000_000),
      },
      images: {
        highPercent: whole('imageGCHighThresholdPercent', 85, 0, 100),
        lowPercent: whole('imageGCLowThresholdPercent', 80, 0, 100),
        minAgeMs: span('imageMinimumGCAge', 2 * 60_000, 0),
        maxAgeMs: span('imageMaximumGCAge', 0, 0),
      },
    },
  }
  problems.push(...combinationProblems(file, configuration))
  if (problems.length > 0) throw new ConfigurationError(`Configuration file ${where} is not valid:`, problems)
  return deepFrozen(configuration)
}

/** Each reader adds its problem, and gives `otherwise` for a field that is invalid. */
function fieldReader(file: AgentConfigurationFile, problems: string[]) {
  return {
    span(name: FieldOf<AgentConfigurationFile, string>, otherwiseMs: number, leastMs = 1): number {
      const written = file[name]
      const ms = written === undefined ? otherwiseMs : parseDuration(written)
      if (ms !== undefined && ms >= leastMs) return ms
      const least = leastMs > 1 ? ` of at least ${leastMs / 1000}s` : ''
      problems.push(`${name}: ${JSON.stringify(written)} must be a duration${least} (like 10s or 5m)`)
      return otherwiseMs
    },
    whole(name: FieldOf<AgentConfigurationFile, number>, otherwise: number, least: number, most: number): number {
      const number = file[name] ?? otherwise
      if (number >= least && number <= most) return number
      problems.push(`${name}: ${number} must be between ${least} and ${most}`)
      return otherwise
    },
  }
}

/** What fields that are valid by themselves may not be together, and the keys of taints. */
function combinationProblems(file: AgentConfigurationFile, configuration: AgentConfiguration): readonly string[] {
  const problems: string[] = []
  if (file.serializeImagePulls === true && (file.maxParallelImagePulls ?? 1) > 1) {
    problems.push('maxParallelImagePulls: cannot be above 1 while serializeImagePulls is true')
  }
  const { highPercent, lowPercent, minAgeMs, maxAgeMs } = configuration.garbage.images
  if (lowPercent >= highPercent) {
    problems.push(
      `imageGCLowThresholdPercent: ${lowPercent} must be below imageGCHighThresholdPercent (${highPercent})`,
    )
  }
  if (maxAgeMs !== 0 && maxAgeMs <= minAgeMs) {
    problems.push('imageMaximumGCAge: must be longer than imageMinimumGCAge, or 0s')
  }
  for (const taint of configuration.registerWithTaints) {
    const because = labelKeyProblem(taint.key)
    if (because !== undefined) problems.push(`registerWithTaints: the key ${JSON.stringify(taint.key)} ${because}`)
  }
  return problems
}

/** -1 is unlimited, as in the kubelet. */
function pidsLimitOf(written: number, problems: string[]): number {
  if (written === -1) return 0
  if (written < 1) problems.push(`podPidsLimit: ${written} must be -1 (no limit) or greater than 0`)
  return written
}

/** The engine looks at the size after each message, which is at most 16 KiB long. */
function logBytesOf(written: string, problems: string[]): number {
  const amount = tryParseQuantity(written)
  const bytes = amount === undefined ? Number.NaN : quantityToNumber(amount)
  if (Number.isSafeInteger(bytes) && bytes >= 16_384) return bytes
  problems.push(`containerLogMaxSize: ${JSON.stringify(written)} must be a quantity of at least 16Ki (like 10Mi)`)
  return 0
}

/**
 * The kubelet's fields. Unlike the kubelet's, the default is two parallel pulls, so that a slow registry does not delay another.
 */
function parallelPulls({ serializeImagePulls, maxParallelImagePulls }: AgentConfigurationFile, wanted: number): number {
  if (serializeImagePulls === true) return 1
  return serializeImagePulls === false && maxParallelImagePulls === undefined ? Number.POSITIVE_INFINITY : wanted
}

const reservable = ['cpu', 'memory', 'ephemeral-storage', 'pid']

function amountsOf(
  name: string,
  quantities: { readonly [resource: string]: string | number },
  problems: string[],
): Amounts {
  const amounts = Object.entries(quantities).map(([resource, written]) => {
    const amount = tryParseQuantity(written)
    if (!reservable.includes(resource))
      problems.push(`${name}[${resource}]: only ${reservable.join(', ')} can be reserved`)
    if (amount === undefined || amount.nano < 0n) {
      problems.push(`${name}[${resource}]: ${JSON.stringify(written)} must be a quantity (like 100m or 64Mi)`)
      return [resource, 0] as const
    }
    return [resource, resource === 'cpu' ? milliValue(amount) / 1000 : quantityToNumber(amount)] as const
  })
  return Object.fromEntries(amounts)
}

function labelsOf(
  labels: { readonly [name: string]: string },
  problems: string[],
): { readonly [name: string]: string } {
  for (const [name, value] of Object.entries(labels)) {
    // The API would reject these labels, and the node with them.
    const reserved = isReservedNodeLabel(name) ? 'is reserved; a node may not set it' : undefined
    const because = labelKeyProblem(name) ?? reserved
    if (because !== undefined) problems.push(`nodeLabels[${name}]: ${because}`)
    const wrong = labelValueProblem(value)
    if (wrong !== undefined) problems.push(`nodeLabels[${name}]: the value ${JSON.stringify(value)} ${wrong}`)
  }
  return labels
}

/**
 * Validated as in the kubelet (pkg/kubelet/apis/config/validation/validation.go). Unlike there, by default pods share all of the
 * delay that logind grants.
 */
function shutdownOf(file: AgentConfigurationFile, problems: string[]): ShutdownSettings {
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority: table = [] } = file
  const span = (name: string, text: string | undefined) => {
    const ms = text === undefined ? undefined : parseDuration(text)
    if (text === undefined || (ms !== undefined && (ms === 0 || ms >= 1000))) return ms
    problems.push(`${name}: ${JSON.stringify(text)} must be 0s or a duration of at least 1s (like 30s)`)
    return undefined
  }
  const graceMs = span('shutdownGracePeriod', shutdownGracePeriod)
  const criticalMs = span('shutdownGracePeriodCriticalPods', shutdownGracePeriodCriticalPods)
  if (criticalMs !== undefined && criticalMs > (graceMs ?? 0)) {
    problems.push('shutdownGracePeriodCriticalPods: must not be longer than shutdownGracePeriod')
  }
  if (table.length > 0 && (graceMs ?? criticalMs) !== undefined) {
    problems.push('shutdownGracePeriodByPodPriority: cannot be set beside shutdownGracePeriod')
  }
  const priorities = table.map(({ priority }) => priority)
  for (const [index, { priority, shutdownGracePeriodSeconds: seconds }] of table.entries()) {
    const where = `shutdownGracePeriodByPodPriority[${index}]`
    if (priorities.indexOf(priority) < index) problems.push(`${where}.priority: ${priority} is set twice`)
    if (seconds < 0) problems.push(`${where}.shutdownGracePeriodSeconds: ${seconds} must not be below 0`)
  }
  const byPriority = table.map(({ priority, shutdownGracePeriodSeconds }) => ({
    priority,
    graceMs: shutdownGracePeriodSeconds * 1000,
  }))
  // In the kubelet critical pods have no time of their own where only shutdownGracePeriod is set.
  return { graceMs, criticalMs: graceMs === undefined ? undefined : (criticalMs ?? 0), byPriority }
}

/** Names of links as the kernel allows them (dev_valid_name: at most 15 bytes, without `/`, `:` and white space). */
function multicastOf(written: AgentConfigurationFile['multicastDNS'], problems: string[]): MdnsSettings | undefined {
  if (written === undefined) return undefined
  const { interfaces, services = false } = written
  for (const name of interfaces ?? []) {
    if (!/^[^\s/:]{1,15}$/.test(name))
      problems.push(`multicastDNS.interfaces: ${JSON.stringify(name)} is not a valid interface name`)
  }
  if (interfaces?.length === 0)
    problems.push('multicastDNS.interfaces: must name an interface, or be left out for the one of the node')
  return { interfaces, services }
}

function folderOf(name: string, path: string, problems: string[]): string {
  if (path !== '' && !path.startsWith('/')) problems.push(`${name}: ${JSON.stringify(path)} must start with /`)
  return path
}

function addressOf(name: string, address: string | undefined, problems: string[]): string | undefined {
  if (address !== undefined && isIP(address) === 0)
    problems.push(`${name}: ${JSON.stringify(address)} is not an IP address`)
  return address
}

/** As `--node-ip` of the kubelet. */
function nodeIPsOf(given: string | undefined, problems: string[]): readonly string[] {
  const ips = given === undefined ? [] : given.split(',').map((ip) => ip.trim())
  for (const ip of ips) addressOf('nodeIP', ip, problems)
  const families = new Set(ips.map((ip) => isIP(ip)))
  if (families.size < ips.length) {
    problems.push(`nodeIP: ${JSON.stringify(given)} must be one address, or one IPv4 and one IPv6 address`)
  }
  return ips
}

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const part of Object.values(value)) deepFrozen(part)
  }
  return value
}
