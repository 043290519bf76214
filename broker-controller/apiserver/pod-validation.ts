/** What is wrong with a pod, and what of it may change later? */
import { isDeepStrictEqual } from 'node:util'
import type { ObjectMeta } from '../../api/meta.ts'
import { dnsSubdomainProblem, labelKeyProblem, labelValueProblem } from '../../api/names.ts'
import { type Container, mirrorAnnotation, type Pod, type PodSpec, type Toleration } from '../../api/pod.ts'
import { forbidden, invalid, notSupported, type Problem } from '../../api/problem.ts'
import { containersProblems, imageProblems, initContainersProblems, oneOfWords } from './container-validation.ts'
import { labelProblems, problemsWith } from './metadata-validation.ts'
import { gateChangeProblems, narrowingProblems, schedulingProblems } from './scheduling-validation.ts'
import { containerSecurityProblems, foreignProblems, nameProblems, podSecurityProblems } from './security-validation.ts'
import { mountsProblems, volumesProblems } from './volume-validation.ts'

/** Of a pod with its defaults filled in. */
export function podProblems({ metadata, spec }: Pod): readonly Problem[] {
  const {
    nodeName = '',
    schedulerName = '',
    serviceAccountName = '',
    terminationGracePeriodSeconds = 0,
    activeDeadlineSeconds = 1,
  } = spec
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
    ...spec.containers.flatMap((container, index) => mountsProblems(`spec.containers[${index}]`, container, spec)),
    ...(spec.initContainers ?? []).flatMap((container, index) =>
      mountsProblems(`spec.initContainers[${index}]`, container, spec),
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
  ]
}

const mirrorField = `metadata.annotations[${mirrorAnnotation}]`

function mirrorProblems({ annotations }: ObjectMeta, because: string): readonly Problem[] {
  const mirrors = annotations?.[mirrorAnnotation]
  return mirrors === undefined ? [] : [invalid(mirrorField, mirrors, because)]
}

/**
 * A pod stays what it is; its images may change, what it tolerates may grow, its gates may open, and while it is gated
 * it may become choosier. Both with defaults filled in.
 */
export function podChangeProblems(
  { metadata: oldMetadata, spec: old }: Pod,
  { metadata, spec: now }: Pod,
): readonly Problem[] {
  if (now.containers.length !== old.containers.length) {
    return [forbidden('spec.containers', 'pod updates may not add or remove containers')]
  }
  const images = now.containers.flatMap(({ image = '' }, index) =>
    imageProblems(`spec.containers[${index}].image`, image),
  )
  const sameImages = now.containers.map((container, index) => withImageOf(container, old.containers[index]))
  const isGated = (old.schedulingGates ?? []).length > 0
  const { tolerations, schedulingGates } = old
  const fixed = { ...now, containers: sameImages, tolerations, schedulingGates }
  const changed = isGated
    ? fieldsThatDiffer(withoutNodeChoice(old), withoutNodeChoice(fixed))
    : fieldsThatDiffer(old, fixed)
  const because =
    'pod updates may not change fields other than `spec.containers[*].image` and `spec.tolerations` (only additions)'
  const isSameMirror = oldMetadata.annotations?.[mirrorAnnotation] === metadata.annotations?.[mirrorAnnotation]
  return [
    ...images,
    ...(isSameMirror ? [] : [forbidden(mirrorField, 'may not add, change or remove the mirror pod annotation')]),
    ...changed.map((field) => forbidden(`spec.${field}`, because)),
    ...tolerationChangeProblems(old.tolerations ?? [], now.tolerations ?? []),
    ...gateChangeProblems(old, now),
    ...(isGated ? [...narrowingProblems(old, now), ...schedulingProblems(now)] : []),
  ]
}

function withImageOf(container: Container, other: Container | undefined): Container {
  const { image: _, ...rest } = container
  return other?.image === undefined ? rest : { ...rest, image: other.image }
}

/** What a gated pod may still change: which nodes it asks for. */
function withoutNodeChoice({
  nodeSelector: _,
  affinity: { nodeAffinity: __, ...podAffinity } = {},
  ...spec
}: PodSpec): PodSpec {
  return Object.keys(podAffinity).length === 0 ? spec : { ...spec, affinity: podAffinity }
}

function fieldsThatDiffer(old: PodSpec, now: PodSpec): readonly string[] {
  const before = new Map<string, unknown>(Object.entries(old))
  const after = new Map<string, unknown>(Object.entries(now))
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => !isDeepStrictEqual(before.get(field), after.get(field)),
  )
}

/** Every earlier toleration is still there; only for how long may have changed. */
function tolerationChangeProblems(old: readonly Toleration[], now: readonly Toleration[]): readonly Problem[] {
  const what = ({ tolerationSeconds: _, ...rest }: Toleration) => rest
  const lost = old.filter((toleration) => !now.some((other) => isDeepStrictEqual(what(other), what(toleration))))
  if (lost.length > 0) {
    return [forbidden('spec.tolerations', 'existing tolerations can not be changed except their tolerationSeconds')]
  }
  return now.flatMap((toleration, index) => tolerationProblems(`spec.tolerations[${index}]`, toleration))
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function tolerationProblems(field: string, toleration: Toleration): readonly Problem[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration
  const problems: Problem[] = key === '' ? [] : problemsWith(`${field}.key`, key, labelKeyProblem)
  if (key === '' && operator !== 'Exists') {
    problems.push(invalid(`${field}.operator`, operator, 'must be Exists when `key` is empty, which means all keys'))
  }
  if (!['', 'Equal', 'Exists'].includes(operator)) {
    problems.push(notSupported(`${field}.operator`, operator, ['Equal', 'Exists']))
  }
  if (operator === 'Exists' && value !== '') {
    problems.push(invalid(`${field}.value`, value, 'must be empty when `operator` is Exists'))
  }
  problems.push(...problemsWith(`${field}.value`, value, labelValueProblem))
  if (effect !== '' && !effects.includes(effect)) problems.push(notSupported(`${field}.effect`, effect, effects))
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    problems.push(invalid(`${field}.effect`, effect, 'must be NoExecute when `tolerationSeconds` is set'))
  }
  return problems
}
