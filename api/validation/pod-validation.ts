/** What is wrong with a pod? */
import type { ObjectMeta } from '../meta.ts'
import { dnsSubdomainProblem, labelKeyProblem, labelValueProblem, qualifiedNameProblem } from '../names.ts'
import { mirrorAnnotation, type Pod, type Toleration } from '../pod.ts'
import { invalid, notSupported, type Problem } from '../problem.ts'
import { containersProblems, initContainersProblems, oneOfWords } from './container-validation.ts'
import { labelProblems, problemsWith } from './metadata-validation.ts'
import { schedulingProblems } from './scheduling-validation.ts'
import { containerSecurityProblems, foreignProblems, nameProblems, podSecurityProblems } from './security-validation.ts'
import { mountsProblems, volumeNames, volumesProblems } from './volume-validation.ts'

/** Of a pod with its defaults filled in. */
export function podProblems({ metadata, spec }: Pod): readonly Problem[] {
  const {
    nodeName = '',
    schedulerName = '',
    serviceAccountName = '',
    terminationGracePeriodSeconds = 0,
    activeDeadlineSeconds = 1,
  } = spec
  const volumes = volumeNames(spec)
  return [
    ...containersProblems('spec.containers', spec.containers, spec.hostNetwork === true, terminationGracePeriodSeconds),
    ...initContainersProblems(
      'spec.initContainers',
      spec.initContainers ?? [],
      spec.containers,
      spec.hostNetwork === true,
      terminationGracePeriodSeconds,
    ),
    ...oneOfWords('spec.restartPolicy', spec.restartPolicy ?? '', ['Always', 'OnFailure', 'Never']),
    ...oneOfWords('spec.dnsPolicy', spec.dnsPolicy ?? '', [
      'ClusterFirst',
      'ClusterFirstWithHostNet',
      'Default',
      'None',
    ]),
    ...(terminationGracePeriodSeconds < 0
      ? [
          invalid(
            'spec.terminationGracePeriodSeconds',
            terminationGracePeriodSeconds,
            'must be greater than or equal to 0',
          ),
        ]
      : []),
    ...volumesProblems(spec),
    ...podSecurityProblems(spec),
    ...foreignProblems(spec),
    ...nameProblems(spec),
    ...spec.containers.flatMap((one, index) => containerSecurityProblems(`spec.containers[${index}]`, one)),
    ...(spec.initContainers ?? []).flatMap((one, index) =>
      containerSecurityProblems(`spec.initContainers[${index}]`, one),
    ),
    ...spec.containers.flatMap((container, index) => mountsProblems(`spec.containers[${index}]`, container, volumes)),
    ...(spec.initContainers ?? []).flatMap((container, index) =>
      mountsProblems(`spec.initContainers[${index}]`, container, volumes),
    ),
    ...(activeDeadlineSeconds < 1
      ? [invalid('spec.activeDeadlineSeconds', activeDeadlineSeconds, 'must be between 1 and 2147483647, inclusive')]
      : []),
    ...(spec.shareProcessNamespace && spec.hostPID
      ? [invalid('spec.shareProcessNamespace', true, 'ShareProcessNamespace and HostPID cannot both be enabled')]
      : []),
    ...labelProblems('spec.nodeSelector', spec.nodeSelector),
    ...(nodeName === '' ? [] : problemsWith('spec.nodeName', nodeName, dnsSubdomainProblem)),
    ...(nodeName === '' ? mirrorProblems(metadata, 'must set spec.nodeName if mirror pod annotation is set') : []),
    ...problemsWith('spec.schedulerName', schedulerName, dnsSubdomainProblem),
    ...(serviceAccountName === ''
      ? []
      : problemsWith('spec.serviceAccountName', serviceAccountName, dnsSubdomainProblem)),
    ...(spec.tolerations ?? []).flatMap((toleration, index) =>
      tolerationProblems(`spec.tolerations[${index}]`, toleration),
    ),
    ...schedulingProblems(spec),
    ...(spec.readinessGates ?? []).flatMap(({ conditionType }, index) =>
      problemsWith(`spec.readinessGates[${index}].conditionType`, conditionType, qualifiedNameProblem),
    ),
  ]
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
