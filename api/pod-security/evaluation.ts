/** A pod against a level of the Pod Security Standards, as Kubernetes 1.32 (pod-security-admission/policy/registry.go). */
import {
  containerHostPorts,
  hostNamespaces,
  hostPathVolumes,
  privilegedContainers,
  windowsHostProcess,
} from './host-checks.ts'
import {
  appArmorProfile,
  procMount,
  seccompProfileBaseline,
  seccompProfileRestricted,
  seLinuxOptions,
  sysctls,
} from './kernel-checks.ts'
import type { LevelVersion } from './levels.ts'
import {
  allowPrivilegeEscalation,
  capabilitiesBaseline,
  capabilitiesRestricted,
  runAsNonRoot,
  runAsUser,
} from './privilege-checks.ts'
import type { CheckedPod, CheckFunction, SecuredPod, SecurityCheck, Violation } from './security-check.ts'
import { restrictedVolumes } from './volume-checks.ts'

/** In the order in which violations are named: those of `baseline` first, each by its name. */
export const securityChecks: readonly SecurityCheck[] = [
  appArmorProfile,
  capabilitiesBaseline,
  hostNamespaces,
  hostPathVolumes,
  containerHostPorts,
  privilegedContainers,
  procMount,
  seLinuxOptions,
  seccompProfileBaseline,
  sysctls,
  windowsHostProcess,
  allowPrivilegeEscalation,
  capabilitiesRestricted,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
  seccompProfileRestricted,
]

/** The last version that changed a check: later ones are the same. */
const newestVersion = Math.max(...securityChecks.flatMap(({ versions }) => versions.map(({ since }) => since)))

/** By version. */
const functions = { baseline: functionsOf('baseline'), restricted: functionsOf('restricted') }

/** All that the level forbids of the pod, or of the pods of a template; none: it is allowed. */
export function securityViolations(
  { metadata, spec }: SecuredPod,
  { level, version }: LevelVersion,
): readonly Violation[] {
  if (level === 'privileged') return []
  const { initContainers = [], containers, ephemeralContainers = [] } = spec
  const pod: CheckedPod = {
    annotations: metadata?.annotations ?? {},
    spec,
    containers: [...initContainers, ...containers, ...ephemeralContainers],
  }
  return (functions[level][Math.min(version, newestVersion)] ?? []).flatMap((check) => check(pod) ?? [])
}

/** `hostPort, privileged`: for several pods. */
export function reasonsText(violations: readonly Violation[]): string {
  return violations.map(({ reason }) => reason).join(', ')
}

/** `hostPort (container "web" uses hostPort 80), …`: for one pod. */
export function violationsText(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => `${reason} (${detail})`).join(', ')
}

function functionsOf(level: SecurityCheck['level']): readonly (readonly CheckFunction[])[] {
  return Array.from({ length: newestVersion + 1 }, (_, version) => {
    const present = securityChecks.flatMap((check) => {
      const current = check.versions.findLast(({ since }) => since <= version)
      const isOfLevel = level === 'restricted' || check.level === 'baseline'
      return current === undefined || !isOfLevel ? [] : [{ ...check, ...current }]
    })
    const replaced = new Set(present.map(({ replaces }) => replaces))
    return present.filter(({ name }) => !replaced.has(name)).map(({ check }) => check)
  })
}
