/** Validates pods. */
import type { ObjectMeta } from '../meta.ts'
import { dnsSubdomainProblem, labelKeyProblem, labelValueProblem, qualifiedNameProblem } from '../names.ts'
import { schedulingExcesses } from '../pod/scheduling-terms.ts'
import { mirrorAnnotation, type Pod, type PodSpec, type PodTemplateSpec, type Toleration } from '../pod.ts'
import { forbidden, invalid, notSupported, type Problem } from '../problem.ts'
import { devicesProblems, podClaimProblems } from '../storage/pod-volume-problems.ts'
import { containersProblems, initContainersProblems, oneOfWords, requirementProblems } from './container-validation.ts'
import { annotationProblems, labelProblems, problemsWith } from './metadata-validation.ts'
import { osProblems } from './os-validation.ts'
import { schedulingProblems } from './scheduling-validation.ts'
import { containerSecurityProblems, foreignProblems, nameProblems, podSecurityProblems } from './security-validation.ts'
import { unsupportedFields } from './unsupported-fields.ts'
import { mountsProblems, volumeNames, volumesProblems } from './volume-validation.ts'

/** Containers and init containers of a pod, and those that are added later. Its node decides about each of them at each change of one. */
export const mostContainers = 250

/** Problem of a new pod or template with too many containers. `at`: the path of the list that is too long. */
export function containerExcess(at: string, count: number): readonly Problem[] {
  if (count <= mostContainers) return []
  const message = `Too many: ${count}: must have at most ${mostContainers} containers and init containers`
  return [{ field: at, reason: 'FieldValueTooMany', message }]
}

/** Problems of a pod with its defaults. */
export function podProblems(pod: Pod): readonly Problem[] {
  const { metadata, spec } = pod
  const isUnbound = (spec.nodeName ?? '') === ''
  return [
    ...podSpecProblems('spec', spec),
    ...podClaimProblems(pod),
    ...(isUnbound ? mirrorProblems(metadata, 'must set spec.nodeName if mirror pod annotation is set') : []),
  ]
}

/**
 * Problems of the pod template inside a workload, with its defaults (`withTemplateDefaults`). `at`: the template's own
 * path, such as `spec.template` (ValidatePodTemplateSpec in pkg/apis/core/validation/validation.go).
 */
export function podTemplateProblems(at: string, { metadata = {}, spec }: PodTemplateSpec): readonly Problem[] {
  const specAt = `${at}.spec`
  return [
    ...labelProblems(`${at}.metadata.labels`, metadata.labels),
    ...annotationProblems(`${at}.metadata.annotations`, metadata.annotations),
    ...podSpecProblems(specAt, spec),
    ...containerExcess(`${specAt}.containers`, containerCount(spec)),
    ...unsupportedFields(specAt, spec),
    ...((spec.ephemeralContainers ?? []).length === 0
      ? []
      : [forbidden(`${specAt}.ephemeralContainers`, 'ephemeral containers not allowed in pod template')]),
  ]
}

