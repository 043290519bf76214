/**
 * Admission by the Pod Security Standards: pods that violate what their namespace enforces are refused; what it audits goes to the audit
 * log, and what it warns of to the author (staging/src/k8s.io/pod-security-admission/admission/admission.go).
 */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { PodSpec } from '../../../api/pod.ts'
import { securityViolations, violationsText } from '../../../api/pod-security/evaluation.ts'
import {
  isSameLevelVersion,
  type LevelVersion,
  levelVersionText,
  strictness,
} from '../../../api/pod-security/levels.ts'
import {
  ignoredPolicyText,
  isFullyPrivileged,
  podSecurityPrefix,
  type SecurityPolicy,
  securityPolicyOf,
} from '../../../api/pod-security/policy.ts'
import type { SecuredPod } from '../../../api/pod-security/security-check.ts'
import { isSignificantPodUpdate } from '../../../api/pod-security/significant-update.ts'
import { clipped, invalidObject, type Problem, problemText } from '../../../api/problem.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { Store } from '../../store/store.ts'
import type { PodSecurityGate, SecuredKind, SecuredWrite } from '../handlers/pod-security-gate.ts'
import { forbid } from '../handlers/resource-request.ts'
import { existingPodWarnings, oneOfEachFirst } from './existing-pods.ts'
import { type PodSecurityMetrics, podSecurityMetrics } from './pod-security-metrics.ts'
import type { PodSecuritySettings } from './pod-security-settings.ts'

export type PodSecurityNeeds = {
  readonly store: Pick<Store, 'get' | 'list'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
}

/** Each of a thousand containers may violate a check: the text is cut here. */
const longestViolations = 8192
/** As the longest URI there: a user must not rotate the audit log away. */
const longestAudited = 2048

type Facts = PodSecurityNeeds & { readonly settings: PodSecuritySettings; readonly metrics: PodSecurityMetrics }
type PodKind = Exclude<SecuredKind<AnyObject>, { readonly judges: 'namespace' }>

/** Registers its metrics: once for a registry. */
export function podSecurityAdmission(needs: PodSecurityNeeds, settings: PodSecuritySettings): PodSecurityGate {
  const facts = { ...needs, settings, metrics: podSecurityMetrics(needs.registry) }
  return {
    async judge(write, kind) {
      const { subresource } = write.request.route
      if (kind.judges === 'namespace') return subresource === '' ? judgeNamespace(write, facts) : []
      // Each written subresource of a pod but its status affects what the pod does.
      const isLeftOut = kind.judges === 'pod' ? subresource === 'status' : subresource !== ''
      return isLeftOut ? [] : judgePods(write, kind, facts)
    },
  }
}

async function judgePods(write: SecuredWrite, kind: PodKind, facts: Facts): Promise<readonly string[]> {
  const { request, object, old } = write
  const { settings, metrics } = facts
  const { exemptions, defaults } = settings
  const { namespace } = request.route
  if (exemptions.namespaces.has(namespace)) return exempt(write, 'namespace', metrics)
  if (exemptions.usernames.has(request.identity.user)) return exempt(write, 'user', metrics)
  const isEnforced = kind.judges === 'pod'
  const found = await facts.store.get('namespaces', { namespace: '', name: namespace })
  if (found === undefined) return withoutNamespace(write, isEnforced, metrics)
  const { policy, problems } = securityPolicyOf(found.metadata.labels, defaults)
  if (problems.length === 0 && isEnforced && isFullyPrivileged(policy)) {
    annotate(write, 'enforce-policy', 'privileged:latest')
    metrics.evaluated(write, 'enforce', policy.enforce, 'allow')
    return []
  }
  const { audit, warn } = policy
  const isSilent = audit.level === 'privileged' && warn.level === 'privileged'
  if (problems.length === 0 && !isEnforced && isSilent) return []
  const parts = kind.parts(object)
  const before = old && kind.parts(old)
  if (parts === undefined || (isEnforced && before && !isSignificantPodUpdate(before.spec, parts.spec))) return []
  if (isExemptClass(parts.spec, settings)) return exempt(write, 'runtimeClass', metrics)
  if (problems.length > 0) {
    annotate(write, 'error', `Failed to parse policy: ${problemsText(problems)}`)
    metrics.failed(write, false)
  }
  return judgeParts(write, parts, { policy, isEnforced, metrics })
}

type Judging = { readonly policy: SecurityPolicy; readonly isEnforced: boolean; readonly metrics: PodSecurityMetrics }

