/** Validates claims (ValidatePersistentVolumeClaim and ValidatePersistentVolumeClaimUpdate of Kubernetes). */
import { amountNamed, type ResourceAmounts } from '../../../../api/limits/resource-amounts.ts'
import { isNative } from '../../../../api/limits/resource-names.ts'
import { qualifiedNameProblem } from '../../../../api/names.ts'
import { forbidden, invalid, notSupported, type Problem } from '../../../../api/problem.ts'
import { compareQuantities, formatQuantity, type QuantityLike, zeroQuantity } from '../../../../api/quantity.ts'
import { claimSpecProblems } from '../../../../api/storage/claim-spec-problems.ts'
import {
  type PersistentVolumeClaim,
  type PersistentVolumeClaimSpec,
  PersistentVolumeClaimSpecSchema,
  storageClassAnnotation,
} from '../../../../api/storage/persistent-volume-claim.ts'
import { problemsWith } from '../../../../api/validation/metadata-validation.ts'
import { isSameInGo } from '../go-equality.ts'

export function claimProblems({ spec = {} }: PersistentVolumeClaim): readonly Problem[] {
  return claimSpecProblems('spec', spec)
}

/** A claim is what it was when it was made, but for its volume, its first class, and the size of a bound one. */
export function claimChangeProblems(old: PersistentVolumeClaim, now: PersistentVolumeClaim): readonly Problem[] {
  const [before = {}, after = {}] = [old.spec, now.spec]
  const annotationOf = ({ metadata }: PersistentVolumeClaim) => metadata.annotations?.[storageClassAnnotation]
  const isRenamed = before.storageClassName === undefined && annotationOf(old) !== undefined
  const isUpgraded =
    isRenamed &&
    after.storageClassName === annotationOf(old) &&
    [undefined, annotationOf(old)].includes(annotationOf(now))
  const isFirstClass = before.storageClassName === undefined && !isRenamed
  const kept = {
    ...(before.volumeName ? {} : { volumeName: after.volumeName }),
    ...(isUpgraded || isFirstClass ? { storageClassName: after.storageClassName } : {}),
  }
  const isBound = now.status?.phase === 'Bound'
  const sized = { ...after, ...(isBound && { resources: withSizeOf(before, after) }) }
  const because =
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
  return [
    ...claimProblems(now),
    ...(isUpgraded || annotationOf(old) === annotationOf(now)
      ? []
      : [invalid(`metadata.annotations[${storageClassAnnotation}]`, annotationOf(now) ?? '', 'field is immutable')]),
    ...(isSameInGo(PersistentVolumeClaimSpecSchema, { ...before, ...kept }, sized) ? [] : [forbidden('spec', because)]),
    ...sizeProblems('spec.resources.requests.storage', old, now),
    ...(before.volumeMode === after.volumeMode ? [] : [invalid('volumeMode', after.volumeMode, 'field is immutable')]),
  ]
}

function withSizeOf({ resources: before }: PersistentVolumeClaimSpec, { resources: after }: PersistentVolumeClaimSpec) {
  const size = amountNamed(before?.requests ?? {}, 'storage')
  return { ...after, requests: { ...after?.requests, ...(size !== undefined && { storage: size }) } }
}

function sizeOf({ spec = {} }: PersistentVolumeClaim): QuantityLike {
  return amountNamed(spec.resources?.requests ?? {}, 'storage') ?? zeroQuantity
}

/** A growth that failed may be taken back, but not below what the volume has. */
function sizeProblems(field: string, old: PersistentVolumeClaim, now: PersistentVolumeClaim): readonly Problem[] {
  if (compareQuantities(sizeOf(now), sizeOf(old)) >= 0) return []
  const has = amountNamed(old.status?.capacity ?? {}, 'storage') ?? zeroQuantity
  return compareQuantities(sizeOf(now), has) > 0 ? [] : [forbidden(field, 'field can not be less than status.capacity')]
}

const resizeStatuses = [
  ...['ControllerResizeInProgress', 'ControllerResizeInfeasible', 'NodeResizeInProgress', 'NodeResizeInfeasible'],
  'NodeResizePending',
].sort()

/** ValidatePersistentVolumeClaimStatusUpdate. */
export function claimStatusProblems({ status = {} }: PersistentVolumeClaim): readonly Problem[] {
  const { capacity = {}, allocatedResources = {}, allocatedResourceStatuses = {} } = status
  const ofStatuses = 'status.allocatedResourceStatus'
  return [
    ...amountProblems('status.capacity', capacity, 'must be a valid resource quantity'),
    ...Object.entries(allocatedResourceStatuses).flatMap(([name, value]) => [
      ...keyProblems(ofStatuses, name),
      ...(resizeStatuses.includes(value) ? [] : [notSupported(ofStatuses, name, resizeStatuses)]),
    ]),
    ...Object.keys(allocatedResources).flatMap((name) => keyProblems('status.allocatedResources', name)),
    ...amountProblems('status.allocatedResources', allocatedResources, 'must be a valid resource quantity'),
  ]
}

function keyProblems(field: string, name: string): readonly Problem[] {
  const problems = problemsWith(field, name, qualifiedNameProblem)
  if (problems.length > 0) return problems
  return isNative(name) && name !== 'storage' ? [notSupported(field, name, ['storage'])] : []
}

function amountProblems(field: string, amounts: ResourceAmounts, because: string): readonly Problem[] {
  return Object.entries(amounts)
    .filter(([, amount]) => compareQuantities(amount, zeroQuantity) < 0)
    .map(([name, amount]) => invalid(`${field}[${name}]`, formatQuantity(amount), because))
}