/** Problems of a specification with its defaults at the path `at`. */
export function podSpecProblems(at: string, spec: PodSpec): readonly Problem[] {
  const {
    nodeName = '',
    schedulerName = '',
    serviceAccountName = '',
    terminationGracePeriodSeconds = 0,
    activeDeadlineSeconds = 1,
  } = spec
  const volumes = volumeNames(spec)
  return [
    ...containersProblems(
      `${at}.containers`,
      spec.containers,
      spec.hostNetwork === true,
      terminationGracePeriodSeconds,
    ),
    ...initContainersProblems(
      `${at}.initContainers`,
      spec.initContainers ?? [],
      spec.containers,
      spec.hostNetwork === true,
      terminationGracePeriodSeconds,
    ),
    ...oneOfWords(`${at}.restartPolicy`, spec.restartPolicy ?? '', ['Always', 'OnFailure', 'Never']),
    ...oneOfWords(`${at}.dnsPolicy`, spec.dnsPolicy ?? '', [
      'ClusterFirst',
      'ClusterFirstWithHostNet',
      'Default',
      'None',
    ]),
    ...volumesProblems(`${at}.volumes`, spec),
    ...podSecurityProblems(at, spec),
    ...foreignProblems(at, spec),
    ...osProblems(at, spec),
    ...nameProblems(at, spec),
    ...spec.containers.flatMap((one, index) => containerSecurityProblems(`${at}.containers[${index}]`, one)),
    ...(spec.initContainers ?? []).flatMap((one, index) =>
      containerSecurityProblems(`${at}.initContainers[${index}]`, one),
    ),
    ...spec.containers.flatMap((container, index) => mountsProblems(`${at}.containers[${index}]`, container, volumes)),
    ...(spec.initContainers ?? []).flatMap((container, index) =>
      mountsProblems(`${at}.initContainers[${index}]`, container, volumes),
    ),
    ...spec.containers.flatMap((container, index) => devicesProblems(`${at}.containers[${index}]`, container, spec)),
    ...(spec.initContainers ?? []).flatMap((container, index) =>
      devicesProblems(`${at}.initContainers[${index}]`, container, spec),
    ),
    ...deadlineProblems(`${at}.activeDeadlineSeconds`, activeDeadlineSeconds),
    ...(spec.shareProcessNamespace && spec.hostPID
      ? [invalid(`${at}.shareProcessNamespace`, true, 'ShareProcessNamespace and HostPID cannot both be enabled')]
      : []),
    ...labelProblems(`${at}.nodeSelector`, spec.nodeSelector),
    ...(nodeName === '' ? [] : problemsWith(`${at}.nodeName`, nodeName, dnsSubdomainProblem)),
    ...problemsWith(`${at}.schedulerName`, schedulerName, dnsSubdomainProblem),
    ...(serviceAccountName === ''
      ? []
      : problemsWith(`${at}.serviceAccountName`, serviceAccountName, dnsSubdomainProblem)),
    ...(spec.tolerations ?? []).flatMap((toleration, index) =>
      tolerationProblems(`${at}.tolerations[${index}]`, toleration),
    ),
    ...(spec.runtimeClassName === undefined
      ? []
      : problemsWith(`${at}.runtimeClassName`, spec.runtimeClassName, dnsSubdomainProblem)),
    ...requirementProblems(`${at}.overhead`, { limits: spec.overhead ?? {} }),
    ...schedulingExcesses(at, spec),
    ...schedulingProblems(at, spec),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      problemsWith(`${at}.readinessGates[${index}].conditionType`, conditionType, qualifiedNameProblem),
    ),
  ]
}

function deadlineProblems(field: string, seconds: number): readonly Problem[] {
  const isInRange = seconds >= 1 && seconds <= 2147483647
  return isInRange ? [] : [invalid(field, seconds, 'must be between 1 and 2147483647, inclusive')]
}

/** Those that a pod begins with. */
export function containerCount({ containers, initContainers = [] }: PodSpec): number {
  return containers.length + initContainers.length
}

export const mirrorField = `metadata.annotations[${mirrorAnnotation}]`

function mirrorProblems({ annotations }: ObjectMeta, because: string): readonly Problem[] {
  const mirrors = annotations?.[mirrorAnnotation]
  return mirrors === undefined ? [] : [invalid(mirrorField, mirrors, because)]
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

export function tolerationProblems(field: string, toleration: Toleration): readonly Problem[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
  const problems: Problem[] = key === '' ? [] : problemsWith(`${field}.key`, key, labelKeyProblem)
  const at = `${field}.operator`
  if (key === '' && operator !== 'Exists') {
    const because = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    problems.push(invalid(at, operator, because))
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    const because = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    problems.push(invalid(`${field}.effect`, effect, because))
  }
  // A wrong value is a problem of the operator in Kubernetes too (ValidateTolerations).
  if (operator === '' || operator === 'Equal') problems.push(...problemsWith(at, value, labelValueProblem))
  else if (operator !== 'Exists') problems.push(notSupported(at, operator, ['Equal', 'Exists']))
  else if (value !== '') problems.push(invalid(at, value, "value must be empty when `operator` is 'Exists'"))
  if (effect !== '' && !effects.includes(effect)) problems.push(notSupported(`${field}.effect`, effect, effects))
  return problems
}