/** Throws Forbidden. */
function judgeParts(
  write: SecuredWrite,
  parts: SecuredPod,
  { policy, isEnforced, metrics }: Judging,
): readonly string[] {
  const { request, object } = write
  const violations = violationsByPolicy(parts)
  const [enforced, audited] = [isEnforced ? violations(policy.enforce) : '', violations(policy.audit)]
  if (isEnforced) {
    annotate(write, 'enforce-policy', levelVersionText(policy.enforce))
    metrics.evaluated(write, 'enforce', policy.enforce, enforced === '' ? 'allow' : 'deny')
  }
  if (audited !== '') {
    annotate(write, 'audit-violations', clipped(wouldViolate(policy.audit, audited), longestAudited))
    metrics.evaluated(write, 'audit', policy.audit, 'deny')
  }
  if (enforced !== '') {
    const because = `violates PodSecurity "${levelVersionText(policy.enforce)}": ${enforced}`
    throw forbid(request.route.resource, object.metadata.name ?? '', because, Number.POSITIVE_INFINITY)
  }
  const warned = violations(policy.warn)
  if (warned === '') return []
  metrics.evaluated(write, 'warn', policy.warn, 'deny')
  return [wouldViolate(policy.warn, warned)]
}

/** What the pod violates of a policy; modes often have the same one. */
function violationsByPolicy(parts: SecuredPod): (policy: LevelVersion) => string {
  const found = new Map<string, string>()
  return (policy) => {
    const key = levelVersionText(policy)
    const text = found.get(key) ?? clipped(violationsText(securityViolations(parts, policy)), longestViolations)
    found.set(key, text)
    return text
  }
}

function wouldViolate(policy: LevelVersion, violations: string): string {
  return `would violate PodSecurity "${levelVersionText(policy)}": ${violations}`
}

async function judgeNamespace(write: SecuredWrite, facts: Facts): Promise<readonly string[]> {
  const { request, object, old } = write
  const { store, clock, settings } = facts
  const { name = '', labels } = object.metadata
  const { policy, problems } = securityPolicyOf(labels, settings.defaults)
  const before = old && securityPolicyOf(old.metadata.labels, settings.defaults)
  // Labels that were wrong already do not stop other changes.
  if (problems.length > 0 && problemsText(problems) !== problemsText(before?.problems ?? [])) {
    throw invalidObject(request.route.resource, name, problems)
  }
  const isExempt = settings.exemptions.namespaces.has(name)
  if (before === undefined) return isExempt ? exemptWarnings(object, policy, settings) : []
  if (!isTightened(before.policy.enforce, policy.enforce)) return []
  if (isExempt) return exemptWarnings(object, policy, settings)
  const { items } = await store.list('pods', name)
  const judged = items.filter(({ spec }) => !isExemptClass(spec, settings))
  return existingPodWarnings(name, policy.enforce, oneOfEachFirst(judged), clock, request.signal)
}

/** Whether pods that were allowed may violate the new policy. */
function isTightened(old: LevelVersion, now: LevelVersion): boolean {
  if (isSameLevelVersion(old, now) || now.level === 'privileged') return false
  return old.version !== now.version || strictness(now.level) > strictness(old.level)
}

function exemptWarnings(
  { metadata }: AnyObject,
  policy: SecurityPolicy,
  { defaults }: PodSecuritySettings,
): readonly string[] {
  const ignored = ignoredPolicyText(metadata.labels, policy, defaults)
  if (ignored === '') return []
  return [`namespace "${metadata.name}" is exempt from Pod Security, and the policy (${ignored}) will be ignored`]
}

function isExemptClass({ runtimeClassName = '' }: PodSpec, { exemptions }: PodSecuritySettings): boolean {
  return exemptions.runtimeClasses.has(runtimeClassName)
}

function exempt(
  write: SecuredWrite,
  because: 'namespace' | 'user' | 'runtimeClass',
  metrics: PodSecurityMetrics,
): readonly string[] {
  annotate(write, 'exempt', because)
  metrics.exempted(write)
  return []
}

/** A pod whose policy is not known is refused, a template passes. */
function withoutNamespace(write: SecuredWrite, isEnforced: boolean, metrics: PodSecurityMetrics): readonly string[] {
  const because = `failed to lookup namespace "${write.request.route.namespace}"`
  annotate(write, 'error', because)
  metrics.failed(write, true)
  if (isEnforced) throw new ApiError('InternalError', `Internal error occurred: ${because}`)
  return []
}

function annotate({ request }: SecuredWrite, key: string, value: string): void {
  request.annotate?.(`${podSecurityPrefix}${key}`, value)
}

function problemsText(problems: readonly Problem[]): string {
  const texts = problems.map(problemText)
  return texts.length > 1 ? `[${texts.join(', ')}]` : texts.join('')
}
