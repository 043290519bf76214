/** The field `podSecurity` of the configuration: a PodSecurityConfiguration of pod-security.admission.config.k8s.io/v1. */
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../api/names.ts'
import { levelForm, parseLevel, parseVersion, versionForm } from '../../../api/pod-security/levels.ts'
import {
  privilegedPolicy,
  type SecurityMode,
  type SecurityPolicy,
  securityModes,
} from '../../../api/pod-security/policy.ts'
import { type Described, list, object, optional, text } from '../../../api/schema.ts'

/** Kubernetes' names, so that the content of its file can stand here. */
export const PodSecuritySchema = object({
  defaults: optional(
    object({
      enforce: optional(text),
      'enforce-version': optional(text),
      audit: optional(text),
      'audit-version': optional(text),
      warn: optional(text),
      'warn-version': optional(text),
    }),
  ),
  exemptions: optional(
    object({
      usernames: optional(list(text)),
      namespaces: optional(list(text)),
      runtimeClasses: optional(list(text)),
    }),
  ),
})
type PodSecurityFields = Described<typeof PodSecuritySchema>

export type PodSecuritySettings = {
  /** What a namespace has where its labels leave it open. */
  readonly defaults: SecurityPolicy
  /** What nothing is refused to, audited or warned of. */
  readonly exemptions: { readonly [of in keyof NonNullable<PodSecurityFields['exemptions']>]-?: ReadonlySet<string> }
}

export const defaultPodSecuritySettings: PodSecuritySettings = {
  defaults: privilegedPolicy,
  exemptions: { usernames: new Set(), namespaces: new Set(), runtimeClasses: new Set() },
}

/** Adds what is wrong to `problems`, each with its field. */
export function podSecuritySettings(
  { defaults = {}, exemptions = {} }: PodSecurityFields = {},
  problems: string[],
): PodSecuritySettings {
  const complain = (field: string, value: string, because: string) => {
    problems.push(`podSecurity.${field}: ${JSON.stringify(value)} ${because}`)
  }
  const levelVersion = (mode: SecurityMode) => {
    const { [mode]: level, [`${mode}-version` as const]: version } = defaults
    const found = { level: parseLevel(level || 'privileged'), version: parseVersion(version || 'latest') }
    if (found.level === undefined) complain(`defaults.${mode}`, level ?? '', levelForm)
    if (found.version === undefined) complain(`defaults.${mode}-version`, version ?? '', versionForm)
    const { [mode]: usual } = privilegedPolicy
    return { level: found.level ?? usual.level, version: found.version ?? usual.version }
  }
  const names = (field: keyof typeof exemptions, problemOf: (name: string) => string | undefined) => {
    const all = exemptions[field] ?? []
    for (const [index, name] of all.entries()) {
      const problem = all.indexOf(name) < index ? 'is listed twice' : problemOf(name)
      if (problem !== undefined) complain(`exemptions.${field}[${index}]`, name, problem)
    }
    return new Set(all)
  }
  const [enforce, audit, warn] = securityModes.map(levelVersion)
  return {
    defaults: { ...privilegedPolicy, ...(enforce && { enforce }), ...(audit && { audit }), ...(warn && { warn }) },
    exemptions: {
      usernames: names('usernames', (name) => (name === '' ? 'must not be empty' : undefined)),
      namespaces: names('namespaces', dnsLabelProblem),
      runtimeClasses: names('runtimeClasses', dnsSubdomainProblem),
    },
  }
}
