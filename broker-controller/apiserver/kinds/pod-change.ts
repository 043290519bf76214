/** The fields of a pod that may change after its creation. */
import { isDeepStrictEqual } from 'node:util'
import { schedulingExcesses } from '../../../api/pod/scheduling-terms.ts'
import {
  type Container,
  EphemeralContainerSchema,
  mirrorAnnotation,
  type NodeSelectorTerm,
  type Pod,
  type PodSpec,
  PodSpecSchema,
  type Toleration,
} from '../../../api/pod.ts'
import { forbidden, invalid, type Problem } from '../../../api/problem.ts'
import { imageProblems } from '../../../api/validation/container-validation.ts'
import { ephemeralProblems } from '../../../api/validation/ephemeral-validation.ts'
import { labelProblems } from '../../../api/validation/metadata-validation.ts'
import {
  containerCount,
  containerExcess,
  mirrorField,
  tolerationProblems,
} from '../../../api/validation/pod-validation.ts'
import { schedulingProblems } from '../../../api/validation/scheduling-validation.ts'
import { unsupportedFields } from '../../../api/validation/unsupported-fields.ts'
import { withoutZeros } from '../../../api/validation/zero-fields.ts'
import { isSameInGo } from './go-equality.ts'

/**
 * A pod stays what it is; its images may change, its deadline may come nearer, what it tolerates may grow, its gates may open, and while it is gated
 * it may become choosier. Both with defaults filled in.
 */
export function podChangeProblems(
  { metadata: oldMetadata, spec: old }: Pod,
  { metadata, spec: now }: Pod,
): readonly Problem[] {
  if (now.containers.length !== old.containers.length) {
    return [forbidden('spec.containers', 'pod updates may not add or remove containers')]
  }
  if ((now.initContainers ?? []).length !== (old.initContainers ?? []).length) {
    return [forbidden('spec.initContainers', 'pod updates may not add or remove containers')]
  }
  const images = [
    ...now.containers.flatMap(({ image = '' }, index) => imageProblems(`spec.containers[${index}].image`, image)),
    ...(now.initContainers ?? []).flatMap(({ image = '' }, index) =>
      imageProblems(`spec.initContainers[${index}].image`, image),
    ),
  ]
  const isGated = (old.schedulingGates ?? []).length > 0
  const fixed = withoutWhatMayChange(now, old)
  const changed = isGated
    ? fieldsThatDiffer(withoutNodeChoice(old), withoutNodeChoice(fixed))
    : fieldsThatDiffer(old, fixed)
  const isSameMirror = oldMetadata.annotations?.[mirrorAnnotation] === metadata.annotations?.[mirrorAnnotation]
  return [
    ...images,
    ...(isSameMirror ? [] : [forbidden(mirrorField, 'may not add, change or remove the mirror pod annotation')]),
    ...changed.map((field) => forbidden(`spec.${field}`, mayChange)),
    ...deadlineChangeProblems(old.activeDeadlineSeconds, now.activeDeadlineSeconds),
    ...tolerationChangeProblems(old.tolerations ?? [], now.tolerations ?? []),
    ...gateChangeProblems(old, now),
    ...(isGated ? gatedProblems(old, now) : []),
  ]
}

function gatedProblems(old: PodSpec, now: PodSpec): readonly Problem[] {
  return [
    ...narrowingProblems(old, now),
    ...newExcesses(old, now),
    ...labelProblems('spec.nodeSelector', now.nodeSelector),
    ...schedulingProblems('spec', now),
  ]
}

/** A pod that an earlier version accepted may still lose its gates. */
function newExcesses(old: PodSpec, now: PodSpec): readonly Problem[] {
  return schedulingExcesses('spec', old).length > 0 ? [] : schedulingExcesses('spec', now)
}

