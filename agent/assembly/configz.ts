/** The configuration in the kubelet's form (kubelet.config.k8s.io/v1beta1, KubeletConfiguration): what `/configz` shows. */
import { formatQuantity, quantityOf } from '../../api/quantity.ts'
import { goDuration } from '../../daemon/duration.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { Threshold } from '../eviction/thresholds.ts'

type Durations = { readonly [name: string]: number | undefined }

/** Fields of the kubelet that the agent does not have are left out. */
export function kubeletConfiguration(configuration: AgentConfiguration): object {
  const { garbage, shutdown, imagePulls, containerLogs } = configuration
  const { images } = garbage
  return {
    ...durations({
      nodeStatusUpdateFrequency: configuration.nodeStatusUpdateMs,
      nodeStatusReportFrequency: configuration.nodeStatusReportMs,
      fileCheckFrequency: configuration.fileCheckMs,
      imageMinimumGCAge: images.minAgeMs,
      imageMaximumGCAge: images.maxAgeMs,
      evictionPressureTransitionPeriod: configuration.evictionPressureTransitionMs,
      shutdownGracePeriod: shutdown.graceMs,
      shutdownGracePeriodCriticalPods: shutdown.criticalMs,
      streamingConnectionIdleTimeout: 4 * 3600_000,
    }),
    staticPodPath: configuration.staticPodPath,
    address: configuration.healthzBindAddress,
    healthzBindAddress: configuration.healthzBindAddress,
    healthzPort: configuration.healthzPort,
    nodeLeaseDurationSeconds: configuration.nodeLeaseDurationSeconds,
    maxPods: configuration.maxPods,
    podsPerCore: configuration.podsPerCore,
    seccompDefault: configuration.seccompDefault,
    podPidsLimit: configuration.podPidsLimit === 0 ? -1 : configuration.podPidsLimit,
    imageGCHighThresholdPercent: images.highPercent,
    imageGCLowThresholdPercent: images.lowPercent,
    ...(Number.isFinite(imagePulls.parallel)
      ? { serializeImagePulls: imagePulls.parallel === 1, maxParallelImagePulls: imagePulls.parallel }
      : { serializeImagePulls: false }),
    containerLogMaxSize: String(containerLogs.maxBytes),
    containerLogMaxFiles: containerLogs.maxFiles,
    evictionHard: amountsOf(configuration.evictionHard),
    evictionSoft: amountsOf(configuration.evictionSoft),
    evictionSoftGracePeriod: Object.fromEntries(
      configuration.evictionSoft.map(({ signal, graceMs = 0 }) => [signal, goDuration(graceMs)]),
    ),
    evictionMinimumReclaim: Object.fromEntries(
      [...configuration.evictionHard, ...configuration.evictionSoft].flatMap(({ signal, minimumReclaim }) =>
        minimumReclaim === undefined ? [] : [[signal, amount(minimumReclaim)]],
      ),
    ),
    evictionMaxPodGracePeriod: configuration.evictionMaxPodGraceSeconds,
    systemReserved: texts(configuration.systemReserved),
    kubeReserved: texts(configuration.kubeReserved),
    shutdownGracePeriodByPodPriority: shutdown.byPriority.map(({ priority, graceMs }) => ({
      priority,
      shutdownGracePeriodSeconds: graceMs / 1000,
    })),
    registerNode: configuration.registerNode,
    registerWithTaints: configuration.registerWithTaints,
  }
}

function durations(all: Durations) {
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, goDuration(ms)]])),
  )
}

function amountsOf(thresholds: readonly Threshold[]) {
  return Object.fromEntries(thresholds.map(({ signal, value }) => [signal, amount(value)]))
}

function amount(value: Threshold['value']): string {
  return 'percentage' in value ? `${value.percentage}%` : formatQuantity(quantityOf(value.quantity, value.family))
}

function texts(amounts: { readonly [resource: string]: number }) {
  return Object.fromEntries(Object.entries(amounts).map(([resource, value]) => [resource, String(value)]))
}
