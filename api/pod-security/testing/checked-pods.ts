/** Pods as the checks of Pod Security judge them; pass only the fields the test is about. */
import type { Container, PodSpec, SecurityContext } from '../../pod.ts'
import { securityViolations, violationsText } from '../evaluation.ts'
import { parseVersion, type SecurityLevel } from '../levels.ts'
import type { SecuredPod } from '../security-check.ts'

/** Passes `restricted`. */
export const hardened: SecurityContext = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

export function aContainer(name: string, securityContext?: SecurityContext, more: Partial<Container> = {}): Container {
  return { name, ...(securityContext && { securityContext }), ...more }
}

export function aSecuredPod(spec: Partial<PodSpec>, annotations?: { readonly [key: string]: string }): SecuredPod {
  return { ...(annotations && { metadata: { annotations } }), spec: { containers: [], ...spec } }
}

/** One of each kind with this context, and one without. */
export function oneOfEachKind(bad: SecurityContext): Partial<PodSpec> {
  return {
    initContainers: [aContainer('init', bad)],
    containers: [aContainer('good'), aContainer('main', bad)],
    ephemeralContainers: [aContainer('debug', bad)],
  }
}
export const eachKind = 'containers "init", "main", "debug"'

/** As a refusal names them. */
export function foundIn(pod: SecuredPod, level: SecurityLevel, version = 'latest'): string {
  return violationsText(securityViolations(pod, { level, version: parseVersion(version) ?? Number.NaN }))
}
