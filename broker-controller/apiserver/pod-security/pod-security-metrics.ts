/** Counters of Pod Security, under the names of kube-apiserver. */
import { type LevelVersion, latestVersion, versionText } from '../../../api/pod-security/levels.ts'
import type { SecurityMode } from '../../../api/pod-security/policy.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { kubernetes } from '../../../daemon/process/version.ts'
import type { SecuredWrite } from '../handlers/pod-security-gate.ts'

export interface PodSecurityMetrics {
  evaluated(write: SecuredWrite, mode: SecurityMode, level: LevelVersion, decision: 'allow' | 'deny'): void
  exempted(write: SecuredWrite): void
  /** `isFatal`: the request was refused for it. */
  failed(write: SecuredWrite, isFatal: boolean): void
}

/** Registers them: once for a registry. */
export function podSecurityMetrics(registry: MetricsRegistry): PodSecurityMetrics {
  const evaluations = registry.counter({
    name: 'pod_security_evaluations_total',
    help: 'Pods and templates that were judged by Pod Security, by decision, policy and mode. Exempt ones are not counted.',
    labelNames: [
      ...(['decision', 'policy_level', 'policy_version', 'mode'] as const),
      ...(['request_operation', 'resource', 'subresource'] as const),
    ],
  })
  const exemptions = registry.counter({
    name: 'pod_security_exemptions_total',
    help: 'Writes of pods and templates that are exempt from Pod Security.',
    labelNames: ['request_operation', 'resource', 'subresource'],
  })
  const errors = registry.counter({
    name: 'pod_security_errors_total',
    help: 'Errors that prevented Pod Security from judging as usual; with one that is not fatal the latest restricted policy is used.',
    labelNames: ['fatal', 'request_operation', 'resource', 'subresource'],
  })
  return {
    evaluated: (write, mode, { level, version }, decision) =>
      evaluations.inc({
        decision,
        policy_level: level,
        policy_version: level === 'privileged' ? 'latest' : boundedVersion(version),
        mode,
        ...labelsOf(write),
      }),
    exempted: (write) => exemptions.inc(labelsOf(write)),
    failed: (write, isFatal) => errors.inc({ fatal: String(isFatal), ...labelsOf(write) }),
  }
}

/** A namespace may name any version: those that there are not yet are one. */
function boundedVersion(version: number): string {
  return version > Number(kubernetes.minor) && version !== latestVersion ? 'future' : versionText(version)
}

function labelsOf({ request: { route }, old }: SecuredWrite) {
  return {
    request_operation: old === undefined ? 'create' : 'update',
    resource: route.resource.id === 'pods' ? 'pod' : 'controller',
    subresource: route.subresource,
  }
}