/** The words of Kubernetes' API. */
const mayChange =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** Each of these as it was: what differs still must not. */
function withoutWhatMayChange(
  { activeDeadlineSeconds: _, tolerations: __, schedulingGates: ___, ...now }: PodSpec,
  old: PodSpec,
): PodSpec {
  const { activeDeadlineSeconds, tolerations, schedulingGates, initContainers = [] } = old
  const { terminationGracePeriodSeconds: grace = 0 } = old
  return {
    ...now,
    ...(grace < 0 && now.terminationGracePeriodSeconds === 1 && { terminationGracePeriodSeconds: grace }),
    containers: now.containers.map((container, index) => withImageOf(container, old.containers[index])),
    ...(now.initContainers === undefined
      ? {}
      : {
          initContainers: now.initContainers.map((container, index) => withImageOf(container, initContainers[index])),
        }),
    ...(activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(schedulingGates === undefined ? {} : { schedulingGates }),
  }
}

/** It may be set, and come nearer. */
function deadlineChangeProblems(old: number | undefined, now: number | undefined): readonly Problem[] {
  const field = 'spec.activeDeadlineSeconds'
  if (now === undefined) {
    return old === undefined ? [] : [invalid(field, null, 'must not update from a positive integer to nil value')]
  }
  if (now === old) return []
  if (now < 1 || now > 2147483647) return [invalid(field, now, 'must be between 1 and 2147483647, inclusive')]
  return old !== undefined && old < now ? [invalid(field, now, 'must be less than or equal to previous value')] : []
}

function withImageOf(container: Container, other: Container | undefined): Container {
  const { image: _, ...rest } = container
  return other?.image === undefined ? rest : { ...rest, image: other.image }
}

/** The way of its own that containers are added by. What there is stays as it is. */
export function ephemeralChangeProblems({ metadata, spec: old }: Pod, now: Pod): readonly Problem[] {
  const field = 'spec.ephemeralContainers'
  if (metadata.annotations?.[mirrorAnnotation] !== undefined) {
    return [forbidden('', 'static pods do not support ephemeral containers')]
  }
  const added = new Map((now.spec.ephemeralContainers ?? []).map((container) => [container.name, container]))
  const stays = (old.ephemeralContainers ?? []).flatMap((container) => {
    const { name } = container
    const same = added.get(name)
    if (same === undefined) return [forbidden(field, `existing ephemeral containers "${name}" may not be removed`)]
    if (isSameInGo(EphemeralContainerSchema, same, container)) return []
    return [forbidden(field, `existing ephemeral containers "${name}" may not be changed`)]
  })
  const count = containerCount(now.spec) + added.size
  return [
    ...containerExcess(field, count),
    ...ephemeralProblems('spec', now.spec),
    ...unsupportedFields('spec', now.spec),
    ...stays,
  ]
}

/** What a gated pod may still change: which nodes it asks for. */
function withoutNodeChoice({
  nodeSelector: _,
  affinity: { nodeAffinity: __, ...podAffinity } = {},
  ...spec
}: PodSpec): PodSpec {
  return Object.keys(podAffinity).length === 0 ? spec : { ...spec, affinity: podAffinity }
}

/** Clients of Go leave out what is empty: for Kubernetes it is the same. */
function fieldsThatDiffer(old: PodSpec, now: PodSpec): readonly string[] {
  if (isDeepStrictEqual(old, now)) return []
  const before = new Map<string, unknown>(Object.entries(withoutZeros(PodSpecSchema, old)))
  const after = new Map<string, unknown>(Object.entries(withoutZeros(PodSpecSchema, now)))
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (field) => !isDeepStrictEqual(before.get(field), after.get(field)),
  )
}

/** Every earlier toleration is still there; only for how long may have changed. */
function tolerationChangeProblems(old: readonly Toleration[], now: readonly Toleration[]): readonly Problem[] {
  const what = ({ key, operator, value, effect }: Toleration) => JSON.stringify([key, operator, value, effect])
  const kept = new Set(now.map(what))
  if (old.some((toleration) => !kept.has(what(toleration)))) {
    return [forbidden('spec.tolerations', 'existing tolerations can not be changed except their tolerationSeconds')]
  }
  return now.flatMap((toleration, index) => tolerationProblems(`spec.tolerations[${index}]`, toleration))
}

/** Gates only open. */
export function gateChangeProblems(
  { schedulingGates: old = [] }: PodSpec,
  { schedulingGates: now = [] }: PodSpec,
): readonly Problem[] {
  const known = new Set(old.map(({ name }) => name))
  return now.flatMap(({ name }, index) =>
    known.has(name)
      ? []
      : [
          forbidden(
            `spec.schedulingGates[${index}].name`,
            `only deletion is allowed, but found new scheduling gate '${name}'`,
          ),
        ],
  )
}

/** While it is gated, a pod may ask for fewer nodes than before, and never for others. */
export function narrowingProblems(old: PodSpec, now: PodSpec): readonly Problem[] {
  const selector = now.nodeSelector ?? {}
  const kept = Object.entries(old.nodeSelector ?? {}).every(([key, value]) => selector[key] === value)
  const because = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
  return [...(kept ? [] : [invalid('spec.nodeSelector', selector, because)]), ...termChangeProblems(old, now)]
}

function termChangeProblems(old: PodSpec, now: PodSpec): readonly Problem[] {
  const before = requiredTerms(old)
  const after = requiredTerms(now)
  if (before === undefined || isDeepStrictEqual(before, after)) return []
  const field = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms'
  if (after === undefined || after.length !== before.length) {
    return [invalid(field, after ?? [], 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')]
  }
  return after.flatMap((term, index) =>
    isNarrower(before[index] ?? {}, term)
      ? []
      : [invalid(`${field}[${index}]`, term, 'only additions are allowed (no mutations or deletions)')],
  )
}

function isNarrower(old: NodeSelectorTerm, now: NodeSelectorTerm): boolean {
  const keeps = (before: readonly unknown[] = [], after: readonly unknown[] = []) =>
    before.every((requirement, index) => isDeepStrictEqual(requirement, after[index]))
  return keeps(old.matchExpressions, now.matchExpressions) && keeps(old.matchFields, now.matchFields)
}

function requiredTerms({ affinity }: PodSpec): readonly NodeSelectorTerm[] | undefined {
  return affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
}
