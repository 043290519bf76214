/** What is valid in a pod and hardly meant, in the words of kube-apiserver (pkg/api/pod/warnings.go). */
import type { ObjectMeta } from '../meta.ts'
import type { Affinity, Pod, PodSpec, PodTemplateSpec } from '../pod.ts'
import {
  envWarnings,
  fractionWarnings,
  type PlacedContainer,
  placedContainers,
  portWarnings,
} from './container-warnings.ts'
import { hostnameWarnings } from './name-warnings.ts'
import { deprecatedNodeLabel, nodeTermWarnings } from './node-label-warnings.ts'
import { volumeWarnings } from './volume-warnings.ts'

/** Warnings of a new pod with its defaults. */
export function podWarnings({ metadata, spec }: Pod): readonly string[] {
  return [...hostnameWarnings(metadata.name ?? ''), ...specWarnings('', metadata, spec)]
}

/** Warnings of a template with its defaults at the path `at`. */
export function podTemplateWarnings(at: string, { metadata = {}, spec }: PodTemplateSpec): readonly string[] {
  return specWarnings(`${at}.`, metadata, spec)
}

/** `inside`: the path of the pod, with a dot at its end. */
function specWarnings(inside: string, metadata: ObjectMeta, spec: PodSpec): readonly string[] {
  const at = `${inside}spec`
  const containers = placedContainers(at, spec)
  return [
    ...nodeWarnings(at, spec),
    ...annotationWarnings(inside, metadata),
    ...volumeWarnings(spec.volumes),
    ...repetitions(
      `${at}.hostAliases`,
      'ip',
      (spec.hostAliases ?? []).map(({ ip }) => ip),
    ),
    ...repetitions(`${at}.imagePullSecrets`, 'name', pullSecrets(spec)),
    ...pullSecrets(spec).flatMap((name, index) =>
      name === '' ? [`${at}.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
    ),
    ...fractionWarnings(`${at}.overhead`, spec.overhead),
    ...profileWarnings(inside, metadata, spec, containers),
    ...containers.flatMap(({ at, container: { resources = {}, env } }) => [
      ...fractionWarnings(`${at}.resources.limits`, resources.limits),
      ...fractionWarnings(`${at}.resources.requests`, resources.requests),
      ...envWarnings(at, env),
    ]),
    ...portWarnings(containers),
    ...((spec.terminationGracePeriodSeconds ?? 0) < 0
      ? [`${at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...podAffinityWarnings(`${at}.affinity.podAffinity`, spec.affinity?.podAffinity),
    ...podAffinityWarnings(`${at}.affinity.podAntiAffinity`, spec.affinity?.podAntiAffinity),
  ]
}

/** What chooses nodes, or compares them, by deprecated labels; and constraints that count no pods. */
function nodeWarnings(at: string, { nodeSelector = {}, affinity, topologySpreadConstraints = [] }: PodSpec) {
  const { requiredDuringSchedulingIgnoredDuringExecution: required, preferredDuringSchedulingIgnoredDuringExecution } =
    affinity?.nodeAffinity ?? {}
  const inAffinity = `${at}.affinity.nodeAffinity`
  return [
    ...Object.keys(nodeSelector).flatMap((label) => {
      const message = deprecatedNodeLabel(label)
      return message === undefined ? [] : [`${at}.nodeSelector[${label}]: ${message}`]
    }),
    ...(required?.nodeSelectorTerms ?? []).flatMap((term, index) => {
      const terms = 'requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
      return nodeTermWarnings(`${inAffinity}.${terms}[${index}]`, term)
    }),
    ...(preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ preference }, index) => {
      const terms = 'preferredDuringSchedulingIgnoredDuringExecution'
      return nodeTermWarnings(`${inAffinity}.${terms}[${index}].preference`, preference)
    }),
    ...topologySpreadConstraints.flatMap(({ topologyKey, labelSelector }, index) => {
      const place = `${at}.topologySpreadConstraints[${index}]`
      const message = deprecatedNodeLabel(topologyKey)
      return [
        ...(message === undefined ? [] : [`${place}.topologyKey: ${topologyKey} is ${message}`]),
        ...(labelSelector === undefined ? [`${place}.labelSelector: ${matchesNone}`] : []),
      ]
    }),
  ]
}

const matchesNone = 'a null labelSelector results in matching no pod'

const deprecatedAnnotations = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
}

function annotationWarnings(inside: string, { annotations = {} }: ObjectMeta): readonly string[] {
  return Object.entries(deprecatedAnnotations).flatMap(([key, message]) =>
    Object.hasOwn(annotations, key) ? [`${inside}metadata.annotations[${key}]: ${message}`] : [],
  )
}

/** Annotations for seccomp and AppArmor that are without effect, where the field is not set. */
function profileWarnings(
  inside: string,
  { annotations = {} }: ObjectMeta,
  { securityContext = {} }: PodSpec,
  containers: readonly PlacedContainer[],
): readonly string[] {
  const warn = (key: string, message: string) =>
    Object.hasOwn(annotations, key) ? [`${inside}metadata.annotations[${key}]: ${message} field instead`] : []
  const noSeccomp = 'non-functional in v1.27+; use the "seccompProfile"'
  return [
    ...(securityContext.seccompProfile === undefined
      ? warn('seccomp.security.alpha.kubernetes.io/pod', noSeccomp)
      : []),
    ...containers.flatMap(({ container: { name, securityContext: own = {} } }) => {
      const hasAppArmor = (own.appArmorProfile ?? securityContext.appArmorProfile) !== undefined
      const appArmor = `container.apparmor.security.beta.kubernetes.io/${name}`
      return [
        ...(own.seccompProfile === undefined
          ? warn(`container.seccomp.security.alpha.kubernetes.io/${name}`, noSeccomp)
          : []),
        ...(hasAppArmor ? [] : warn(appArmor, 'deprecated since v1.30; use the "appArmorProfile"')),
      ]
    }),
  ]
}

function pullSecrets({ imagePullSecrets = [] }: PodSpec): readonly string[] {
  return imagePullSecrets.map(({ name = '' }) => name)
}

function repetitions(at: string, field: string, values: readonly string[]): readonly string[] {
  const before = new Set<string>()
  return values.flatMap((value, index) => {
    if (before.has(value)) return [`${at}[${index}].${field}: duplicate ${field} ${JSON.stringify(value)}`]
    before.add(value)
    return []
  })
}

function podAffinityWarnings(at: string, affinity: Affinity['podAffinity'] = {}): readonly string[] {
  const { requiredDuringSchedulingIgnoredDuringExecution: required = [] } = affinity
  const { preferredDuringSchedulingIgnoredDuringExecution: preferred = [] } = affinity
  return [
    ...required.flatMap(({ labelSelector }, index) =>
      labelSelector === undefined
        ? [`${at}.requiredDuringSchedulingIgnoredDuringExecution[${index}].labelSelector: ${matchesNone}`]
        : [],
    ),
    ...preferred.flatMap(({ podAffinityTerm: { labelSelector } }, index) => {
      const place = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${index}].podAffinityTerm`
      return labelSelector === undefined ? [`${place}.labelSelector: ${matchesNone}`] : []
    }),
  ]
}
